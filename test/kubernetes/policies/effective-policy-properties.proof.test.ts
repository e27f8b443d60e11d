/** Random policies and pods: agreement with an evaluator written from the proposal, and what needs none. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EffectivePolicy } from '../../../src/kubernetes/policies/effective-policy.ts';
import { parsePod } from '../../../src/kubernetes/policies/pod.ts';
import { policy } from '../../support/scheduling-policies.ts';
import type { PolicyDocument } from './documents/obvious-documents.ts';
import { expectAgreement } from './model/agreement.ts';
import { allowedOnly, cases } from './model/arbitraries.ts';

const policiesIn = (documents: readonly PolicyDocument[]) =>
  documents.map(({ name, spec }) => policy(name, spec));

describe('for any policies and pods', () => {
  it('agree with an evaluator written from the proposal', () => expectAgreement(3_000));

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
});
