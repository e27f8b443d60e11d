import { describe, expect, it } from 'vitest';
import { EffectivePolicy } from '../../../src/kubernetes/policies/effective-policy.ts';
import type { MergeStrategy } from '../../../src/kubernetes/policies/merge.ts';
import { policy, reasonsOf } from '../../support/scheduling-policies.ts';

describe('node labels that something other than a pod requests', () => {
  const effective = (strategy: MergeStrategy, ...specs: string[]) =>
    new EffectivePolicy(
      specs.map((one, index) => policy('abc'.charAt(index), one)),
      strategy,
    );
  const gpu = effective(
    'deep',
    '{required: {nodeSelectors: {gpu: ["True", "False"]}}, default: {nodeSelector: {gpu: "False", zone: n}}}',
  );
  const addDefaults = { addDefaults: true };

  it('get the defaults of missing labels', () => {
    expect(gpu.reviewNodeSelectors([], 'resource_properties', addDefaults)).toEqual({
      added: [
        { label: 'gpu', value: 'False' },
        { label: 'zone', value: 'n' },
      ],
      reasons: [],
    });
    expect(
      gpu.reviewNodeSelectors([{ label: 'gpu', value: 'True' }], 'resource_properties', addDefaults),
    ).toEqual({
      added: [{ label: 'zone', value: 'n' }],
      reasons: [],
    });
  });

  it('may name a label more than once, and each is judged', () => {
    const twice = ['True', 'maybe'].map((value) => ({ label: 'gpu', value }));
    const { added, reasons } = gpu.reviewNodeSelectors(twice, 'resource_properties', addDefaults);
    expect(added).toEqual([]);
    expect(reasonsOf({ reasons })).toEqual([
      'resource_properties gpu: expected True or False, got "maybe" (scheduling policy a)',
    ]);
  });

  it('without a fixed value need a rule that allows any', () => {
    const asked = [{ label: 'memory', value: undefined, written: '> 1024' }];
    const judged = (spec: string) =>
      reasonsOf(effective('deep', spec).reviewNodeSelectors(asked, 'resource_properties', addDefaults));
    expect(judged('allowed: {nodeSelectors: {memory: []}}')).toEqual([]);
    expect(judged('allowed: {nodeSelectors: {}}')).toEqual([]);
    expect(judged('required: {nodeSelectors: {memory: []}}')).toEqual([]);
    expect(judged('allowed: {nodeSelectors: {memory: ["1024"]}}')).toEqual([
      'resource_properties memory: expected 1024, got > 1024 (scheduling policy a)',
    ]);
    expect(judged('{}')).toHaveLength(1);
  });

  it('must be allowed by each policy of an intersection, with its own defaults', () => {
    const requiring = '{required: {nodeSelectors: {gpu: ["True"]}}, allowed: {nodeSelectors: {}}}';
    const helping = '{allowed: {nodeSelectors: {}}, default: {nodeSelector: {gpu: "True"}}}';
    const judged = (label: string, ...specs: string[]) =>
      effective('intersection', ...specs).reviewNodeSelectors(
        [{ label, value: 'True' }],
        'properties',
        addDefaults,
      );
    expect(judged('gpu', requiring, helping)).toEqual({ added: [], reasons: [] });
    expect(reasonsOf(judged('zone', requiring, helping))).toEqual([
      'properties gpu: expected True, got nothing (scheduling policy a)',
    ]);
    expect(reasonsOf(judged('gpu', requiring, 'required: {nodeSelectors: {gpu: ["False"]}}'))).toEqual([
      'properties gpu: conflicting requirements: a requires True and b requires False (scheduling policies a and b)',
    ]);
  });
});
