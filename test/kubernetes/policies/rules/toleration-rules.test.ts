import { describe, expect, it } from 'vitest';
import { pod, policy, proposalPolicies, reasonsOf, review } from '../../../support/scheduling-policies.ts';

const rule = (parts: object) => [policy('a', { allowed: { tolerations: [parts] } })];
const isAllowed = (policies: ReturnType<typeof rule>, toleration: object) =>
  review(policies, pod({ tolerations: [toleration] })).allowed;

describe('the fine-grained tolerations of the proposal', () => {
  const fine = proposalPolicies(7);

  it.each([
    { key: 'mykey', operator: 'Equal', value: 'value', effect: 'NoSchedule' },
    { key: 'mykey', value: 'value', effect: 'NoSchedule' },
    { key: 'mykey', operator: '', value: 'value', effect: 'NoSchedule' },
    { key: 'other_key', operator: 'Exists', effect: 'NoExecute' },
    { key: 'other_key', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60 },
  ])('allow %j', (toleration) => {
    expect(isAllowed(fine, toleration)).toBe(true);
  });

  it.each([
    [
      { key: 'mykey', operator: 'Equal', value: 'other', effect: 'NoSchedule' },
      '"mykey" Equal "other", "NoSchedule"',
    ],
    [
      { key: 'mykey', operator: 'Equal', value: 'value', effect: 'NoExecute' },
      '"mykey" Equal "value", "NoExecute"',
    ],
    [{ key: 'mykey', operator: 'Equal', value: 'value' }, '"mykey" Equal "value", every effect'],
    [{ key: 'mykey', operator: 'Exists', effect: 'NoSchedule' }, '"mykey" with any value, "NoSchedule"'],
    [{ key: 'other_key', value: 'x', effect: 'NoExecute' }, '"other_key" Equal "x", "NoExecute"'],
    [{ key: 'other_key', effect: 'NoExecute' }, '"other_key" Equal "", "NoExecute"'],
    [{ key: 'third', operator: 'Exists', effect: 'NoExecute' }, '"third" with any value, "NoExecute"'],
    [{ operator: 'Exists', effect: 'NoExecute' }, 'every key with any value, "NoExecute"'],
    [{ operator: 'Exists' }, 'every key with any value, every effect'],
    [{ key: '', operator: 'Exists', effect: '' }, 'every key with any value, every effect'],
  ])('refuse %j', (toleration, got) => {
    expect(reasonsOf(review(fine, pod({ tolerations: [toleration] })))).toEqual([
      `tolerations[0]: expected one that is allowed, got ${got} (scheduling policy example)`,
    ]);
  });
});

describe('the coarse-grained tolerations of the proposal', () => {
  const coarse = proposalPolicies(8);

  it.each([
    { key: 'any', operator: 'Equal', value: 'x', effect: 'PreferNoSchedule' },
    { operator: 'Exists', effect: 'PreferNoSchedule' },
    { key: 'any', operator: 'Exists', effect: 'NoSchedule' },
    { operator: 'Exists', effect: 'NoSchedule' },
  ])('allow %j', (toleration) => {
    expect(isAllowed(coarse, toleration)).toBe(true);
  });

  it.each([
    { operator: 'Exists', effect: 'NoExecute' },
    { key: 'any', value: 'x', effect: 'NoExecute' },
    { key: 'any', value: 'x', effect: 'NoSchedule' },
    // All effects, of which no rule allows more than one.
    { operator: 'Exists' },
  ])('refuse %j', (toleration) => {
    expect(isAllowed(coarse, toleration)).toBe(false);
  });

  it.each([9, 10])('allow everything if the list or a rule is empty (example %i)', (number) => {
    for (const toleration of [{ operator: 'Exists' }, { key: 'k', value: 'v', effect: 'NoExecute' }]) {
      expect(isAllowed(proposalPolicies(number), toleration)).toBe(true);
    }
  });
});

describe('a toleration', () => {
  it('is rejected if no policy mentions tolerations, and optional', () => {
    expect(
      reasonsOf(review([policy('a', {})], pod('{tolerations: [{key: gpu, operator: Exists}]}'))),
    ).toEqual([
      'tolerations[0]: expected nothing, got "gpu" with any value, every effect (no scheduling policy of the account mentions it)',
    ]);
    for (const tolerations of [undefined, null, []]) {
      expect(review([], pod({ tolerations })).allowed).toBe(true);
    }
  });

  it('is named by its position', () => {
    const tolerations = [{ key: 'gpu', value: 'a' }, { key: 'x' }, { key: 'gpu', value: 'b' }, { key: 'y' }];
    const { reasons } = review(rule({ keys: ['gpu'] }), pod({ tolerations }));
    expect(reasons.map(({ field }) => field)).toEqual(['tolerations[1]', 'tolerations[3]']);
  });

  it('without effect needs a rule for any or for all three', () => {
    const toleration = { key: 'gpu', operator: 'Exists' };
    expect(isAllowed(rule({ keys: ['gpu'] }), toleration)).toBe(true);
    expect(isAllowed(rule({ effects: ['NoExecute', 'NoSchedule', 'PreferNoSchedule'] }), toleration)).toBe(
      true,
    );
    expect(isAllowed(rule({ effects: ['NoExecute', 'NoSchedule'] }), toleration)).toBe(false);
  });

  it('is not allowed by several rules that only together cover it', () => {
    const each = ['NoExecute', 'NoSchedule', 'PreferNoSchedule'].map((effect) => ({ effects: [effect] }));
    const policies = [policy('a', { allowed: { tolerations: each } })];
    expect(isAllowed(policies, { key: 'gpu', operator: 'Exists' })).toBe(false);
  });

  it('without key needs a rule for any key', () => {
    const toleration = { operator: 'Exists', effect: 'NoSchedule' };
    expect(isAllowed(rule({ keys: [] }), toleration)).toBe(true);
    expect(isAllowed(rule({ keys: ['gpu'] }), toleration)).toBe(false);
  });

  it('that tolerates any value needs a rule without values, or with Exists', () => {
    const toleration = { key: 'gpu', operator: 'Exists', effect: 'NoSchedule' };
    expect(isAllowed(rule({ keys: ['gpu'] }), toleration)).toBe(true);
    expect(isAllowed(rule({ values: ['a100'] }), toleration)).toBe(false);
    expect(isAllowed(rule({ values: ['a100'], operators: ['Equal'] }), toleration)).toBe(false);
    expect(isAllowed(rule({ values: ['a100'], operators: ['Equal', 'Exists'] }), toleration)).toBe(true);
    expect(isAllowed(rule({ operators: ['Equal'] }), toleration)).toBe(false);
  });

  it('with one value is not allowed by Exists alone', () => {
    expect(isAllowed(rule({ operators: ['Exists'] }), { key: 'gpu', value: 'a100' })).toBe(false);
  });

  it('without a value has the empty value', () => {
    expect(isAllowed(rule({ values: [''] }), { key: 'gpu' })).toBe(true);
    expect(isAllowed(rule({ values: ['a100'] }), { key: 'gpu', value: null })).toBe(false);
  });

  it('is allowed by a rule of any policy', () => {
    const policies = [
      ...rule({ keys: ['gpu'] }),
      policy('b', { allowed: { tolerations: [{ keys: ['spot'] }] } }),
    ];
    expect(isAllowed(policies, { key: 'spot' })).toBe(true);
    expect(isAllowed([...policies, policy('c', 'allowed: {tolerations: []}')], { operator: 'Exists' })).toBe(
      true,
    );
    expect(reasonsOf(review(policies, pod('{tolerations: [{key: x}]}'))).join()).toMatch(
      /\(scheduling policies a and b\)$/,
    );
  });
});

describe('default tolerations', () => {
  const defaults = proposalPolicies(11);
  const added = [
    { key: 'mykey', operator: 'Equal', value: 'value', effect: 'NoSchedule' },
    { key: 'mykey', operator: 'Equal', value: 'other_value', effect: 'NoSchedule' },
    { key: 'other_key', operator: 'Exists', effect: 'NoExecute' },
  ];
  const ofTheSystem = ['not-ready', 'unreachable'].map((name) => ({
    key: `node.kubernetes.io/${name}`,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: 300,
  }));

  it.each([undefined, null, []])('are added where a pod has %j, one for each value', (tolerations) => {
    const { allowed, pod: reviewed } = review(defaults, pod({ tolerations }));
    expect(allowed).toBe(true);
    expect(reviewed.spec.tolerations).toEqual(added);
  });

  it('are allowed exactly as they are', () => {
    for (const toleration of added) {
      const asked = pod({ tolerations: [toleration] });
      expect(review(defaults, asked)).toEqual({ allowed: true, pod: asked, reasons: [] });
    }
    expect(isAllowed(defaults, { key: 'mykey', value: 'value', effect: 'NoSchedule' })).toBe(true);
    for (const toleration of [
      { key: 'mykey', value: 'value' },
      { key: 'mykey', value: 'third', effect: 'NoSchedule' },
      { key: 'mykey', operator: 'Exists', effect: 'NoSchedule' },
      { key: 'other_key', operator: 'Exists' },
      { key: 'other_key', value: 'x', effect: 'NoExecute' },
      { operator: 'Exists', effect: 'NoExecute' },
    ]) {
      expect(isAllowed(defaults, toleration)).toBe(false);
    }
  });

  it('that are broad allow broad tolerations', () => {
    const all = [policy('a', 'default: {tolerations: [{operator: Exists}]}')];
    expect(isAllowed(all, { operator: 'Exists' })).toBe(true);
    expect(isAllowed(all, { key: 'gpu', operator: 'Exists', effect: 'NoExecute' })).toBe(true);
    expect(isAllowed(all, { key: 'gpu', value: 'x' })).toBe(false);
  });

  it('are added after those of the system', () => {
    const { allowed, pod: reviewed } = review(defaults, pod({ tolerations: ofTheSystem }));
    expect(allowed).toBe(true);
    expect(reviewed.spec.tolerations).toEqual([...ofTheSystem, ...added]);
  });

  it('are not added twice', () => {
    const ours = [policy('a', { default: { tolerations: [ofTheSystem[1], { key: 'gpu' }] } })];
    expect(review(ours, pod({ tolerations: ofTheSystem })).pod.spec.tolerations).toEqual([
      ...ofTheSystem,
      { key: 'gpu' },
    ]);
    const twice = [
      policy('a', 'default: {tolerations: [{key: gpu, values: [a, b, a]}, {key: gpu, value: b}]}'),
    ];
    expect(review(twice, pod()).pod.spec.tolerations).toEqual([
      { key: 'gpu', value: 'a' },
      { key: 'gpu', value: 'b' },
    ]);
  });

  it('are not added to a pod with its own', () => {
    const policies = [...defaults, policy('more', 'allowed: {tolerations: [{keys: [gpu]}]}')];
    const asked = pod({ tolerations: [...ofTheSystem, { key: 'gpu' }] });
    expect(review(policies, asked)).toEqual({ allowed: true, pod: asked, reasons: [] });
  });
});
