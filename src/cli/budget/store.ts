/** What the commands of `budget` ask of the ledger and of a service alike, and their flags. */
import { InvalidRequestError } from '../../base/errors.ts';
import type { Amount } from '../../filter/claim.ts';
import type { BudgetChange, BudgetUsage } from '../../ledger/budgets/budgets.ts';
import type { ImportReport } from '../../ledger/budgets/plan.ts';
import { whoseText } from '../../ledger/budgets/terms.ts';
import type { LeaseReport } from '../../ledger/reports/reports.ts';
import type { CommandNames } from '../common/command-names.ts';
import type { EndpointFlags } from '../common/endpoint.ts';
import { onOneLine, UsageError } from '../common/output.ts';
import type { SourceFlags } from '../common/sources.ts';
import { secondText } from '../ledger/output.ts';
import type { RequestStore } from './requests.ts';

/** Projects and users are as they were typed. */
export interface BudgetStore extends RequestStore {
  /** The budgets of the project afterwards. */
  set(project: string, flags: SetFlags): Promise<ListedBudgets>;
  remove(project: string, flags: AuthorFlags): Promise<ListedBudgets>;
  list(): Promise<ListedBudgets>;
  show(project: string): Promise<ShownProject>;
  /** Oldest first. */
  changes(
    project: string | undefined,
  ): Promise<{ readonly items: readonly BudgetChange[]; readonly unit: string }>;
  import(open: () => BudgetFile, flags: ImportFlags): Promise<ImportReport>;
  /** The text of a file, in pieces. */
  export(
    format: 'csv' | 'json',
    project: string | undefined,
  ): Promise<AsyncIterable<string> | readonly string[]>;
}

export interface ListedBudgets {
  readonly items: readonly BudgetUsage[];
  readonly unit: string;
  readonly names: CommandNames;
}

export interface ShownProject extends ListedBudgets {
  readonly leases: readonly ChargedLease[];
}

export interface ChargedLease {
  readonly lease: LeaseReport;
  readonly charges: readonly {
    readonly account: string;
    readonly amount: Amount;
    readonly from: bigint;
    readonly until: bigint;
  }[];
}

export interface BudgetFile {
  readonly path: string;
  readonly text: string;
  readonly isJson: boolean;
}

export interface FormatFlags extends SourceFlags, EndpointFlags {
  readonly format: 'table' | 'json';
}

export interface AuthorFlags extends SourceFlags, EndpointFlags {
  readonly user?: string;
  readonly from: string;
  readonly who?: string;
  readonly reason?: string;
}

export interface SetFlags extends AuthorFlags {
  readonly amount: string;
  readonly until: string;
}

export interface ImportFlags extends FormatFlags {
  readonly dryRun?: boolean;
  readonly who?: string;
  readonly reason?: string;
}

export interface ExportFlags extends SourceFlags, EndpointFlags {
  readonly format: 'csv' | 'json';
}

const FLAGS: Readonly<Record<string, string>> = {
  projectId: 'project',
  userId: '--user',
  from: '--from',
  until: '--until',
  amount: '--amount',
};

/** A mistake in a budget, reported under the name of its flag. */
export function inFlags<Result>(parse: () => Result): Result {
  try {
    return parse();
  } catch (thrown) {
    if (!(thrown instanceof InvalidRequestError)) {
      throw thrown;
    }
    throw new UsageError(
      `${FLAGS[thrown.field] ?? thrown.field}${thrown.message.slice(thrown.field.length)}`,
    );
  }
}

export function noSuchBudget(which: {
  projectId: string;
  userId: string | null;
  validFrom: bigint;
}): UsageError {
  return new UsageError(
    `${whoseText(which)} has no budget that starts at ${secondText(which.validFrom)}; budget show prints its budgets`,
  );
}

/** An empty answer would hide a mistyped id. */
export function warnOfNoBudget(project: string, hasLeases: boolean): void {
  const more = hasLeases ? '' : ', and the ledger has none of its leases: is this the id of the project?';
  process.stderr.write(`${onOneLine(`warning: project ${project} has no budget${more}`)}\n`);
}
