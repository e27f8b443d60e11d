import { describe, expect, it } from 'vitest';
import { ConfigurationError, formatOrigin, formatProblem } from '../../../src/base/errors.ts';
import { YamlDocument } from '../../../src/base/yaml/document.ts';
import { formatPath, nested } from '../../../src/base/yaml/tree.ts';
import { taskConfig } from '../../../src/skypilot/config/config-file.ts';
import { SERVER_KEYS, TASK_KEYS } from '../../../src/skypilot/config/config-schema.ts';
import { LEVELS, type Level, mergeSources, workspaceProblems } from '../../../src/skypilot/config/layers.ts';
import { configSource } from '../../support/skypilot.ts';

const merged = (texts: Partial<Record<Level, string>>) =>
  mergeSources(Object.entries(texts).map(([level, yaml]) => configSource(level as Level, yaml)));

/** `key = value < the source that won < what it has beaten`, a line each. */
function explained(texts: Partial<Record<Level, string>>): string[] {
  return merged(texts).leaves.map(({ path, value, source: won, beats }) =>
    [
      `${formatPath(path)} = ${JSON.stringify(value)}`,
      ...[won, ...beats].map(({ origin }) => formatOrigin(origin)),
    ].join(' < '),
  );
}

const dropped = (texts: Partial<Record<Level, string>>) =>
  merged(texts).dropped.map(({ key, reason, place }) => `${reason} ${key} ${formatOrigin(place.origin)}`);

const yamlOf = (value: unknown) => YamlDocument.from(value).toString();

describe('the order of the sources', () => {
  const provision = (seconds: number) => `kubernetes:\n  provision_timeout: ${seconds}\n`;

  it.for(LEVELS.map((_, count) => LEVELS.slice(0, count + 1)))('%s: the last one wins', (levels) => {
    const texts = Object.fromEntries(levels.map((level, index) => [level, provision(index)]));
    const places = [...levels].reverse().map((level) => `${level}:2`);
    expect(explained(texts)).toEqual([
      [`kubernetes.provision_timeout = ${levels.length - 1}`, ...places].join(' < '),
    ]);
  });

  it('applies pairs of the command line in order', () => {
    const pair = (yaml: string) => configSource('command line', yaml);
    const { tree } = mergeSources([
      pair('a: 1\nkubernetes: {pod_config: {tolerations: [x]}}'),
      pair('a: 2\nkubernetes: {pod_config: {tolerations: [y]}}'),
    ]);
    expect(tree).toEqual({ a: 2, kubernetes: { pod_config: { tolerations: ['x', 'y'] } } });
  });

  it('does not modify sources, and merges an empty list', () => {
    const server = configSource('server', 'a:\n  b: [1]\n');
    const before = structuredClone(server.tree);
    mergeSources([server, configSource('user', 'a:\n  b: [2]\n  c: 3\n')]);
    expect(server.tree).toEqual(before);
    expect(mergeSources([])).toEqual({ tree: {}, leaves: [], dropped: [] });
  });
});

describe('merging', () => {
  it('reports the source of each value, and the sources that it overrides', () => {
    expect(
      explained({
        server: 'a:\n  x: 1\n  y: 2\nlist:\n  - 1\n  - 2\nempty: {}\n',
        user: 'a:\n  y: 3\nlist:\n  - 3\n  - x: 4\n',
        project: 'a: null\n',
      }),
    ).toEqual([
      'a = null < project:1 < server:2 < user:2 < server:3',
      'list = [3,{"x":4}] < user:3 < server:4',
      'empty = {} < server:7',
    ]);
  });

  it('reports the source of each item of a concatenated list', () => {
    const tolerations = (...keys: string[]) =>
      `kubernetes:\n  pod_config:\n    spec:\n      tolerations:\n${keys.map((key) => `        - ${key}\n`).join('')}`;
    expect(
      explained({ server: tolerations('a', 'b'), user: tolerations('b'), task: tolerations('c') }),
    ).toEqual([
      'kubernetes.pod_config.spec.tolerations[0] = "a" < server:5',
      'kubernetes.pod_config.spec.tolerations[1] = "b" < server:6',
      'kubernetes.pod_config.spec.tolerations[2] = "b" < user:5',
      'kubernetes.pod_config.spec.tolerations[3] = "c" < task:5',
    ]);
  });

  it('refuses a list over a mapping, with its line', () => {
    const pod = (text: string) => `kubernetes:\n  pod_config:\n    spec:\n      ${text}\n`;
    const server = pod('tolerations: {key: a}');
    expect(problemsOf(() => merged({ server, project: pod('x: 1\n      tolerations: [a, b]') }))).toEqual([
      'project:5: kubernetes.pod_config.spec.tolerations: expected no list, because the value that it overrides is a mapping',
    ]);
  });

  it('names the list if an item of a concatenated list cannot be merged', () => {
    const pod = (text: string) => `kubernetes:\n  pod_config:\n    containers:\n${text}`;
    const server = pod('      - name: a\n      - name: b\n        env: x\n');
    const user = pod('      - name: b\n        env: [y]\n      - name: c\n');
    expect(problemsOf(() => merged({ server, user }))).toEqual([
      'user:3: kubernetes.pod_config.containers[1].env: expected no list, because the value that it overrides is a single value',
    ]);
  });

  it('treats __proto__ as an ordinary name', () => {
    const { tree, leaves } = merged({
      server: '__proto__: {a: 1}\n',
      user: 'admin_policy: a.B\n__proto__: {b: 2}\n',
    });
    expect(JSON.stringify(tree)).toBe('{"__proto__":{"a":1,"b":2}}');
    expect(leaves.map(({ path }) => formatPath(path))).toEqual(['__proto__.a', '__proto__.b']);
    expect(Object.getPrototypeOf(tree)).toBe(Object.prototype);
  });
});

function problemsOf(work: () => unknown): string[] {
  try {
    work();
  } catch (thrown) {
    if (thrown instanceof ConfigurationError) {
      return thrown.problems.map(formatProblem);
    }
    throw thrown;
  }
  return [];
}

describe('what only the server may set', () => {
  const spoken = SERVER_KEYS.filter(([name]) => name !== 'db');

  it.for(['user', 'project', 'command line'] as const)(
    'is taken out of the source %s, and named',
    (level) => {
      for (const key of spoken) {
        const name = key.join('.');
        const server = nested(key, 'own');
        const { tree, dropped: named } = merged({
          server: yamlOf(server),
          [level]: yamlOf(nested(key, 'other')),
        });
        expect(tree).toEqual(server);
        expect(named).toMatchObject([{ key: name, reason: 'server', place: { level } }]);
        // Also where the server says nothing of it.
        expect(merged({ [level]: yamlOf(nested(key, 'other')) }).tree).toEqual({});
      }
    },
  );

  it("is dropped without loss if it is null or equal to the server's", () => {
    const server = 'admin_policy: a.B\nrbac: {default_role: user}\nallowed_clouds: [aws]\n';
    const user = 'rbac: {default_role: user}\nallowed_clouds: [gcp]\nadmin_policy: null\n';
    const { tree } = merged({ server });
    expect(merged({ server, user }).tree).toEqual(tree);
    expect(dropped({ server, user })).toEqual([
      'null admin_policy user:3',
      'server allowed_clouds user:2',
      'same rbac user:1',
    ]);
  });

  it('is never part of the configuration if it is the database', () => {
    const { tree } = merged({ server: 'db: a\n', user: 'db: b\n', 'command line': 'db: c\n' });
    expect(tree).toEqual({});
    expect(dropped({ server: 'db: a\n', user: 'db: b\n', 'command line': 'db: c\n' })).toEqual([
      'database db server:1',
      'database db user:1',
      'database db command line:1',
    ]);
  });

  it.for(['null', '1', '[]', 'text'])('is not taken away by %s in place of what holds it', (value) => {
    const server =
      'slurm: {cluster_configs: {a: 1}, quota: 2}\njobs: {controller: {consolidation_mode: true}}\n';
    const user = `slurm: ${value}\njobs:\n  controller: ${value}\n  bucket: b\n`;
    expect(merged({ server, user }).tree).toEqual({
      slurm: { cluster_configs: { a: 1 }, quota: 2 },
      jobs: { controller: { consolidation_mode: true }, bucket: 'b' },
    });
    expect(dropped({ server, user })).toEqual(
      ['around jobs.controller user:3', 'around slurm user:1'].sort(),
    );
    // Where the server has nothing to lose it is the user's own.
    expect(merged({ server: 'slurm: {quota: 2}', user: 'slurm: null' }).tree).toEqual({ slurm: null });
  });
});

describe('what a task may set', () => {
  it('is every listed key, with everything below', () => {
    expect(TASK_KEYS).toHaveLength(28);
    for (const key of TASK_KEYS) {
      const config = nested(key, { below: 1 });
      expect(merged({ task: yamlOf(config) })).toMatchObject({ tree: config, dropped: [] });
    }
  });

  it.for<[string, string, string]>([
    ['a key of the server', 'admin_policy: x\n', 'admin_policy task:1'],
    ['the database, loudly', 'db: x\n', 'db task:1'],
    ['a name that every object has', '__proto__: {a: 1}\n', '__proto__ task:1'],
    [
      'a key that is not in the list',
      'kubernetes:\n  pod_config: {}\n  context_configs: {}\n',
      'kubernetes.context_configs task:3',
    ],
    ['a text where the list has a mapping', 'docker: x\n', 'docker task:1'],
  ])('is not %s', ([, task, expected]) => {
    for (const server of ['', 'kubernetes: {provision_timeout: 1}\ndocker: {run_options: []}\n']) {
      expect(dropped({ server, task })).toEqual([`task ${expected}`]);
      const [key = ''] = expected.split(' ');
      expect(merged({ server, task }).leaves.map(({ path }) => formatPath(path))).not.toContain(key);
    }
  });
});

describe('the configuration of a task', () => {
  const read = (yaml: string) => {
    const { tree, originOf } = configSource('task', yaml);
    const config = taskConfig(tree, originOf);
    return { ...config, problems: config.problems.map((one) => `${one.severity}: ${formatProblem(one)}`) };
  };

  it.for([
    ['its config', 'run: x\nconfig: {a: 1}\n', ['config'], []],
    [
      'experimental.config_overrides too, with a warning',
      'experimental:\n  config_overrides: {a: 1}\n',
      ['experimental', 'config_overrides'],
      ['warning: task:2: experimental.config_overrides: deprecated: use config'],
    ],
    [
      'what SkyPilot stored in the resources',
      'resources:\n  _cluster_config_overrides: {a: 1}\n',
      ['resources', '_cluster_config_overrides'],
      [],
    ],
  ] as const)('is %s', ([, yaml, at, problems]) => {
    expect(read(yaml)).toEqual({ tree: { a: 1 }, at, problems });
  });

  it.for(['', 'run: x', 'config: null', 'experimental: null', 'experimental: {config_overrides: null}'])(
    'is empty in %j',
    (yaml) => {
      expect(read(yaml)).toMatchObject({ tree: {}, problems: [] });
    },
  );

  it('leaves out lifecycle hooks, which are no configuration', () => {
    expect(read('config: {hooks: [{run: x}], a: 1}\n')).toMatchObject({ tree: { a: 1 }, problems: [] });
  });

  it.for([
    'resources:\n  any_of: [{_cluster_config_overrides: {a: 1}}, {_cluster_config_overrides: {a: 1}}]\n',
    'resources:\n  _cluster_config_overrides: {a: 1}\n  ordered: [{}, {_cluster_config_overrides: {a: 1}}]\n',
  ])('is what the alternatives of the resources have in common: %j', (yaml) => {
    expect(read(yaml)).toMatchObject({ tree: { a: 1 }, problems: [] });
  });

  it('is rejected if the alternatives differ, as one result would hide the other', () => {
    const yaml = 'resources:\n  any_of:\n    - {}\n    - _cluster_config_overrides: {a: 1}\n';
    expect(read(yaml).problems).toEqual([
      'error: task:4: resources.any_of[1]._cluster_config_overrides: expected the same as in resources._cluster_config_overrides: give each alternative a task of its own',
    ]);
  });

  it.for<[string, string]>([
    [
      'config: {a: 1}\nresources:\n  any_of:\n    - _cluster_config_overrides: {b: 1}\n',
      'task:4: resources.any_of[0]._cluster_config_overrides: cannot be combined with config',
    ],
    ['experimental:\n  other: 1\n', 'task:2: experimental.other: expected only config_overrides here'],
    ['run: x\nexperimental: yes\n', 'task:2: experimental: expected a mapping'],
    ['run: x\nconfig: [a]\n', 'task:2: config: expected a mapping'],
  ])('is rejected as %j', ([yaml, problem]) => {
    expect(read(yaml).problems).toEqual([`error: ${problem}`]);
  });
});

describe('the selected workspace', () => {
  const problem = (texts: Partial<Record<Level, string>>) =>
    workspaceProblems(merged(texts)).map(formatProblem).join();

  it.for(['', 'active_workspace: default', 'active_workspace: null', 'active_workspace: lab'])(
    'may be that of %j',
    (user) => {
      expect(problem({ server: 'workspaces: {lab: {}}', user })).toBe('');
    },
  );

  it('must exist on the server', () => {
    expect(
      problem({
        server: 'workspaces: {lab: {}}\n',
        user: 'workspaces: {mine: {}}\nactive_workspace: mine\n',
      }),
    ).toBe('user:2: active_workspace: expected default or a workspace of the server, got "mine"');
    expect(problem({ server: 'workspaces: {lab: {}}', task: 'active_workspace: toString' })).toContain(
      'task:1: active_workspace: expected',
    );
    expect(problem({ user: 'active_workspace: [lab]' })).toContain('user:1: active_workspace: expected');
  });
});
