/** Judges cases by their rules alone: a thousand times faster than `test` with its ledger. */
import type { LeaseCase, ShortLease } from '../../src/cli/test/lease-case.ts';
import { contextOf, requestOfCase, wholeLease } from '../../src/cli/test/lease-case-request.ts';
import { type Instant, leaseEnd, leaseStart, toInstant } from '../../src/lease/dates.ts';
import { reservationSize } from '../../src/lease/lease.ts';
import {
  LeaseActivation,
  type LeaseRequestParts,
  leaseExemption,
  RuleJudge,
  type RuleSet,
} from '../../src/rules/index.ts';

/** The rules that refuse a case's lease, or fail; ignores other content of the case. */
export function refusingRules(rules: RuleSet, written: LeaseCase): string[] {
  const now = toInstant(written.now) ?? 0n;
  const read = { id: '', file: import.meta.filename, lineOf: () => 1, typedAt: () => undefined };
  const request = requestOfCase({ ...read, case: written }, now);
  const parts: LeaseRequestParts = {
    ...request,
    names: namesOf(written),
    now: new Date(Number(now / 1000n)),
    ledger: ledgerOf(written, request.context.project_id, now),
  };
  const refusing: string[] = [];
  new RuleJudge(rules[request.operation]).judge(
    new LeaseActivation(parts),
    leaseExemption(parts.context, parts.names),
    parts.now.getTime(),
    ({ name }, said) => refusing.push(...(said === 'refused' || said === 'failed' ? [name] : [])),
  );
  return refusing;
}

export function namedIn(expected: unknown): readonly string[] | undefined {
  const { answer, rule } = expected as {
    readonly answer?: string;
    readonly rule?: string | readonly string[];
  };
  return answer === 'allowed' ? [] : rule === undefined ? undefined : [rule].flat();
}

function namesOf({ keystone, lease, current }: LeaseCase): LeaseRequestParts['names'] {
  const project = lease?.project ?? current?.project;
  const tags = typeof project === 'object' ? (project.tags ?? []) : [];
  return keystone?.unavailable === true
    ? undefined
    : { project: { name: 'project', domain: 'Default', tags }, user: { name: 'user', domain: 'Default' } };
}

/** Assumes a price of 1 for all hosts. */
function ledgerOf({ ledger }: LeaseCase, project: string, now: Instant): LeaseRequestParts['ledger'] {
  const own = (ledger?.leases ?? []).filter((one) => contextOf(one).project_id === project);
  const taken = own.reduce((sum, one) => sum + nodeHours(one, now), 0);
  const budgets = (ledger?.budgets ?? []).filter((one) => one.project === project);
  const amount = budgets.reduce((sum, one) => sum + Number(one.amount), 0);
  return { leases: BigInt(own.length), taken, left: budgets.length === 0 ? undefined : amount - taken };
}

function nodeHours(short: ShortLease, now: Instant): number {
  const lease = wholeLease(short, now);
  const hours = Number((leaseEnd(lease) ?? 0n) - (leaseStart(lease) ?? 0n)) / 3.6e9;
  return (lease.reservations ?? []).reduce((sum, one) => sum + (reservationSize(one) ?? 0), 0) * hours;
}
