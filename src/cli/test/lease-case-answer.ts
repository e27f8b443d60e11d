/** Compares the decision on a lease with the expectation of a case. */
import type { ObservedRule } from '../../filter/rule-observer.ts';
import type { Decision } from '../../filter/verdict.ts';
import { pathDifferences } from '../cases/expected-paths.ts';
import { textDifference } from '../cases/expected-text.ts';
import type { LeaseExpectation } from './lease-case.ts';

/** What came of a lease. */
export interface LeaseResult {
  readonly decision: Decision;
  /** The rules that refused it, in order, without those in audit mode. */
  readonly refusing: readonly ObservedRule[];
  readonly charged: Charged;
}

/** Millionths of unit-hours that the budgets pay for the lease; of an update, for what it changes. */
export interface Charged {
  /** By the budgets of whole projects. */
  readonly project: number;
  /** By the budgets of single users. */
  readonly user: number;
}

type Whole = Exclude<LeaseExpectation, { answer: 'allowed' | 'changed' | 'unchanged' | 'rejected' }>;

/** Whether a lease that filters have changed is as good as allowed: otherwise the service refuses it, as Blazar cannot use it. */
export function expectsChange(expected: LeaseExpectation): boolean {
  const { answer, lease_paths } = expected as Whole;
  return answer === 'changed' || answer === 'unchanged' || lease_paths !== undefined;
}

/** The filter that is expected to fail; `undefined` = none. */
export function expectedFailure(expected: LeaseExpectation): string | undefined {
  return (expected as Whole).failed;
}

/** Sentences; empty if everything is as expected. */
export function leaseDifferences(expectation: LeaseExpectation, result: LeaseResult): string[] {
  const expected = expectation as Whole;
  const { answer = 'allowed', rejected, filter, rule, failed, warning, charged, lease_paths } = expected;
  const { decision, refusing } = result;
  const isRejected =
    answer === 'rejected' || [rejected, filter, rule, failed].some((one) => one !== undefined);
  if (decision.allowed === isRejected) {
    return [`expected it to be ${isRejected ? 'rejected' : 'allowed'}, but ${gotOf(result)}`];
  }
  const message = decision.message ?? '';
  const warnings = decision.warnings.join(' ');
  const rules = rule === undefined ? [] : [rule].flat();
  const named = refusing.map(({ name }) => name);
  return [
    ...(filter !== undefined && decision.filter !== filter
      ? [`expected ${filter} to reject it, but it was ${decision.filter}: ${message}`]
      : []),
    ...(rules.every((one) => named.includes(one))
      ? []
      : [
          `expected the rule ${rules.join(', ')} to reject it, but it was ${named.length === 0 ? decision.filter : named.join(', ')}: ${message}`,
        ]),
    ...found(rejected !== undefined && textDifference('the message', rejected, message)),
    ...found(warning !== undefined && textDifference('the warnings', warning, warnings)),
    ...changeDifferences(answer, decision),
    ...chargeDifferences(charged, result.charged),
    ...pathDifferences('lease', lease_paths, decision.lease),
  ];
}

function gotOf({ decision, refusing }: LeaseResult): string {
  if (decision.allowed) {
    return decision.exempt ? 'it was allowed: its project is exempt' : 'it was allowed';
  }
  const rules = refusing.map(({ name }) => name).join(', ');
  const by = rules === '' ? decision.filter : `${decision.filter} (${rules})`;
  return `${by} rejected it: ${decision.message}`;
}

function changeDifferences(answer: string, { changed, outcomes }: Decision): string[] {
  if (answer === 'changed' && !changed) {
    return ['expected a change, but nothing was changed'];
  }
  if (answer === 'unchanged' && changed) {
    const changing = outcomes.filter((one) => one.changed && !one.audit).map(({ filter }) => filter);
    return [`expected no change, but it was changed by ${changing.join(', ')}`];
  }
  return [];
}

/** What people write has at most six decimals. */
const MILLION = 1_000_000;

function chargeDifferences(expected: Whole['charged'], got: Charged): string[] {
  const wanted = typeof expected === 'object' ? expected : { project: expected };
  return (['project', 'user'] as const).flatMap((owner) => {
    const amount = wanted[owner];
    const charged = got[owner];
    return amount === undefined || Math.round(amount * MILLION) === charged
      ? []
      : [`expected ${amount} unit-hours charged to the budget of the ${owner}, got ${charged / MILLION}`];
  });
}

const found = (text: string | false | undefined) => (text ? [text] : []);
