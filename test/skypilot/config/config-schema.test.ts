/** How SkyPilot merges, rule by rule. Source: SkyPilot docs, "Configuration Sources and Overrides", and SkyPilot 0.13. */
import { describe, expect, it } from 'vitest';
import type { Mapping } from '../../../src/base/yaml/tree.ts';
import { MergeError, merge } from '../../../src/config/merge.ts';
import { skypilotRules } from '../../../src/skypilot/config/config-schema.ts';

const merged = (base: Mapping, over: Mapping) => merge(base, over, skypilotRules);
const pod = (spec: Mapping) => ({ kubernetes: { pod_config: { spec } } });
/** What becomes of one list in a pod. */
const inPod = (name: string, base: unknown, over: unknown) =>
  (merged(pod({ [name]: base }), pod({ [name]: over })) as ReturnType<typeof pod>).kubernetes.pod_config.spec[
    name
  ];

describe('outside of a pod', () => {
  it('mappings merge, and lists are replaced', () => {
    expect(
      merged(
        { allowed_clouds: ['aws', 'gcp'], gcp: { vpc_name: 'a', labels: { x: 1 } } },
        { allowed_clouds: ['k8s'], gcp: { vpc_name: null, labels: { y: 2 } } },
      ),
    ).toEqual({ allowed_clouds: ['k8s'], gcp: { vpc_name: null, labels: { x: 1, y: 2 } } });
  });

  it.for([
    ['in kubernetes itself', (list: unknown) => ({ kubernetes: { allowed_contexts: list } })],
    [
      'of a context',
      (list: unknown) => ({
        kubernetes: { context_configs: { west: { pod_config: { spec: { tolerations: list } } } } },
      }),
    ],
    ['of a pod that belongs to nobody', (list: unknown) => ({ pod_config: { spec: { tolerations: list } } })],
  ] as const)('lists are replaced %s', ([, around]) => {
    expect(merged(around([{ key: 'a' }]), around([{ key: 'b' }]))).toEqual(around([{ key: 'b' }]));
  });
});

describe('in a pod', () => {
  it('lists are concatenated, with duplicates', () => {
    expect(inPod('tolerations', [{ key: 'a' }], [{ key: 'b' }, { key: 'a' }])).toEqual([
      { key: 'a' },
      { key: 'b' },
      { key: 'a' },
    ]);
  });

  it('lists are concatenated in custom_metadata, and in kubernetes of a workspace', () => {
    const around = (list: unknown) => ({
      workspaces: { ml: { kubernetes: { custom_metadata: { finalizers: list } } } },
    });
    expect(merged(around(['a']), around(['b']))).toEqual(around(['a', 'b']));
  });

  it.for(['args', 'command'])('%s are replaced', (name) => {
    expect(inPod(name, ['a', 'b'], ['c'])).toEqual(['c']);
  });

  it('a container without a name is the first one', () => {
    const over = [{ image: 'b', args: ['y'], env: [{ name: 'B', value: '2' }] }];
    const base = [
      { name: 'main', image: 'a', args: ['x'], env: [{ name: 'A', value: '1' }] },
      { name: 'proxy' },
    ];
    expect(inPod('containers', base, over)).toEqual([
      {
        name: 'main',
        image: 'b',
        args: ['y'],
        env: [
          { name: 'A', value: '1' },
          { name: 'B', value: '2' },
        ],
      },
      { name: 'proxy' },
    ]);
  });

  it.for([
    ['initContainers', 'name'],
    ['volumeMounts', 'mountPath'],
    ['hostAliases', 'ip'],
    ['topologySpreadConstraints', 'topologyKey'],
  ] as const)('items of %s with the same %s merge', ([name, key]) => {
    const base = [
      { [key]: 'one', kept: 1, changed: 1 },
      { [key]: 'two', kept: 2 },
    ];
    const over = [{ [key]: 'two', changed: 2 }, { [key]: 'three' }, { nameless: true }];
    expect(inPod(name, base, over)).toEqual([
      base[0],
      { [key]: 'two', kept: 2, changed: 2 },
      { [key]: 'three' },
      { nameless: true },
    ]);
  });

  it.for([[[]], [[{ name: 'c' }]], [[{ name: 'c' }, { name: 'd' }]]])(
    'image pull secrets are replaced, and an empty list drops them: %j',
    ([over]) => {
      for (const base of [[{ name: 'a', x: 1 }, { name: 'b' }], [], { name: 'a' }]) {
        expect(inPod('imagePullSecrets', base, over)).toEqual(over);
      }
    },
  );

  it.for([{ a: 1 }, 'a', 0, false, null])('a list over %j is a mistake, except where it replaces', (base) => {
    expect(() => inPod('tolerations', base, [{ key: 'b' }])).toThrow(MergeError);
    expect(inPod('args', base, ['b'])).toEqual(['b']);
  });

  it('containers and pull secrets of another shape are a mistake', () => {
    expect(() => inPod('containers', { name: 'main' }, [{ name: 'other' }])).toThrow(MergeError);
    expect(() => inPod('imagePullSecrets', [{ name: 'a' }], { name: 'b' })).toThrow(MergeError);
  });
});
