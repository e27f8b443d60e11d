/**
 * The view of a decision for members of a project. Hides filters in audit mode, and filters that failed and
 * let the lease through. The first would reveal rules that are not announced yet, the second when to try
 * again.
 */
import type { DecisionOutcome, DecisionRecord, FilterRecord } from '../record.ts';
import type { DecisionsQuery } from './contract.ts';

/** Leases only: SkyPilot workspaces and Kubernetes namespaces may share a name with another project. */
export const MEMBER_OPERATIONS = [
  'create',
  'update',
  'commit-create',
  'commit-update',
  'end',
] as const satisfies DecisionRecord['operation'][];

/** Shown outcome → the real outcomes that it covers. */
const BEHIND: Readonly<Partial<Record<DecisionOutcome, readonly DecisionOutcome[]>>> = {
  allowed: ['allowed', 'audit', 'allowed-on-error', 'failed'],
  changed: ['changed'],
  rejected: ['rejected'],
  failed: ['failed'],
  exempt: ['exempt'],
};
/** The only outcomes in which a filter did more than allow. */
const REFUSED: readonly DecisionOutcome[] = ['rejected', 'failed', 'changed'];

/** The view of a member. Messages are those that the user got: the generic one for a failure. */
export function memberView(record: DecisionRecord): DecisionRecord {
  const { operation, outcome, message } = record;
  const isAllowed = operation === 'end' || outcome === 'audit' || outcome === 'allowed-on-error';
  return {
    ...record,
    ...(isAllowed && { outcome: 'allowed', filter: null, failed: false }),
    message: isAllowed ? null : message,
    warnings: [],
    filters: record.filters
      .filter(({ audit }) => !audit)
      .map((filter) => seenFilter(filter, operation === 'end')),
  };
}

function seenFilter(filter: FilterRecord, isEnd: boolean): FilterRecord {
  return isEnd || filter.outcome === 'allowed-on-error'
    ? { ...filter, outcome: 'allowed', message: null }
    : filter;
}

/**
 * A query that finds everything that matches in the member's view. Its result has more: filter it again.
 * Hidden filters are not searched, since the length of a page would reveal them.
 */
export function memberQuery(query: DecisionsQuery): DecisionsQuery {
  const { outcomes, filters } = query;
  const behind = outcomes?.flatMap((outcome) => BEHIND[outcome] ?? []);
  return {
    ...query,
    filters: undefined,
    outcomes: filters === undefined ? behind : REFUSED.filter((one) => behind?.includes(one) ?? true),
  };
}
