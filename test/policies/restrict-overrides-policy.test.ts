import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { YamlDocument } from '../../src/base/yaml/document.ts';
import type { Mapping } from '../../src/base/yaml/tree.ts';
import { Config } from '../../src/skypilot/config/config.ts';
import { rejectedWith, UNCHECKED } from '../support/decisions.ts';
import { temporaryFile } from '../support/files.ts';
import { askTwice, chainOf, problemsOf } from './helpers.ts';

const POLICY = ['RestrictOverridesPolicy'];

const SERVER = `
admin_policy: https://policy.example.org/skypilot/admin-policy
workspaces: {ml: {}, web: {private: true}}
kubernetes:
  allowed_contexts: [east, west]
  provision_timeout: 600
  pod_config:
    spec:
      tolerations: [{key: gpu}]
      containers: [{name: c, env: [{name: A, value: a}]}]
jobs: {controller: {consolidation_mode: true, resources: {cpus: 4}}}
docker: {run_options: [--ipc=host]}
`;

function options(server = SERVER, further: Mapping = {}): Mapping {
  return { restrict_overrides_server_config: temporaryFile('server.yaml', server), ...further };
}

/** What SkyPilot's server makes of its configuration and that of a client, with the workspace that it sets. */
function merged(...clients: readonly string[]): string {
  const config = Config.fromDict(YamlDocument.parse(SERVER).value as Mapping);
  for (const client of clients) {
    config.setNested([], YamlDocument.parse(client).value);
  }
  config.setNested(['active_workspace'], 'default');
  return YamlDocument.from(config.toDict()).toString();
}

const NOTHING = 'Nothing of it may be overridden.';

describe('RestrictOverridesPolicy', () => {
  it("lets the server's own configuration through, with what SkyPilot adds and takes out", async () => {
    const { ask } = await chainOf(POLICY, options());
    for (const config of [
      merged(),
      SERVER,
      '{}',
      '',
      // What it sends to the controller of jobs, without what the controller must not know.
      'kubernetes: {provision_timeout: 600}\nactive_workspace: ml',
    ]) {
      expect((await askTwice(ask, { config })).changed).toBe(false);
    }
  });

  it('lets a configuration through that SkyPilot has laid over itself', async () => {
    const { ask } = await chainOf(POLICY, options());
    const config = merged(SERVER, SERVER);
    expect(config.match(/key: gpu/g)).toHaveLength(3);
    expect((await askTwice(ask, { config })).changed).toBe(false);
  });

  it('refuses every difference, and names its key', async () => {
    const { ask } = await chainOf(POLICY, options());
    for (const [client, named] of [
      ['kubernetes: {provision_timeout: 900}', 'kubernetes.provision_timeout'],
      ['kubernetes: {provision_timeout: "600"}', 'kubernetes.provision_timeout'],
      ['kubernetes: {provision_timeout: null}', 'kubernetes.provision_timeout'],
      ['kubernetes: {allowed_contexts: [east, west, east, west]}', 'kubernetes.allowed_contexts'],
      ['kubernetes: {allowed_contexts: [west, east]}', 'kubernetes.allowed_contexts'],
      [
        'kubernetes: {pod_config: {spec: {tolerations: [{key: spot}]}}}',
        'kubernetes.pod_config.spec.tolerations',
      ],
      [
        'kubernetes: {pod_config: {spec: {containers: [{name: c, env: [{name: A, value: b}]}]}}}',
        'kubernetes.pod_config.spec.containers',
      ],
      ['kubernetes: {pod_config: null}', 'kubernetes.pod_config'],
      ['docker: {run_options: []}', 'docker.run_options'],
      ['docker: null', 'docker'],
      ['aws: {labels: {a: b}, use_internal_ips: false}', 'aws.labels.a, aws.use_internal_ips'],
      ['admin_policy: https://other.example.org/', 'admin_policy'],
      ['"__proto__": {polluted: true}', '__proto__.polluted'],
      [
        '{"a b": 1, "ü\\u001b\\n": 2, "kubernetes.pod_config": 3}',
        '"a b", "ü\\u001b\\n", "kubernetes.pod_config"',
      ],
    ] as const) {
      expect(await ask({ config: merged(client) }), client).toMatchObject(
        rejectedWith(`The configuration of the server must not be overridden: ${named}. ${NOTHING}`),
      );
    }
  });

  it("ignores what SkyPilot's server takes from no client", async () => {
    const { ask } = await chainOf(POLICY, options());
    const config = merged(
      'active_workspace: web\nworkspaces: {new: {}}\napi_server: {endpoint: http://x}\nallowed_clouds: [aws]',
      'jobs: {controller: {consolidation_mode: false}}\nslurm: {submit_as_user: true}',
    );
    expect((await askTwice(ask, { config })).changed).toBe(false);
  });

  it.each([
    ['kubernetes.pod_config', 'kubernetes: {pod_config: {spec: {hostNetwork: true}}}', true],
    ['kubernetes', 'kubernetes: {provision_timeout: 1}', true],
    ['kubernetes.provision', 'kubernetes: {provision_timeout: 1}', false],
    ['docker.run_options', 'docker: null', false],
    ['docker.run_options', 'docker: {run_options: [x]}', true],
    ['aws.labels.team', 'aws: {labels: {team: a, owner: b}}', false],
    [
      'kubernetes.context_configs.*.provision_timeout',
      'kubernetes: {context_configs: {a.b: {provision_timeout: 1}}}',
      true,
    ],
    [
      'kubernetes.context_configs.a.b.namespace',
      'kubernetes: {context_configs: {a.b: {namespace: x}}}',
      true,
    ],
    ['kubernetes.context_configs.a.b.namespace', 'kubernetes: {context_configs: {a: {namespace: x}}}', false],
    ['*', 'rbac: {default_role: admin}', true],
    ['*.labels', 'aws: {vpc_names: [x]}', false],
  ])('with %s allowed, %s is allowed: %s', async (allowed, client, expected) => {
    const { ask } = await chainOf(POLICY, options(SERVER, { restrict_overrides: [allowed] }));
    const { allowed: is, message } = await ask({ config: merged(client) });
    expect(is).toBe(expected);
    expect(message ?? `You may override ${allowed}.`).toContain(`You may override ${allowed}.`);
  });

  const TASKS = [
    'config: {OVER}',
    'experimental: {config_overrides: {OVER}}',
    'resources: {_cluster_config_overrides: {OVER}}',
    'resources: {any_of: [{infra: aws}, {infra: k8s, _cluster_config_overrides: {OVER}}]}',
    'resources: {ordered: [{infra: aws, _cluster_config_overrides: {OVER}}]}',
    '_cluster_config_overrides: {OVER}',
  ];

  it('refuses the same in every place of a task', async () => {
    const over = 'kubernetes: {pod_config: {spec: {hostNetwork: true}}}';
    const { ask } = await chainOf(POLICY, options());
    const allowing = options(SERVER, { restrict_overrides: ['kubernetes.pod_config'] });
    const { ask: askAllowing } = await chainOf(POLICY, allowing);
    for (const task of TASKS) {
      expect((await ask({ task: task.replace('OVER', over) })).message).toBe(
        `The configuration of the server must not be overridden: kubernetes.pod_config.spec.hostNetwork. ${NOTHING}`,
      );
      await askTwice(askAllowing, { task: task.replace('OVER', over) });
      for (const harmless of ['kubernetes: {provision_timeout: 600}', 'active_workspace: ml', '']) {
        await askTwice(ask, { task: task.replace('OVER', harmless) });
      }
    }
  });

  it('leaves a task its hooks, which are no configuration of the server', async () => {
    const task = 'config: {hooks: [{events: [stop], run: echo}], docker: {run_options: [x]}}';
    const { ask } = await chainOf(POLICY, options());
    expect((await ask({ task })).message).toContain('overridden: docker.run_options.');
    const { ask: reset } = await chainOf(POLICY, options(SERVER, { restrict_overrides_action: 'reset' }));
    expect((await askTwice(reset, { task })).task).toEqual({
      config: { docker: {}, hooks: [{ events: ['stop'], run: 'echo' }] },
    });
  });

  it("resets to the server's values where it is told to, in every place, and changes nothing else", async () => {
    const { ask } = await chainOf(
      POLICY,
      options(SERVER, { restrict_overrides: ['aws.labels'], restrict_overrides_action: 'reset' }),
    );
    const { skypilotConfig, task, changed } = await askTwice(ask, {
      config: merged(
        'kubernetes: {provision_timeout: 900, pod_config: {spec: {tolerations: [{key: spot}]}}, namespace: mine}',
        'docker: null\naws: {labels: {a: b}, vpc_names: x}',
      ),
      task: `
config: {docker: {run_options: [x]}, kubernetes: {provision_timeout: 1}}
resources: {any_of: [{_cluster_config_overrides: {aws: {labels: {c: d}, vpc_names: y}}}, {infra: k8s}]}`,
    });
    expect(changed).toBe(true);
    const own = YamlDocument.parse(SERVER).value as Mapping;
    expect(skypilotConfig.toDict()).toEqual({
      ...own,
      aws: { labels: { a: 'b' } },
      active_workspace: 'default',
    });
    expect(task).toEqual({
      config: { docker: {}, kubernetes: {} },
      resources: {
        any_of: [{ _cluster_config_overrides: { aws: { labels: { c: 'd' } } } }, { infra: 'k8s' }],
      },
    });
  });

  it('judges no client, which knows only its own configuration', async () => {
    const { ask } = await chainOf(POLICY, options());
    expect((await ask({ atClientSide: true, config: 'kubernetes: {provision_timeout: 1}' })).allowed).toBe(
      true,
    );
  });

  it('names five keys, and says how many more there are', async () => {
    const { ask } = await chainOf(POLICY, options());
    const { message } = await ask({
      config: `aws: {${[1, 2, 3, 4, 5, 6, 7].map((n) => `k${n}: 1`).join()}}`,
    });
    expect(message).toContain('aws.k1, aws.k2, aws.k3, aws.k4, aws.k5 and 2 more. ');
    const long = await ask({ config: `? ${'k'.repeat(900)}\n: 1` });
    expect(long.message?.length).toBeLessThan(300);
  });

  it("reads the server's file again when it changes, and refuses everything while it cannot be read", async () => {
    const file = temporaryFile('server.yaml', 'docker: {run_options: [a]}');
    const { ask, logger } = await chainOf(POLICY, { restrict_overrides_server_config: file });
    const asked = { config: 'docker: {run_options: [b]}' };
    expect((await ask(asked)).allowed).toBe(false);
    writeFileSync(file, '# longer now\ndocker: {run_options: [b]}');
    expect((await ask(asked)).allowed).toBe(true);
    for (const [text, cause] of [
      ['a: b\ndocker: [', ':2: expected YAML'],
      ['- a', ':1: expected a mapping'],
      ['a: 1\ndb: postgresql://user:secret@host/db', ':2: SkyPilot keeps'],
      [undefined, 'there is no such file'],
    ] as const) {
      if (text === undefined) {
        rmSync(file);
      } else {
        writeFileSync(file, text);
      }
      for (const _ of [1, 2]) {
        expect(await ask(asked)).toMatchObject(UNCHECKED);
      }
      expect(JSON.stringify(logger.lines)).toContain(cause);
    }
    expect(JSON.stringify(logger.lines)).not.toContain('secret');
    // As an editor or a Kubernetes ConfigMap replaces it.
    writeFileSync(`${file}.new`, 'docker: {run_options: [b]}');
    renameSync(`${file}.new`, file);
    expect((await ask(asked)).allowed).toBe(true);
  });

  it('needs the file at the start, and says where it is wrong', async () => {
    for (const [server, cause] of [
      ['a: b\n c: d', /server\.yaml:1: expected YAML/],
      ['x', /server\.yaml:1: expected a mapping/],
      ['# c\ndb: postgresql://user:secret@host/db', /server\.yaml:2: SkyPilot keeps/],
    ] as const) {
      expect(await problemsOf('RestrictOverridesPolicy', options(server))).toEqual([
        expect.stringMatching(cause),
      ]);
    }
  });

  it('refuses requests while the file is cut off: to reset them would take away what the server has', async () => {
    const whole = 'docker: {run_options: [a]}\nkubernetes: {allowed_contexts: [east]}\n';
    const policy = options(whole, { restrict_overrides_action: 'reset' });
    const file = String(policy.restrict_overrides_server_config);
    const { ask, logger } = await chainOf(POLICY, policy);
    expect((await ask({ config: whole })).allowed).toBe(true);
    for (const text of ['docker: {run_options: [a]}', '', '# Mine.\n']) {
      writeFileSync(file, text);
      expect(await ask({ config: whole })).toMatchObject(UNCHECKED);
    }
    expect(JSON.stringify(logger.lines)).toContain('no longer ends with a line break');
    writeFileSync(file, whole);
    expect((await ask({ config: whole })).skypilotConfig.getNested(['kubernetes'])).toEqual({
      allowed_contexts: ['east'],
    });
  });

  it('takes an empty file as an empty configuration', async () => {
    const { ask } = await chainOf(POLICY, options('# nothing yet\n'));
    expect((await ask({ config: 'active_workspace: default' })).allowed).toBe(true);
    expect((await ask({ config: 'docker: {run_options: []}' })).allowed).toBe(false);
  });
});
