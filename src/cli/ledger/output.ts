/** Formats leases, entries and budgets: exact numbers, times in UTC. */

import { type Amount, formatUnitHours } from '../../filter/claim.ts';
import { formatInstant, secondText } from '../../lease/dates.ts';
import { charge, type RecordedClaim } from '../../ledger/accounting/recorded-claim.ts';
import type { TermsRow } from '../../ledger/budgets/rows.ts';
import {
  type EntryReport,
  isBudgetAccount,
  type LeaseReport,
  type LedgerRecord,
} from '../../ledger/reports/reports.ts';
import type { CommandNames } from '../common/command-names.ts';
import type { Columns } from '../common/output.ts';

/** Usage in unit-hours, for display, and exact, in millionths of a unit times seconds. */
export function usageObject(amount: Amount): { unit_hours: string; amount: string } {
  return { unit_hours: formatUnitHours(amount), amount: String(amount) };
}

/** `48 node-hours` of usage, or a count. */
export function amountText(amount: Amount, isUsage: boolean, unit: string): string {
  return isUsage ? `${formatUnitHours(amount)} ${unit}` : String(amount);
}

/** The part of a lease that lists print. */
export type ListedLease = Omit<LeaseReport, 'claims' | 'unconfirmed'>;

export function leaseColumns(names: CommandNames): Columns<ListedLease> {
  return {
    ROW: ({ row }) => `#${row}`,
    LEASE: ({ leaseId }) => leaseId,
    PROJECT: ({ projectId }) => names.project(projectId),
    USER: ({ userId }) => names.user(userId),
    NAME: ({ name }) => name,
    START: ({ start }) => formatInstant(start),
    END: ({ end }) => formatInstant(end),
    STATE: ({ state }) => state,
  };
}

export function leaseObject(lease: ListedLease, names?: CommandNames) {
  return {
    row: lease.row,
    lease_id: lease.leaseId,
    region: lease.region,
    project_id: lease.projectId,
    user_id: lease.userId,
    ...names?.fields(lease.projectId, lease.userId),
    name: lease.name,
    start: formatInstant(lease.start),
    end: formatInstant(lease.end),
    state: lease.state,
    recorded_at: formatInstant(lease.recordedAt),
    ended_at: instantOrNull(lease.endedAt),
  };
}

/** The charge of a lease as last requested, and the possible charges until that is confirmed. */
export function takenObject({ claims, unconfirmed }: LeaseReport) {
  return {
    claims: claims.map(claimObject),
    unconfirmed: unconfirmed.map((alternative) => alternative.map(claimObject)),
  };
}

function claimObject(claim: RecordedClaim) {
  const { kind, account } = claim;
  switch (claim.kind) {
    case 'held':
      return { kind, account, amount: String(claim.amount) };
    case 'spent':
      return { kind, account, ...usageObject(claim.amount) };
    case 'usage':
      return {
        kind,
        account,
        ...usageObject(charge(claim)),
        per_second: String(claim.perSecond),
        from: secondText(claim.from),
        until: secondText(claim.until),
      };
  }
}

function postedObject(account: string, amount: Amount) {
  return isBudgetAccount(account) ? usageObject(amount) : { amount: String(amount) };
}

export function entryObject(entry: EntryReport) {
  return {
    entry: entry.id,
    at: formatInstant(entry.at),
    project_id: entry.project_id,
    lease_row: entry.lease,
    operation: entry.operation,
    account: entry.account,
    ...postedObject(entry.account, entry.delta),
    who: entry.who,
    request_id: entry.request_id,
    reason: entry.reason,
  };
}

export function recordObject(record: LedgerRecord): object {
  switch (record.kind) {
    case 'lease':
      return {
        kind: record.kind,
        ...leaseObject(record.lease),
        ...takenObject(record.lease),
      };
    case 'entry':
      return { kind: record.kind, ...entryObject(record.entry) };
    case 'budget': {
      const { budget } = record;
      const removed_at = instantOrNull(budget.removed_at);
      return { kind: record.kind, budget: budget.id, ...budgetTerms(budget), removed_at };
    }
    case 'budget_change': {
      const { change } = record;
      const { budget, operation, who, reason } = change;
      const at = formatInstant(change.at);
      return { kind: record.kind, budget, at, operation, ...budgetTerms(change), who, reason };
    }
    case 'folded': {
      const { project_id, region, until, leases, entries } = record.fold;
      return { kind: record.kind, project_id, region, before: formatInstant(until), leases, entries };
    }
    case 'folded_balance': {
      const { project_id, account, amount } = record.sum;
      return { kind: record.kind, project_id, account, ...postedObject(account, amount) };
    }
  }
}

function budgetTerms(budget: TermsRow) {
  return {
    project_id: budget.project_id,
    user_id: budget.user_id,
    from: secondText(budget.valid_from),
    until: secondText(budget.valid_until),
    ...usageObject(budget.amount),
  };
}

function instantOrNull(instant: bigint | null): string | null {
  return instant === null ? null : formatInstant(instant);
}
