/** Random policies and pods, beside an evaluator written from the proposal. */
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EffectivePolicy, type PodReview } from '../../../src/kubernetes/policies/effective-policy.ts';
import { MERGE_STRATEGIES } from '../../../src/kubernetes/policies/merge.ts';
import { parsePod } from '../../../src/kubernetes/policies/pod.ts';
import { policy } from '../../support/scheduling-policies.ts';
import type { PolicyDocument } from './documents/obvious-documents.ts';
import { allowedOnly, cases } from './model/arbitraries.ts';
import { evaluate } from './model/obvious-evaluator.ts';

const strategies = fc.constantFrom(...MERGE_STRATEGIES);

const policiesIn = (documents: readonly PolicyDocument[]) =>
  documents.map(({ name, spec }) => policy(name, spec));

type Kind = 'allowed' | 'refused' | 'changed';

const kindOf = (pod: unknown, review: PodReview): Kind =>
  !review.allowed ? 'refused' : review.pod === pod ? 'allowed' : 'changed';

// Pods and documents are frozen all the way down: a change of one would throw.
describe('for any policies and pods', () => {
  it('agree with an evaluator written from the proposal', () => {
    const seen: Record<Kind, number> = { allowed: 0, refused: 0, changed: 0 };
    fc.assert(
      fc.property(cases, strategies, ({ documents, pod, ...options }, strategy) => {
        const policies = policiesIn(documents);
        const parsed = parsePod(pod);
        // Of one policy all of them make the same: see below.
        for (const tried of documents.length > 1 ? MERGE_STRATEGIES : [strategy]) {
          const review = new EffectivePolicy(policies, tried).review(parsed, options);
          const { allowed, pod: result, reasons } = review;
          const expected = { ...evaluate(documents, tried, pod, options), isExplained: !review.allowed };
          const received = { allowed, pod: result, isExplained: reasons.length > 0 };
          if (!isDeepStrictEqual(received, expected)) {
            expect({ tried, ...received }).toStrictEqual({ tried, ...expected });
          }
          seen[kindOf(pod, review)] += 1;
        }
      }),
      { numRuns: 10_000 },
    );
    // Where one of them was rare, little would be proved.
    expect(Math.min(...Object.values(seen))).toBeGreaterThan(2_500);
  });

  it('one policy alone means the same whichever way it is merged', () => {
    fc.assert(
      fc.property(cases, strategies, ({ documents, pod, ...options }, strategy) => {
        const policies = policiesIn(documents.slice(0, 1));
        const judge = (one: typeof strategy) =>
          new EffectivePolicy(policies, one).review(parsePod(pod), options);
        expect(judge(strategy)).toStrictEqual(judge('first'));
      }),
      { numRuns: 200 },
    );
  });

  it('an allowed pod is allowed as it has become, and nothing more is added to it', () => {
    fc.assert(
      fc.property(cases, strategies, ({ documents, pod, isForOneNode }, strategy) => {
        const effective = new EffectivePolicy(policiesIn(documents), strategy);
        const review = effective.review(parsePod(pod), { addDefaults: true, isForOneNode });
        fc.pre(review.allowed);
        for (const addDefaults of [true, false]) {
          const again = effective.review(review.pod, { addDefaults, isForOneNode });
          expect(again.reasons).toEqual([]);
          expect(again.pod).toBe(review.pod);
        }
      }),
      { numRuns: 200 },
    );
  });

  it('a policy that only allows never refuses what the others let through, merged deep', () => {
    fc.assert(
      fc.property(cases, allowedOnly, ({ documents, pod, ...options }, added) => {
        const policies = policiesIn(documents);
        const judge = (all: typeof policies) =>
          new EffectivePolicy(all, 'deep').review(parsePod(pod), options);
        fc.pre(judge(policies).allowed);
        expect(judge([...policies, ...policiesIn([added])]).reasons).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });

  it('an intersection never lets through what one of its policies refuses', () => {
    fc.assert(
      fc.property(cases, ({ documents, pod, ...options }) => {
        const policies = policiesIn(documents);
        const together = new EffectivePolicy(policies, 'intersection').review(parsePod(pod), options);
        fc.pre(together.allowed);
        for (const one of policies) {
          expect(new EffectivePolicy([one], 'deep').review(parsePod(pod), options).reasons).toEqual([]);
          const asItIs = { ...options, addDefaults: false };
          expect(new EffectivePolicy([one], 'deep').review(together.pod, asItIs).reasons).toEqual([]);
        }
      }),
      { numRuns: 200 },
    );
  });

  it('the order in which policies are read does not matter', () => {
    const permuted = cases.chain((one) =>
      fc
        .shuffledSubarray([...one.documents], { minLength: one.documents.length })
        .map((other) => ({ ...one, other })),
    );
    fc.assert(
      fc.property(permuted, strategies, ({ documents, other, pod, ...options }, strategy) => {
        const judge = (all: readonly PolicyDocument[]) =>
          new EffectivePolicy(policiesIn(all), strategy).review(parsePod(pod), options);
        expect(judge(other)).toStrictEqual(judge(documents));
      }),
      { numRuns: 200 },
    );
  });

  it('a refused pod stays as it came, and each reason names a field and what was expected', () => {
    fc.assert(
      fc.property(cases, strategies, ({ documents, pod, isForOneNode }, strategy) => {
        const effective = new EffectivePolicy(policiesIn(documents), strategy);
        const parsed = parsePod(pod);
        const review = effective.review(parsed, { addDefaults: true, isForOneNode });
        fc.pre(!review.allowed);
        expect(review.pod).toBe(parsed);
        for (const { field, expectation, policies } of review.reasons) {
          expect(field).toMatch(
            /^(schedulerName|priorityClassName|nodeName|nodeSelector|tolerations|affinity)/,
          );
          expect(expectation).toMatch(/^(expected .|conflicting requirements: )/);
          expect(documents.map(({ name }) => name)).toEqual(expect.arrayContaining([...policies]));
        }
      }),
      { numRuns: 200 },
    );
  });
});
