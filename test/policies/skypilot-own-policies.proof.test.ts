/**
 * Included policies beside SkyPilot's example policies of the same name, and beside what its server makes of overrides.
 * Needs `SKYPILOT_SOURCE`, a checkout of SkyPilot, and python3 with its dependencies (or stand-ins for them in
 * `PYTHONPATH`, which a module `sky_stub` installs).
 */
import { describe, expect, it } from 'vitest';
import { YamlDocument } from '../../src/base/yaml/document.ts';
import type { Mapping } from '../../src/base/yaml/tree.ts';
import { temporaryFile } from '../support/files.ts';
import { runWithSkypilot, skypilotSource } from '../support/skypilot-source.ts';
import { type Asked, chainOf } from './helpers.ts';

const SOURCE = skypilotSource();

const PEER = `
sys.path.insert(0, sys.argv[1] + '/examples/admin_policy/example_policy')
import sky
from sky import admin_policy, models, skypilot_config
from sky.utils import config_utils, yaml_utils
from example_policy import skypilot_policy

def config_of(text):
    return config_utils.Config.from_dict(yaml_utils.safe_load(text))

def policy(name, asked):
    request = admin_policy.UserRequest(
        sky.Task.from_yaml_config(yaml_utils.safe_load(asked['task']) or {}), config_of(asked['config']),
        sky.AdminPolicyRequestName(asked['name']), None, asked['atClientSide'],
        None if asked['atClientSide'] else models.User(id='a1b2c3d4', name='lee'),
        client_api_version=asked['clientApiVersion'], client_version=asked['clientVersion'])
    sent = json.loads(request.encode())
    try:
        answer = json.loads(getattr(skypilot_policy, name)().apply(request).encode())
    except RuntimeError:
        return {'sent': sent, 'answer': None}
    return {'sent': sent, 'answer': {key: yaml_utils.safe_load(text) for key, text in answer.items()}}

def merged(server, client):
    skypilot_config._set_loaded_config(config_of(server))
    with skypilot_config.override_skypilot_config(yaml_utils.safe_load(client)):
        return yaml_utils.dump_yaml_str(dict(skypilot_config.resolved_config()))

functions = {'policy': policy, 'merged': merged}
answers = [functions[name](*arguments) for name, *arguments in asked]
`;

const askPeer = <Answer>(questions: readonly (readonly unknown[])[]) =>
  runWithSkypilot<Answer>(SOURCE ?? '', PEER, questions);

interface PeerAnswer {
  readonly sent: { readonly task: string; readonly skypilot_config: string };
  readonly answer: { readonly task: Mapping; readonly skypilot_config: Mapping } | null;
}

const KINDS = ['validate', 'optimize', 'launch', 'exec', 'jobs.launch', 'serve.up'] as const;

function asked(further: Asked): Asked {
  return {
    task: 'run: a',
    config: '{}',
    name: 'launch',
    options: null,
    atClientSide: false,
    clientApiVersion: 56,
    clientVersion: '0.13.0',
    ...further,
  };
}

/** Asks SkyPilot's policy and ours the same, as SkyPilot sends it. */
async function beside(policy: string, all: readonly Asked[], options: Mapping) {
  const { ask } = await chainOf([policy], options);
  const peers = askPeer<PeerAnswer>(all.map((one) => ['policy', policy, one]));
  return Promise.all(
    peers.map(async ({ sent, answer }, index) => {
      const ours = await ask({ ...all[index], task: sent.task, config: sent.skypilot_config });
      return { asked: JSON.stringify(all[index]), peer: answer, ours };
    }),
  );
}

describe.skipIf(SOURCE === undefined)("SkyPilot's own policies", () => {
  it('refuse the same clients, where requests without a version are refused', async () => {
    const all = KINDS.flatMap((name) =>
      [null, 1, 24, 25, 56].flatMap((clientApiVersion) =>
        [true, false].map((atClientSide) => asked({ name, clientApiVersion, atClientSide })),
      ),
    );
    const options = { reject_old_clients: 25, reject_old_clients_unknown: 'every' };
    for (const { asked: what, peer, ours } of await beside('RejectOldClientsPolicy', all, options)) {
      expect(ours.allowed, what).toBe(peer !== null);
      expect(ours.failed, what).toBe(false);
    }
  });

  it('set the same labels in Kubernetes', async () => {
    const configs = ['{}', 'kubernetes: {custom_metadata: {labels: {app: mine, a: b}, annotations: {c: d}}}'];
    const all = KINDS.flatMap((name) => configs.map((config) => asked({ name, config })));
    for (const { asked: what, peer, ours } of await beside('AddLabelsConditionalPolicy', all, {})) {
      const { ssh: _, ...config } = ours.skypilotConfig.toDict();
      expect(config, what).toEqual(peer?.skypilot_config);
    }
  });

  it('add the same volumes to tasks without any', async () => {
    const tasks = [
      'run: a',
      'resources: {infra: k8s, accelerators: A100}',
      'file_mounts: {/x: s3://b}\nvolumes: {}',
    ];
    const all = tasks.flatMap((task) => [true, false].map((atClientSide) => asked({ task, atClientSide })));
    const options = { add_volumes: { '/mnt/data0': 'pvc0' } };
    for (const { asked: what, peer, ours } of await beside('AddVolumesPolicy', all, options)) {
      expect(ours.task.volumes, what).toEqual(peer?.task.volumes);
      expect(ours.allowed, what).toBe(true);
    }
  });
});

describe.skipIf(SOURCE === undefined)(
  'RestrictOverridesPolicy, with configurations that SkyPilot merged',
  () => {
    const SERVER = `
admin_policy: https://policy.example.org/
workspaces: {ml: {}}
kubernetes:
  allowed_contexts: [east, west]
  provision_timeout: 600
  pod_config: {spec: {tolerations: [{key: gpu}], containers: [{env: [{name: A, value: a}]}]}}
docker: {run_options: [--ipc=host]}
jobs: {controller: {resources: {cpus: 4+}}}
`;
    const CLIENTS = [
      ['{}', null],
      [SERVER, null],
      ['active_workspace: ml', null],
      ['workspaces: {other: {}}\nallowed_clouds: [aws]\napi_server: {endpoint: "http://127.0.0.1:1"}', null],
      ['kubernetes: {provision_timeout: 600}', null],
      ['kubernetes: {provision_timeout: 10}', 'kubernetes.provision_timeout'],
      [
        'kubernetes: {pod_config: {spec: {tolerations: [{key: b}]}}}',
        'kubernetes.pod_config.spec.tolerations',
      ],
      ['kubernetes: {pod_config: {spec: {hostNetwork: true}}}', 'kubernetes.pod_config.spec.hostNetwork'],
      [
        'kubernetes: {context_configs: {east: {provision_timeout: 1}}}',
        'kubernetes.context_configs.east.provision_timeout',
      ],
      ['kubernetes: {allowed_contexts: [west]}', 'kubernetes.allowed_contexts'],
      ['docker: {run_options: [--privileged]}', 'docker.run_options'],
      ['aws: {use_internal_ips: true}', 'aws.use_internal_ips'],
      ['jobs: {controller: {resources: {cpus: 64}}}', 'jobs.controller.resources.cpus'],
      ['rbac: {default_role: admin}', 'rbac.default_role'],
      ['admin_policy: https://other.example.org/', 'admin_policy'],
    ] as const;
    it('refuses just what differs, and resets it', async () => {
      const merged = askPeer<string>(CLIENTS.map(([client]) => ['merged', SERVER, client]));
      const server = { restrict_overrides_server_config: temporaryFile('server.yaml', SERVER) };
      const { ask } = await chainOf(['RestrictOverridesPolicy'], server);
      const { ask: reset } = await chainOf(['RestrictOverridesPolicy'], {
        ...server,
        restrict_overrides_action: 'reset',
      });
      const own = YamlDocument.parse(SERVER).value as Mapping;
      for (const [index, [client, named]] of CLIENTS.entries()) {
        const config = merged[index] ?? '';
        expect((await ask({ config })).message, client).toEqual(
          named === null ? null : expect.stringContaining(`overridden: ${named}. `),
        );
        if (named !== null) {
          const { active_workspace: _, ...rest } = (await reset({ config })).skypilotConfig.toDict();
          expect(dropEmpty(rest), client).toEqual(own);
        }
      }
    });

    /** Without the mappings that a reset leaves behind. */
    function dropEmpty(tree: Mapping): Mapping {
      return Object.fromEntries(
        Object.entries(tree)
          .map(([name, value]) => [name, isPlain(value) && name !== 'ml' ? dropEmpty(value) : value] as const)
          .filter(([name, value]) => name === 'ml' || !isPlain(value) || Object.keys(value).length > 0),
      );
    }

    function isPlain(value: unknown): value is Mapping {
      return typeof value === 'object' && value !== null && !Array.isArray(value);
    }
  },
);
