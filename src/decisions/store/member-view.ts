/**
 * What a member of a project sees of a decision. Not: filters that are only tried, and those that let a lease through because they were
 * broken. Who knows of the first knows of rules that nobody has announced; who knows of the second knows when to ask again.
 */
import type { DecisionOutcome, DecisionRecord, FilterRecord } from '../record.ts';
import type { DecisionsQuery } from './contract.ts';

/** Leases only: workspaces of SkyPilot and namespaces of Kubernetes may be called like a project of somebody else. */
export const MEMBER_OPERATIONS = [
  'create',
  'update',
  'commit-create',
  'commit-update',
  'end',
] as const satisfies DecisionRecord['operation'][];

/** The outcomes that hide behind each one. */
const BEHIND: Readonly<Partial<Record<DecisionOutcome, readonly DecisionOutcome[]>>> = {
  allowed: ['allowed', 'audit', 'allowed-on-error', 'failed'],
  changed: ['changed'],
  rejected: ['rejected'],
  failed: ['failed'],
  exempt: ['exempt'],
};
/** The only ones in which a filter did more than allow. */
const REFUSED: readonly DecisionOutcome[] = ['rejected', 'failed', 'changed'];

/** As the member sees it. Messages are those that the user got: of a failure, the generic one. */
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
 * What is to be searched for a member, so that all that matches in their view is found. The result has more: compare it again. Hidden
 * filters are not even searched for, since the length of a page would tell.
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
