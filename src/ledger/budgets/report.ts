/** What an import has done or would do, as the API and the command tell it. */
import type { FileMistake } from './file.ts';
import type { ImportPlan, PlannedLine } from './plan.ts';
import { budgetAmountText, dateText } from './texts.ts';

export interface ImportReport {
  /** Why nothing was set. */
  readonly message?: string | undefined;
  readonly dry_run: boolean;
  readonly set: number;
  readonly changed: number;
  readonly unchanged: number;
  readonly mistakes: readonly FileMistake[];
  readonly lines: readonly ReportedLine[];
}

export interface ReportedLine {
  readonly line: number;
  readonly outcome: PlannedLine['outcome'];
  readonly project_id: string;
  readonly user_id: string | null;
  readonly valid_from: string;
  readonly valid_until: string;
  readonly amount: string;
  /** The budget in force that is changed. */
  readonly before: { readonly valid_until: string; readonly amount: string } | null;
}

export function importReport({ lines, mistakes }: ImportPlan, isDryRun: boolean): ImportReport {
  const count = (wanted: PlannedLine['outcome']) => lines.filter(({ outcome }) => outcome === wanted).length;
  const isRefused = !isDryRun && mistakes.length > 0;
  return {
    ...(isRefused && {
      message: `the file has ${mistakes.length} ${mistakes.length === 1 ? 'mistake' : 'mistakes'}: nothing was set`,
    }),
    dry_run: isDryRun,
    ...{ set: count('set'), changed: count('changed'), unchanged: count('unchanged') },
    mistakes,
    lines: lines.map(reported),
  };
}

function reported({ line, outcome, before, wanted }: PlannedLine): ReportedLine {
  return {
    ...{ line, outcome, project_id: wanted.projectId, user_id: wanted.userId },
    valid_from: dateText(wanted.validFrom),
    valid_until: dateText(wanted.validUntil),
    amount: budgetAmountText(wanted.amount),
    before:
      before === undefined || before.isRemoved
        ? null
        : { valid_until: dateText(before.validUntil), amount: budgetAmountText(before.amount) },
  };
}
