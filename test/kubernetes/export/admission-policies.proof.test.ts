/** Exported policies, evaluated as CEL, judge random pods and bindings as the webhook does. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type AdmissionCase, admissionCases, bothOf } from './admission-policy-cases.ts';

it('exported ValidatingAdmissionPolicies judge pods, DaemonSets and bindings as the webhook does that may not add defaults', () => {
  const seen = new Map<string, number>();
  fc.assert(
    fc.property(admissionCases, (one: AdmissionCase) => {
      const { webhook, exported } = bothOf(one);
      if (exported.allowed !== webhook) {
        expect({ ...exported, webhook }).toEqual({ allowed: webhook, webhook });
      }
      const kind = `${one.strategy} ${one.subject} ${webhook ? 'allowed' : 'refused'}`;
      seen.set(kind, (seen.get(kind) ?? 0) + 1);
    }),
    { numRuns: 2_000 },
  );
  // Each strategy allowed and refused each kind of request.
  expect(seen.size).toBe(24);
});
