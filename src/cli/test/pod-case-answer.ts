/** Compares the review of a pod with the expectation of a case. */

import type { DecidedAdmission } from '../../kubernetes/admission/pod-admission.ts';
import type { Pod } from '../../kubernetes/policies/pod.ts';
import { pathDifferences } from '../cases/expected-paths.ts';
import { textDifference } from '../cases/expected-text.ts';
import type { PodExpectation } from './pod-case.ts';

type Whole = Exclude<PodExpectation, { answer: 'allowed' | 'changed' | 'unchanged' | 'rejected' }>;

/** Sentences; empty if everything is as expected. */
export function podDifferences(
  expectation: PodExpectation,
  { allowed, message, reasons, warnings, rules = [] }: DecidedAdmission,
  { written, isChanged }: { readonly written: Pod; readonly isChanged: boolean },
): string[] {
  const { answer = 'allowed', rejected, policy, rule, field, warning, pod_paths } = expectation as Whole;
  const isRejected =
    answer === 'rejected' || [rejected, policy, rule, field].some((one) => one !== undefined);
  if (allowed === isRejected) {
    const got = allowed ? 'it was allowed' : `it was rejected: ${message}`;
    return [`expected it to be ${isRejected ? 'rejected' : 'allowed'}, but ${got}`];
  }
  const named = new Set(reasons.flatMap(({ policies }) => policies));
  const missing = (policy === undefined ? [] : [policy].flat()).filter((one) => !named.has(one));
  const refusing = rules.flatMap(({ rule: name, audit }) => (audit ? [] : [name]));
  const silent = (rule === undefined ? [] : [rule].flat()).filter((one) => !refusing.includes(one));
  const fields = reasons.map((one) => one.field);
  const texts = [
    rejected !== undefined && textDifference('the message', rejected, message ?? ''),
    warning !== undefined && textDifference('the warnings', warning, warnings.join(' ')),
    missing.length > 0 && `expected the policy ${missing.join(', ')} to reject it, but: ${message}`,
    silent.length > 0 && `expected the rule ${silent.join(', ')} to reject it, but: ${message}`,
    field !== undefined &&
      !fields.some((one) => one === field || one.startsWith(`${field}[`) || one.startsWith(`${field} `)) &&
      `expected ${field} to be rejected, but it was ${fields.join(', ')}: ${message}`,
    answer === 'changed' && !isChanged && 'expected a change, but nothing was changed',
    answer === 'unchanged' && isChanged && 'expected no change, but policies have added something',
  ];
  return [...texts.filter((one) => typeof one === 'string'), ...pathDifferences('pod', pod_paths, written)];
}
