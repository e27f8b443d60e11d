/** The changes of an import, judged by their final state, whatever the order of the lines. */

import { timedYield, yieldToEventLoop } from '../../base/yield-to-event-loop.ts';
import type { Budget } from '../../filter/claim.ts';
import { secondText } from '../../lease/dates.ts';
import { addTo } from '../add-to.ts';
import type { WantedBudget } from './budgets.ts';
import type { FileMistake, WantedLine } from './file.ts';
import { budgetAmountText, overlapText } from './terms.ts';

/** A budget of the ledger, in force or removed. */
export interface KnownBudget extends Budget {
  readonly isRemoved: boolean;
}

export interface PlannedLine extends WantedLine {
  /** `set`: no budget in force starts then. `changed`: its amount or its end. */
  readonly outcome: 'set' | 'changed' | 'unchanged';
  /** The budget that is changed, or that was removed and is set again; `undefined` = new. */
  readonly before: KnownBudget | undefined;
}

export interface ImportPlan {
  readonly lines: readonly PlannedLine[];
  readonly mistakes: readonly FileMistake[];
}

/** `known`: all budgets of the projects in the file. Yields to the event loop. */
export async function planImport(
  wanted: readonly WantedLine[],
  known: readonly KnownBudget[],
): Promise<ImportPlan> {
  const yieldIfDue = timedYield();
  const knownByKey = new Map<string, KnownBudget>();
  for (const budget of known) {
    await yieldIfDue();
    knownByKey.set(keyOf(budget), budget);
  }
  const byOwner = new Map<string, Claim[]>();
  const mistakes: FileMistake[] = [];
  const lines: PlannedLine[] = [];
  const lineOf = new Map<string, number>();
  for (const { line, wanted: budget } of wanted) {
    await yieldIfDue();
    const key = keyOf(budget);
    const first = lineOf.get(key);
    if (first !== undefined) {
      mistakes.push({ line, field: 'valid_from', message: `this budget is in line ${first} already` });
      continue;
    }
    lineOf.set(key, line);
    const before = knownByKey.get(key);
    lines.push({ line, wanted: budget, before, outcome: outcomeOf(budget, before) });
    addTo(byOwner, ownerOf(budget), { ...budget, line });
  }
  for (const budget of known) {
    await yieldIfDue();
    if (!budget.isRemoved && !lineOf.has(keyOf(budget))) {
      addTo(byOwner, ownerOf(budget), { ...budget, line: undefined });
    }
  }
  for (const claims of byOwner.values()) {
    await yieldIfDue();
    mistakes.push(...overlaps(claims));
  }
  return { lines, mistakes };
}

/** A budget after the import: from a line, or one that is not in the file. */
interface Claim extends WantedBudget {
  readonly id?: bigint;
  readonly line: number | undefined;
}

function overlaps(claims: Claim[]): FileMistake[] {
  if (claims.length === 1) {
    return [];
  }
  claims.sort((a, b) => (a.validFrom < b.validFrom ? -1 : 1));
  const mistakes: FileMistake[] = [];
  let longest: Claim | undefined;
  for (const one of claims) {
    if (longest !== undefined && one.validFrom < longest.validUntil) {
      const [first, second] = [longest, one].sort((a, b) => (b.line ?? 0) - (a.line ?? 0));
      if (first?.line !== undefined && second !== undefined) {
        mistakes.push({ line: first.line, field: 'valid_from', message: textOf(second) });
      }
    }
    if (longest === undefined || one.validUntil > longest.validUntil) {
      longest = one;
    }
  }
  return mistakes;
}

function textOf(other: Claim): string {
  return other.line === undefined
    ? overlapText({ ...other, id: other.id ?? 0n })
    : `it would overlap with line ${other.line}, from ${secondText(other.validFrom)} until ${secondText(other.validUntil)}`;
}

function outcomeOf(wanted: WantedBudget, before: KnownBudget | undefined): PlannedLine['outcome'] {
  if (before === undefined || before.isRemoved) {
    return 'set';
  }
  return before.validUntil === wanted.validUntil && before.amount === wanted.amount ? 'unchanged' : 'changed';
}

/** Ids contain no NUL. */
function ownerOf({ projectId, userId }: WantedBudget): string {
  return userId === null ? projectId : `${projectId}\0${userId}`;
}

function keyOf(budget: WantedBudget): string {
  return `${ownerOf(budget)}\0\0${budget.validFrom}`;
}

export interface ImportReport {
  readonly message?: string | undefined;
  readonly dry_run: boolean;
  readonly set: number;
  readonly changed: number;
  readonly unchanged: number;
  readonly mistakes: readonly FileMistake[];
  readonly lines: readonly ReportedLine[];
}

interface ReportedLine {
  readonly line: number;
  readonly outcome: PlannedLine['outcome'];
  readonly project_id: string;
  readonly user_id: string | null;
  readonly valid_from: string;
  readonly valid_until: string;
  readonly amount: string;
  /** The budget in force before the change. */
  readonly before: { readonly valid_until: string; readonly amount: string } | null;
}

/** Yields to the event loop. */
export async function importReport(
  { lines, mistakes }: ImportPlan,
  isDryRun: boolean,
): Promise<ImportReport> {
  const count = (wanted: PlannedLine['outcome']) => lines.filter(({ outcome }) => outcome === wanted).length;
  const isRefused = !isDryRun && mistakes.length > 0;
  const yieldIfDue = timedYield();
  const shown: ReportedLine[] = [];
  for (const line of lines) {
    await yieldIfDue();
    shown.push(reported(line));
  }
  await yieldToEventLoop();
  return {
    ...(isRefused && {
      message: `the file has ${mistakes.length} ${mistakes.length === 1 ? 'mistake' : 'mistakes'}: nothing was set`,
    }),
    dry_run: isDryRun,
    set: count('set'),
    changed: count('changed'),
    unchanged: count('unchanged'),
    mistakes,
    lines: shown,
  };
}

function reported({ line, outcome, before, wanted }: PlannedLine): ReportedLine {
  return {
    line,
    outcome,
    project_id: wanted.projectId,
    user_id: wanted.userId,
    valid_from: secondText(wanted.validFrom),
    valid_until: secondText(wanted.validUntil),
    amount: budgetAmountText(wanted.amount),
    before:
      before === undefined || before.isRemoved
        ? null
        : { valid_until: secondText(before.validUntil), amount: budgetAmountText(before.amount) },
  };
}
