/** The PriorityClass with globalDefault: the API server gives it to pods that name none, before a webhook sees them. */
import { describe, expect, it } from 'vitest';
import { Cluster } from '../../../src/kubernetes/policies/cluster-settings.ts';
import { EffectivePolicy } from '../../../src/kubernetes/policies/effective-policy.ts';
import { pod, policy, reasonsOf } from '../../support/scheduling-policies.ts';

/** As the API server leaves a pod that names none. */
const FILLED_IN = { priorityClassName: 'everybody', priority: 100, preemptionPolicy: 'PreemptLowerPriority' };

const review = (spec: object, policySpec: string, defaultPriorityClass: string | undefined = 'everybody') =>
  new EffectivePolicy([policy('a', policySpec)], 'deep', new Cluster({ defaultPriorityClass })).review(
    pod(spec),
    { addDefaults: true },
  );

describe('a plain pod with a default class of the cluster', () => {
  it('needs no permission for that class', () => {
    expect(review(FILLED_IN, '{}')).toMatchObject({ allowed: true, pod: { spec: FILLED_IN } });
    expect(review(FILLED_IN, 'allowed: {priorityClassNames: [gold]}').allowed).toBe(true);
  });

  it('is rejected if the class is not configured as the default', () => {
    expect(review(FILLED_IN, '{}', '').allowed).toBe(false);
    expect(review(FILLED_IN, '{}', 'others').allowed).toBe(false);
    expect(review({ priorityClassName: 'gold' }, '{}').allowed).toBe(false);
  });

  it('gets the default of a policy instead, without the computed fields', () => {
    for (const spec of [
      'default: {priorityClassName: bronze}',
      '{required: {priorityClassNames: [bronze]}, default: {priorityClassName: bronze}}',
      '{allowed: {priorityClassNames: []}, default: {priorityClassName: bronze}}',
    ]) {
      const { allowed, pod: completed } = review(FILLED_IN, spec);
      expect(allowed).toBe(true);
      expect(completed.spec).toEqual({ priorityClassName: 'bronze' });
    }
  });

  it('keeps the class if a policy lists it', () => {
    const listing = '{allowed: {priorityClassNames: [everybody]}, default: {priorityClassName: bronze}}';
    expect(review(FILLED_IN, listing)).toMatchObject({ allowed: true, pod: { spec: FILLED_IN } });
  });

  it('does not meet a requirement by it', () => {
    expect(reasonsOf(review(FILLED_IN, 'required: {priorityClassNames: [gold]}'))).toEqual([
      'priorityClassName: expected gold, got "everybody" (scheduling policy a)',
    ]);
    expect(review(FILLED_IN, 'required: {priorityClassNames: [everybody]}').allowed).toBe(true);
  });
});
