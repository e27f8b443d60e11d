/** Cases of rules, judged by the rules alone: in a thousandth of the time that `test` takes with its ledger. */
import { readCases } from '../../src/cli/cases/case-files.ts';
import { schemaOfCase } from '../../src/cli/test/any-case.ts';
import type { LeaseCase, ShortLease } from '../../src/cli/test/lease-case.ts';
import { contextOf, requestOfCase, wholeLease } from '../../src/cli/test/lease-case-request.ts';
import { type Instant, toInstant } from '../../src/lease/dates.ts';
import { leaseEnd, leaseStart, reservationSize } from '../../src/lease/lease.ts';
import {
  LeaseActivation,
  type LeaseRequestParts,
  leaseExemption,
  type Rule,
  RuleJudge,
} from '../../src/rules/index.ts';

export type Answers = ReadonlyMap<string, 'allowed' | 'refused' | 'skipped' | 'failed'>;

export interface RuleCase {
  readonly id: string;
  /** The rules that are expected to refuse it; empty if it is expected to be allowed; `undefined` = it is about something else. */
  readonly named: readonly string[] | undefined;
  readonly parts: LeaseRequestParts;
}

export function ruleCases(folder: string, files: readonly string[]): RuleCase[] {
  return files
    .flatMap((file) => readCases(folder, file, schemaOfCase))
    .flatMap((read) => {
      if (!('case' in read)) {
        throw new Error(`${read.id}: ${read.problems.map(({ message }) => message).join(' ')}`);
      }
      const { kind, written } = read.case;
      if (kind !== 'lease') {
        return [];
      }
      const now = toInstant(written.now) ?? 0n;
      const request = requestOfCase({ ...read, case: written }, now);
      const parts: LeaseRequestParts = {
        ...request,
        names: namesOf(written),
        now: new Date(Number(now / 1000n)),
        ledger: ledgerOf(written, request.context.project_id, now),
      };
      return [{ id: read.id, named: namedIn(written.expect), parts }];
    });
}

/** What each rule says of a case. */
export function answersOf(rules: readonly Rule[], parts: LeaseRequestParts): Answers {
  const answers = new Map<string, 'allowed' | 'refused' | 'skipped' | 'failed'>();
  new RuleJudge(rules).judge(
    new LeaseActivation(parts),
    leaseExemption(parts.context, parts.names),
    parts.now.getTime(),
    (rule, said) => answers.set(rule.name, said),
  );
  return answers;
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

/** As if all hosts cost 1. */
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
