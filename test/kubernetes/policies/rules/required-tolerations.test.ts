import { describe, expect, it } from 'vitest';
import { EffectivePolicy } from '../../../../src/kubernetes/policies/effective-policy.ts';
import { pod, policy, reasonsFor, reasonsOf, review } from '../../../support/scheduling-policies.ts';

/** Why a pod with tolerations is refused by the policies a, b, …; defaults are added. */
const judged = (tolerations: string, ...specs: string[]) =>
  reasonsFor(`tolerations: ${tolerations}`, ...specs);

const GPU = 'tolerations: [{keys: [gpu], operators: [Exists], effects: [NoSchedule]}]';
const EITHER = 'tolerations: [{keys: [gpu]}, {keys: [spot], operators: [Equal], values: ["1"]}]';
const gpu = '{key: gpu, operator: Exists, effect: NoSchedule}';
const notReady =
  '{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}';

describe('required tolerations', () => {
  it('must be present, and are allowed', () => {
    expect(judged(`[${gpu}]`, `required: {${GPU}}`)).toEqual([]);
    expect(judged('[]', `required: {${GPU}}`)).toEqual([
      'tolerations: expected gpu Exists, NoSchedule, which is required (scheduling policy a)',
    ]);
    expect(judged('null', `required: {${GPU}}`)).toHaveLength(1);
  });

  it('are met by one that satisfies one of them', () => {
    expect(judged('[{key: spot, value: "1"}]', `required: {${EITHER}}`)).toEqual([]);
    expect(judged(`[${gpu}]`, `required: {${EITHER}}`)).toEqual([]);
    expect(judged('[{key: spot, value: "2"}]', `required: {${EITHER}}`)).toEqual([
      'tolerations[0]: expected one that is allowed, got "spot" Equal "2", every effect (scheduling policy a)',
      'tolerations: expected gpu, any effect or spot Equal 1, any effect, which is required (scheduling policy a)',
    ]);
  });

  it('do not replace what else is allowed', () => {
    const specs = [`required: {${GPU}}`, 'allowed: {tolerations: [{keys: [spot]}]}'];
    expect(judged(`[${gpu}, {key: spot, operator: Exists}]`, ...specs)).toEqual([]);
    expect(judged('[{key: spot, operator: Exists}]', ...specs)).toHaveLength(1);
    expect(judged(`[${gpu}, {key: ci, operator: Exists}]`, ...specs)).toHaveLength(1);
  });

  it('are not met by broader tolerations, or by those of the system', () => {
    expect(judged('[{operator: Exists}]', `{required: {${GPU}}, allowed: {tolerations: []}}`)).toHaveLength(
      1,
    );
    expect(judged(`[${notReady}]`, 'required: {tolerations: [{effects: [NoExecute]}]}')).toHaveLength(1);
  });

  it('are met by a default if the pod has none', () => {
    const spec = `{required: {${GPU}}, default: {tolerations: [${gpu}]}}`;
    for (const tolerations of ['[]', `[${notReady}]`]) {
      const { allowed, pod: completed } = review([policy('a', spec)], pod(`tolerations: ${tolerations}`));
      expect(allowed).toBe(true);
      expect(completed.spec.tolerations?.at(-1)).toMatchObject({ key: 'gpu' });
    }
  });

  it('come from the first policy that has some, or from each in an intersection', () => {
    const specs = [`required: {${GPU}}`, 'required: {tolerations: [{keys: [spot]}]}'];
    expect(judged(`[${gpu}]`, ...specs)).toEqual([]);
    expect(judged('[{key: spot, operator: Exists}]', ...specs)).toHaveLength(2);
    const both = new EffectivePolicy(
      specs.map((spec, index) => policy('ab'.charAt(index), spec)),
      'intersection',
    ).review(pod(`tolerations: [${gpu}]`), { addDefaults: true });
    expect(reasonsOf(both).map((reason) => /policy (.)\)$/.exec(reason)?.[1])).toEqual(['b', 'b']);
  });
});
