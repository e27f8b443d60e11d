/** What the commands of `budget` ask of the ledger and of a service alike, and their flags. */

import { retold } from '../../base/errors.ts';
import type { Amount } from '../../filter/claim.ts';
import { secondText } from '../../lease/dates.ts';
import type { BudgetChange, BudgetUsage } from '../../ledger/budgets/budgets.ts';
import type { ImportReport } from '../../ledger/budgets/plan.ts';
import type { BudgetRequest } from '../../ledger/budgets/requests/rows.ts';
import type { RequestStep } from '../../ledger/budgets/requests/steps.ts';
import { whoseText } from '../../ledger/budgets/terms.ts';
import type { BudgetRequestState } from '../../ledger/storage/service-tables.ts';
import type { CommandNames } from '../common/command-names.ts';
import type { EndpointFlags } from '../common/endpoint.ts';
import { UsageError, warn } from '../common/output.ts';
import type { FormatFlags, SourceFlags } from '../common/sources.ts';
import type { ListedLease } from '../ledger/output.ts';

/** Projects and users are passed as typed. */
export interface BudgetStore {
  /** Returns the project's budgets afterwards. */
  set(project: string, flags: SetFlags): Promise<Listed<BudgetUsage>>;
  remove(project: string, flags: AuthorFlags): Promise<Listed<BudgetUsage>>;
  list(): Promise<Listed<BudgetUsage>>;
  show(project: string): Promise<ShownProject>;
  /** Oldest first. */
  changes(project: string | undefined): Promise<Omit<Listed<BudgetChange>, 'names'>>;
  import(open: () => BudgetFile, flags: ImportFlags): Promise<ImportReport>;
  /** The text of a file, in chunks. */
  export(
    format: 'csv' | 'json',
    project: string | undefined,
  ): Promise<AsyncIterable<string> | readonly string[]>;
  /** Returns the new request for more budget. */
  ask(project: string, flags: AskFlags): Promise<Listed<BudgetRequest>>;
  /** Returns the request afterwards. */
  take(kind: RequestStep['kind'], request: string, flags: StepFlags): Promise<Listed<BudgetRequest>>;
  /** Newest first. */
  requests(project: string | undefined, state: WantedState): Promise<Listed<BudgetRequest>>;
}

/** `open` = requested or endorsed. */
export type WantedState = BudgetRequestState | 'open' | 'all';

export interface Listed<Item> {
  readonly items: readonly Item[];
  readonly unit: string;
  readonly names: CommandNames;
}

export interface ShownProject extends Listed<BudgetUsage> {
  readonly leases: readonly ChargedLease[];
}

export interface ChargedLease {
  readonly lease: ListedLease;
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

interface WhyFlags extends SourceFlags, EndpointFlags {
  readonly who?: string;
  readonly reason?: string;
}

export interface AuthorFlags extends WhyFlags {
  readonly user?: string;
  readonly from: string;
}

export interface SetFlags extends AuthorFlags {
  readonly amount: string;
  readonly until: string;
}

export interface ImportFlags extends WhyFlags, FormatFlags {
  readonly dryRun?: boolean;
}

export interface StepFlags extends WhyFlags, FormatFlags {
  /** For grants. */
  readonly amount?: string;
  readonly until?: string;
}

export interface AskFlags extends StepFlags {
  readonly amount: string;
  readonly until: string;
  readonly user?: string;
  readonly reason: string;
}

/** The flags of budget fields and of API fields. */
export const FLAGS: Readonly<Record<string, string>> = {
  projectId: 'project',
  userId: '--user',
  from: '--from',
  until: '--until',
  amount: '--amount',
  valid_until: '--until',
  user_id: '--user',
  reason: '--reason',
};

/** Reports an error in a budget with the name of its flag. */
export function inFlags<Result>(parse: () => Result): Result {
  return retold(parse, (field, text) => new UsageError(`${FLAGS[field] ?? field}: ${text}`));
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

/** Warns, because an empty result would hide a mistyped id. */
export function warnOfNoBudget(project: string, hasLeases: boolean): void {
  const more = hasLeases ? '' : ', and the ledger has none of its leases: is this the id of the project?';
  warn(`project ${project} has no budget${more}`);
}
