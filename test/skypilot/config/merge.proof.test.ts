/** Merging, override keys and dropped keys beside SkyPilot's own functions, for random configurations. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatPath, type Mapping } from '../../../src/base/yaml/tree.ts';
import { MergeError } from '../../../src/config/merge.ts';
import { Config } from '../../../src/skypilot/config/config.ts';
import { SERVER_KEYS, TASK_KEYS } from '../../../src/skypilot/config/config-schema.ts';
import { type Level, mergeSources } from '../../../src/skypilot/config/layers.ts';
import { OverrideKeyError } from '../../../src/skypilot/config/permitted-keys.ts';
import { askSkypilot, skypilotSource } from '../../support/skypilot-source.ts';

const source = skypilotSource();
const RUNS = 10_000;

interface Answer<Value> {
  readonly value?: Value;
  readonly refused?: string;
  readonly crash?: string;
}

const optional = (members: Record<string, fc.Arbitrary<unknown>>) =>
  fc.record(members, { requiredKeys: [], noNullPrototype: true });
const text = fc.constantFrom('a', 'b', 'c');
const items = (key: string) =>
  fc.array(
    optional({
      [key]: fc.oneof({ weight: 9, arbitrary: text }, fc.constant(null)),
      x: text,
      args: fc.array(text),
    }),
    { maxLength: 3 },
  );
/** Mostly of its own kind, now and then of another. */
const mostly = (arbitrary: fc.Arbitrary<unknown>) =>
  fc.oneof(
    { weight: 30, arbitrary },
    { weight: 1, arbitrary: text },
    { weight: 1, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: fc.constant([{ x: 1 }]) },
    { weight: 1, arbitrary: fc.constant({ x: 1 }) },
  );
const spec = optional({
  containers: mostly(items('name')),
  initContainers: mostly(items('name')),
  volumes: mostly(items('name')),
  volumeMounts: mostly(items('mountPath')),
  hostAliases: mostly(items('ip')),
  tolerations: mostly(items('key')),
  imagePullSecrets: mostly(items('name')),
  args: mostly(fc.array(text)),
  nodeSelector: mostly(optional({ a: text, b: text })),
});
const metadata = optional({ labels: mostly(optional({ a: text, b: text })), finalizers: fc.array(text) });
const kubernetes = optional({
  pod_config: optional({ spec, metadata }),
  custom_metadata: metadata,
  allowed_contexts: mostly(fc.array(text)),
  context_configs: optional({ a: optional({ pod_config: optional({ spec }) }) }),
});
const configuration = optional({
  kubernetes,
  ssh: optional({ pod_config: optional({ spec }) }),
  aws: mostly(optional({ vpc_name: mostly(text), labels: optional({ a: text }) })),
  workspaces: optional({ one: optional({ kubernetes }) }),
}) as fc.Arbitrary<Mapping>;

function outcome(work: () => unknown): unknown {
  try {
    return { value: work() };
  } catch (thrown) {
    if (thrown instanceof MergeError || thrown instanceof OverrideKeyError) {
      return 'refused';
    }
    throw thrown;
  }
}

describe.skipIf(source === undefined)('beside SkyPilot', () => {
  it('merges the same, and refuses the same', () => {
    const questions = fc
      .sample(fc.tuple(configuration, configuration), RUNS)
      .map(([base, over]) => ({ base, over, allowed: null, disallowed: null }));
    const answers = askSkypilot<Answer<unknown>>(source ?? '', 'skypilot-merge.py', questions);
    const counts = { value: 0, refused: 0, crash: 0 };
    for (const [index, { base, over }] of questions.entries()) {
      const { value, refused, crash } = answers[index] ?? {};
      const own = outcome(() => Config.fromDict(base).getNested([], null, over));
      // Where SkyPilot crashes, there is nothing to compare.
      counts[crash !== undefined ? 'crash' : refused === undefined ? 'value' : 'refused'] += 1;
      if (crash === undefined) {
        expect(own, JSON.stringify({ base, over })).toEqual(refused === undefined ? { value } : 'refused');
      }
    }
    expect(counts.value).toBeGreaterThan(RUNS / 4);
    expect(counts.refused).toBeGreaterThan(RUNS / 50);
  });

  it('refuses every override that SkyPilot refuses', () => {
    const key = fc.array(text, { minLength: 1, maxLength: 3 });
    const keys = fc.option(fc.array(key, { maxLength: 3 }));
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof({ maxDepth: 3 }, fc.integer(), fc.constant(null), tie('mapping')),
      mapping: optional({ a: tie('tree'), b: tie('tree'), c: tie('tree') }),
    }));
    const mapping = optional({ a: tree, b: tree, c: tree }) as fc.Arbitrary<Mapping>;
    const questions = fc
      .sample(fc.tuple(mapping, mapping, keys, keys), RUNS)
      .map(([base, over, allowed, disallowed]) => ({ base, over, allowed, disallowed }));
    const answers = askSkypilot<Answer<unknown>>(source ?? '', 'skypilot-merge.py', questions);
    let refusals = 0;
    for (const [index, { base, over, allowed, disallowed }] of questions.entries()) {
      const { value, refused } = answers[index] ?? {};
      const own = outcome(() =>
        Config.fromDict(base).getNested([], null, over, {
          allowedOverrideKeys: allowed,
          disallowedOverrideKeys: disallowed,
        }),
      );
      if (refused !== undefined) {
        refusals += 1;
        expect(own, JSON.stringify(questions[index])).toBe('refused');
      } else if (own !== 'refused') {
        expect(own).toEqual({ value });
      }
    }
    expect(refusals).toBeGreaterThan(RUNS / 10);
  });

  it('has the keys of SkyPilot, and a few that are stricter or newer', () => {
    const [answer] = askSkypilot<Answer<{ task: string[][]; server: string[][] }>>(
      source ?? '',
      'skypilot-merge.py',
      [{ keys: true }],
    );
    const names = (keys: readonly (readonly string[])[]) => keys.map(formatPath);
    const beyond = (own: readonly string[], theirs: readonly string[]) => ({
      more: own.filter((one) => !theirs.includes(one)),
      missing: theirs.filter((one) => !own.includes(one)),
    });
    const { task = [], server = [] } = answer?.value ?? {};
    expect(beyond(names(TASK_KEYS), names(task))).toEqual({ more: ['slurm.quota'], missing: [] });
    expect(beyond(names(SERVER_KEYS), names(server))).toEqual({
      more: ['admin_policy', 'rbac', 'slurm.username_map'],
      missing: [],
    });
  });

  it('drops and warns about the same keys of a client', () => {
    const value = fc.oneof({ weight: 3, arbitrary: fc.constantFrom<unknown>(1, 2) }, fc.constant(null));
    const nested = optional({
      consolidation_mode: value,
      controller_logs_gc_retention_hours: value,
      other: value,
    });
    const tree = optional({
      allowed_clouds: value,
      workspaces: value,
      metrics: value,
      api_server: value,
      daemons: value,
      active_workspace: text,
      jobs: optional({ bucket: value, controller: nested }),
      serve: optional({ controller: nested }),
      slurm: optional({ cluster_configs: value, submit_as_user: value, cpu_partition: value }),
    }) as fc.Arbitrary<Mapping>;
    const questions = fc.sample(fc.tuple(tree, tree), RUNS).map(([server, client]) => ({ server, client }));
    const answers = askSkypilot<Answer<{ tree: Mapping; warned: string[] }>>(
      source ?? '',
      'skypilot-merge.py',
      questions,
    );
    for (const [index, { server, client }] of questions.entries()) {
      const level = (name: Level, of: Mapping) => ({
        level: name,
        tree: of,
        originOf: () => ({ kind: 'code' }) as const,
      });
      const own = mergeSources([level('server', server), level('user', client)]);
      const warned = own.dropped.filter(({ reason }) => reason === 'server').map(({ key }) => key);
      const expected = answers[index]?.value;
      expect(warned.toSorted(), JSON.stringify(questions[index])).toEqual(expected?.warned.toSorted());
      // SkyPilot leaves mappings behind from which it has taken everything.
      expect(withoutEmpty(own.tree)).toEqual(withoutEmpty(expected?.tree ?? {}));
    }
  });
});

function withoutEmpty(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return value;
  }
  const members = Object.entries(value)
    .map(([name, member]) => [name, withoutEmpty(member)] as const)
    .filter(([, member]) => JSON.stringify(member) !== '{}');
  return Object.fromEntries(members);
}
