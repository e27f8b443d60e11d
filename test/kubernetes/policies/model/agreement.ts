/** Random policies and pods, beside an evaluator written from the proposal. */
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { expect } from 'vitest';
import { EffectivePolicy, type PodReview } from '../../../../src/kubernetes/policies/effective-policy.ts';
import { MERGE_STRATEGIES } from '../../../../src/kubernetes/policies/merge.ts';
import { parsePod } from '../../../../src/kubernetes/policies/pod.ts';
import { policy } from '../../../support/scheduling-policies.ts';
import { cases } from './arbitraries.ts';
import { evaluate } from './obvious-evaluator.ts';

type Kind = 'allowed' | 'refused' | 'changed';

const kindOf = (pod: unknown, review: PodReview): Kind =>
  !review.allowed ? 'refused' : review.pod === pod ? 'allowed' : 'changed';

/** Pods and documents are frozen all the way down: a change of one would throw. */
export function expectAgreement(numRuns: number): void {
  const seen: Record<Kind, number> = { allowed: 0, refused: 0, changed: 0 };
  fc.assert(
    fc.property(cases, ({ documents, pod, ...options }) => {
      const policies = documents.map(({ name, spec }) => policy(name, spec));
      const parsed = parsePod(pod);
      for (const strategy of MERGE_STRATEGIES) {
        const review = new EffectivePolicy(policies, strategy).review(parsed, options);
        const { allowed, pod: result, reasons } = review;
        const expected = { ...evaluate(documents, strategy, pod, options), isExplained: !review.allowed };
        const received = { allowed, pod: result, isExplained: reasons.length > 0 };
        if (!isDeepStrictEqual(received, expected)) {
          expect({ strategy, ...received }).toStrictEqual({ strategy, ...expected });
        }
        for (const { field, expectation } of reasons) {
          expect(field).toMatch(
            /^(schedulerName|priorityClassName|nodeName|nodeSelector|tolerations|affinity)/,
          );
          expect(expectation).toMatch(/^(expected .|conflicting requirements: )/);
        }
        seen[kindOf(pod, review)] += 1;
      }
    }),
    { numRuns },
  );
  // Where one of them was rare, little would be proved.
  expect(Math.min(...Object.values(seen))).toBeGreaterThan(numRuns / 4);
}
