/**
 * SkyPilot's own client of policies asks the running service. Needs `SKYPILOT_SOURCE`, a checkout of SkyPilot, and python3 with its
 * dependencies (or stand-ins for them in `PYTHONPATH`, which a module `sky_stub` installs).
 */
import { readdirSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import { REQUEST_NAMES } from '../../../src/skypilot/request/user-request.ts';
import { projectFile, temporaryFile } from '../../support/files.ts';
import { newLedger } from '../../support/ledgers.ts';
import { runServiceOf } from '../../support/running-service.ts';
import { SkypilotApiDouble } from '../../support/skypilot-api-server.ts';
import { type ClientQuestion, skypilotClient } from '../../support/skypilot-client.ts';
import { PATH, runSkypilot } from '../../support/skypilot-service.ts';
import { skypilotSource } from '../../support/skypilot-source.ts';
import { unusedPort } from '../../support/unused-port.ts';

const SOURCE = skypilotSource();

/** What starts the client at first, and loads all of SkyPilot, takes seconds. */
const PATIENTLY = { timeout: 1_200_000 };

const TASKS = {
  cpus: 'name: cpus\nresources: {infra: aws, cpus: 4+, autostop: 20}\nrun: echo hello\n',
  gpus: `name: gpus
resources: {any_of: [{infra: gcp, accelerators: A100}, {accelerators: "L4:2", use_spot: true}, {infra: aws, cpus: 2+}]}
run: |
  set -e
  train # "it"
envs: {A: "012", B: "yes"}
`,
  image: 'resources: {infra: k8s, image_id: "docker:ubuntu:22.04"}\n',
};
type TaskName = keyof typeof TASKS;

const SAME = { cpus: 'same', gpus: 'same', image: 'same' } as const;
const GPUS = ['AWS(cpus=2+)', "GCP({'A100': 1})", "<Cloud>([Spot], {'L4': 2})"];
const LABELS = { custom_metadata: { labels: { app: 'skypilot' } } };

/** Of a task: nothing changes, it is refused with this text, or this is what SkyPilot has then. */
type Outcome = 'same' | RegExp | { resources?: string[]; config?: object; task?: object };

interface Case {
  /** Options without which the policy does not start; everything else is the default. */
  readonly options?: Readonly<Record<string, unknown>>;
  readonly outcomes: Readonly<Record<TaskName, Outcome>>;
}

function all(outcome: Outcome): Case['outcomes'] {
  return { cpus: outcome, gpus: outcome, image: outcome };
}

async function cases(): Promise<Record<string, Case>> {
  const { url: api_server } = await SkypilotApiDouble.start({ now: () => Date.now() / 1000 });
  const registry = temporaryFile('contexts.yaml', 'default: [east]\n');
  const kubeconfig = temporaryFile('kubeconfig', 'contexts: [{name: east}, {name: west}]\n');
  return {
    AddLabelsConditionalPolicy: { outcomes: all({ config: { kubernetes: LABELS, ssh: LABELS } }) },
    AddLabelsPolicy: { outcomes: all({ config: { kubernetes: LABELS } }) },
    AddVolumesPolicy: {
      options: { add_volumes: { '/mnt/data0': 'pvc0' } },
      outcomes: all({ task: { volumes: { '/mnt/data0': 'pvc0' } } }),
    },
    AllowedCloudsPolicy: {
      options: { allowed_clouds: ['aws', 'gcp'] },
      outcomes: {
        cpus: 'same',
        gpus: {
          resources: ['AWS(cpus=2+)', "AWS([Spot], {'L4': 2})", "GCP({'A100': 1})", "GCP([Spot], {'L4': 2})"],
        },
        image: /: Tasks may not run on kubernetes here\. Set infra to one of: aws, gcp\.$/,
      },
    },
    AllowedImagesPolicy: { options: { allowed_images: ['docker:ubuntu:*'] }, outcomes: SAME },
    BusinessHoursPolicy: { options: { business_hours: ['mon-sun 00:00-24:00'] }, outcomes: SAME },
    DisablePublicIpPolicy: {
      outcomes: all(/: Machines on AWS get no public IP address here: set aws\.vpc_name/),
    },
    DynamicKubernetesContextsUpdatePolicy: {
      options: {
        dynamic_kubernetes_contexts_update_registry: registry,
        dynamic_kubernetes_contexts_update_kubeconfig: kubeconfig,
      },
      outcomes: all({ config: { kubernetes: { allowed_contexts: ['east'] } } }),
    },
    EnforceAutostopPolicy: {
      options: { enforce_autostop_api_server: api_server },
      outcomes: { cpus: 'same', gpus: /: Autostop must be set/, image: /: Autostop must be set/ },
    },
    GpuQuotaPolicy: { options: { api_server, gpu_quota_per_user: { '*': 4 } }, outcomes: SAME },
    MaxPricePolicy: {
      options: { max_price: 5 },
      outcomes: {
        cpus: { resources: ['AWS(cpus=4+, max_cost=$5/hr)'] },
        gpus: { resources: GPUS.map((one) => one.replace(/\)$/, ', max_cost=$5/hr)')) },
        image: { resources: ['Kubernetes(image_id=docker:ubuntu:22.04, max_cost=$5/hr)'] },
      },
    },
    RateLimitLaunchPolicy: { outcomes: SAME },
    RejectAllPolicy: { outcomes: all(/: No requests are accepted at the moment\.$/) },
    RejectOldClientsPolicy: { options: { reject_old_clients: 50 }, outcomes: SAME },
    RestrictOverridesPolicy: {
      options: { restrict_overrides_server_config: temporaryFile('server.yaml', 'aws: {labels: {a: b}}\n') },
      outcomes: all(/: The configuration of the server must not be overridden: admin_policy\./),
    },
    RulesPolicy: {
      options: {
        rules_path: temporaryFile(
          'rules.yaml',
          `rules:
  - name: no-a100s
    on: task
    allow: resources.all(one, !may_be(one, "A100"))
    message: No A100s here.
`,
        ),
      },
      outcomes: { cpus: 'same', gpus: /: No A100s here\.$/, image: 'same' },
    },
    SetMaxAutostopIdleMinutesPolicy: { outcomes: all({}) },
    SlurmPartitionPolicy: {
      options: { slurm_partition: ['lab/cpu'] },
      outcomes: { cpus: 'same', gpus: /: Tasks must name the cloud here/, image: 'same' },
    },
    UsageBudgetPolicy: {
      options: { api_server },
      outcomes: { cpus: 'same', gpus: /: The workspace default has no budget\.$/, image: 'same' },
    },
    UseSpotForGpuPolicy: {
      outcomes: {
        cpus: 'same',
        gpus: { resources: ['AWS(cpus=2+)', "GCP([Spot], {'A100': 1})", "<Cloud>([Spot], {'L4': 2})"] },
        image: 'same',
      },
    },
  };
}

describe.skipIf(SOURCE === undefined)("SkyPilot's own client", () => {
  const { ask, names } = skypilotClient(SOURCE);

  it('understands the answers of every included policy, and asks about them again', PATIENTLY, async () => {
    const policies = await cases();
    expect(Object.keys(policies).map(fileOf).sort()).toEqual(readdirSync(projectFile('policies')).sort());
    for (const [policy, { options, outcomes }] of Object.entries(policies)) {
      const { url, service } = await runServiceOf({
        enforcement: { enabled_filters: [] },
        ledger: { connection: await newLedger() },
        skypilot: { admin_policies: [policy], config_validation: 'error', ...options },
      });
      if (policy === 'GpuQuotaPolicy') {
        const isCounted = /skypilot_rounds_total\{outcome="complete"\} 1/;
        await expect
          .poll(async () => (await fetch(`${url}/metrics`)).text(), { timeout: 240_000 })
          .toMatch(isCounted);
      }
      for (const [name, outcome] of Object.entries(outcomes)) {
        const answer = await ask({ url: url + PATH, tasks: [TASKS[name as TaskName]] });
        const what = `${policy}, ${name}`;
        expect(answer.sent, what).toHaveLength(1);
        if (outcome instanceof RegExp) {
          expect(answer, what).toMatchObject({
            type: 'UserRequestRejectedByPolicy',
            error: expect.stringMatching(outcome),
          });
          continue;
        }
        expect(answer.error, what).toBeUndefined();
        expect(answer.same, what).toBe(outcome === 'same');
        expect(answer.again, what).toMatchObject({ same: true });
        if (outcome !== 'same') {
          expect(answer.tasks[0], what).toMatchObject(outcome.task ?? {});
          expect(answer.config, what).toMatchObject(outcome.config ?? {});
          expect([...(answer.resources[0] ?? [])].sort(), what).toEqual(
            (outcome.resources ?? [...(answer.resources[0] ?? [])]).toSorted(),
          );
        }
        expect(answer.imageIds[0], what).toContain(
          name === 'image' ? "{None: 'docker:ubuntu:22.04'}" : 'None',
        );
      }
      await service.close();
    }
  });

  it('sends what a policy sees', PATIENTLY, async () => {
    const seen: Record<string, unknown>[] = [];
    vi.stubGlobal('seenBySkypilotPolicy', seen);
    const { url } = await runSkypilot({
      SeeingPolicy: 'globalThis.seenBySkypilotPolicy.push({ ...request, skypilotConfig: config.toDict() });',
    });
    const asked: Omit<ClientQuestion, 'url'>[] = [
      { tasks: [TASKS.image], user: { id: '123', name: 'test' }, apiVersion: 31, version: '1.0.0' },
      { tasks: ['run: echo "minimal"\n'], atClientSide: true, options: null },
      {
        tasks: [
          `name: complex
run: python train.py --epochs 100
setup: pip install torch
file_mounts: {/data: ~/datasets/}
workdir: .
envs: {CUDA_VISIBLE_DEVICES: "0,1"}
resources: {infra: k8s, image_id: "docker:pytorch/pytorch:latest", cpus: 4+, memory: 16+, accelerators: {A100: 2}}
`,
        ],
        config: 'kubernetes: {provision_timeout: 60}\n',
        options: { cluster_name: null, idle_minutes_to_autostop: 10, down: true, dryrun: true },
      },
    ];
    for (const question of asked) {
      const answer = await ask({ url: url + PATH, ...question });
      expect(answer).toMatchObject({ same: true, again: { same: true } });
    }
    expect(seen[0]).toMatchObject({
      task: { resources: { infra: 'kubernetes', image_id: { null: 'docker:ubuntu:22.04' } } },
      requestOptions: { clusterName: 'test', idleMinutesToAutostop: null, down: false, dryrun: false },
      atClientSide: false,
      user: { id: '123', name: 'test' },
      clientApiVersion: 31,
      clientVersion: '1.0.0',
      skypilotConfig: { active_workspace: 'default' },
    });
    expect(seen[2]).toMatchObject({
      task: { run: 'echo "minimal"' },
      requestOptions: null,
      atClientSide: true,
      user: null,
      clientApiVersion: null,
      clientVersion: null,
    });
    expect(seen[4]).toMatchObject({
      task: {
        name: 'complex',
        run: 'python train.py --epochs 100',
        setup: 'pip install torch',
        file_mounts: { '/data': '~/datasets/' },
        envs: { CUDA_VISIBLE_DEVICES: '0,1' },
        resources: {
          image_id: { null: 'docker:pytorch/pytorch:latest' },
          cpus: '4+',
          memory: '16+',
          accelerators: { A100: 2 },
        },
      },
      requestOptions: { clusterName: null, idleMinutesToAutostop: 10, down: true, dryrun: true },
      skypilotConfig: { kubernetes: { provision_timeout: 60 } },
    });
  });

  it('gets an answer whatever its request is called', PATIENTLY, async () => {
    expect((await names()).sort()).toEqual([...REQUEST_NAMES].sort());
    const { url } = await runSkypilot({
      LabelPolicy: "config.setNested(['aws', 'labels', 'is'], request.requestName);",
    });
    for (const name of REQUEST_NAMES) {
      const answer = await ask({ url: url + PATH, tasks: ['run: x\n'], name });
      expect(answer).toMatchObject({ config: { aws: { labels: { is: name } } }, again: { same: true } });
    }
  });

  it(
    'gets the name, the script, the resources and the configuration that a policy sets',
    PATIENTLY,
    async () => {
      const { url } = await runSkypilot({
        RewritingPolicy: `task.name = 'test-task'; task.run = 'echo "changed"'; task.file_mounts = { '/existing/mount': '.' };
        task.resources = { any_of: [{ cpus: '2+', use_spot: true }, { accelerators: { V100: 1 } }] };
        config.setNested(['aws', 'use_internal_ips'], true);`,
      });
      const answer = await ask({
        url: url + PATH,
        tasks: [TASKS.image],
        config: 'active_workspace: default\n',
      });
      expect(answer).toMatchObject({
        tasks: [{ name: 'test-task', run: 'echo "changed"', file_mounts: { '/existing/mount': '.' } }],
        resources: [['<Cloud>([Spot], cpus=2+)', "<Cloud>({'V100': 1})"]],
        config: { aws: { use_internal_ips: true } },
        again: { same: true },
      });
    },
  );

  it('refuses a pipeline whose tasks end up with different configurations', PATIENTLY, async () => {
    const pipeline = ['name: a\nrun: x\n', 'name: b\nrun: y\n'];
    const { url } = await runSkypilot({ SamePolicy: "config.setNested(['aws', 'labels', 'a'], 'b');" });
    const { url: differing } = await runSkypilot({
      DifferentPolicy: "config.setNested(['aws', 'labels', 'task'], task.name);",
    });
    const asked = { tasks: pipeline, name: 'jobs.launch', options: null };
    expect(await ask({ ...asked, url: url + PATH })).toMatchObject({
      tasks: [{ name: 'a' }, { name: 'b' }],
      config: { aws: { labels: { a: 'b' } } },
      again: { same: true },
    });
    expect(await ask({ ...asked, url: differing + PATH })).toMatchObject({
      type: 'UserRequestRejectedByPolicy',
      error: expect.stringMatching(/^All tasks must have the same SkyPilot config/),
    });
  });

  it(
    'refuses everything that is not allowed, and shows its user only the text of a rejection',
    PATIENTLY,
    async () => {
      const { url } = await runSkypilot(
        {
          PickyPolicy: `if (task.name === 'no') throw new PolicyRejected('Not on a Sunday, größer');
        if (task.name === 'broken') throw new TypeError('the password is hunter2');`,
        },
        { skypilot: { tokens: ['s3cret-token-0123456789abcdef'] } },
      );
      const where = `${url}${PATH}?token=s3cret-token-0123456789abcdef`;
      const refusal = async (text: string, to: string) => {
        const { type, error = '' } = await ask({ url: to, tasks: [text] });
        expect(type, error).toBe('UserRequestRejectedByPolicy');
        return error;
      };
      expect(await ask({ url: where, tasks: ['name: fine\n'] })).toMatchObject({ same: true });
      expect(await refusal('name: "no"\n', where)).toMatch(
        /User request is rejected by admin policy .*: Not on a Sunday, größer$/,
      );
      const broken = await refusal('name: broken\n', where);
      expect(broken).toMatch(/Failed to call admin policy URL .*: 500 Server Error/);
      expect(broken).not.toMatch(/hunter2|PickyPolicy/);

      expect(await refusal('name: a\n', url + PATH)).toMatch(
        /Failed to call admin policy URL .*: 401 Client Error/,
      );
      expect(await refusal('name: a\n', `${url}/elsewhere`)).toMatch(/Failed to call .*: 404 Client Error/);
      expect(await refusal('name: a\n', `http://127.0.0.1:${await unusedPort()}${PATH}`)).toMatch(
        /Failed to call admin policy URL .*Connection/,
      );
    },
  );
});

function fileOf(policy: string): string {
  return `${policy.replace(/(?<!^)[A-Z]/g, (letter) => `-${letter}`).toLowerCase()}.ts`;
}
