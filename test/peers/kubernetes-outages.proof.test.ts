/** Two replicas beside a real cluster whose parts go away one after another, while pods come all the time. */
import { setTimeout as pause } from 'node:timers/promises';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import type { Manifest } from '../etc/kubernetes/manifests.ts';
import { creating } from '../support/kubernetes-service.ts';
import { type EtcdProcess, etcdProcess } from './api-server-process.ts';
import { namespace, schedulingPolicy, serviceAccount } from './cluster-objects.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { granted, pod } from './policed-cluster.ts';
import {
  applyWithoutWebhooks,
  kubeconfigOfService,
  type ReplicaProcess,
  startReplica,
  webhooksFor,
} from './served-cluster.ts';

const { cluster: started, here, closing } = clusterOfFile();

const SETTLED = { timeout: 120_000, interval: 200 };
/** Rights and policies are in force after so long. In milliseconds. */
const IN_FORCE = 10_000;
/** Kubernetes keeps the second in which a pod was created. */
const SECOND = 1000;
const VALIDATION = '/kubernetes/validation/token-put-by-kustomize?timeout=5s';
const ssd = { nodeSelector: { disk: 'ssd' } };
const tape = { nodeSelector: { disk: 'tape' } };

let etcd: EtcdProcess | undefined;
const replicas: ReplicaProcess[] = [];
const run = new AbortController();
let streams: Promise<unknown> = Promise.resolve();

closing.push(async () => {
  run.abort();
  etcd?.thaw();
  started?.thaw();
  await streams;
  for (const replica of replicas) {
    await replica.stop();
  }
});

/** When an account lost the use of `disks`, in milliseconds since 1970. */
const unboundAt = new Map<string, number>();
/** What was asked of the replicas directly and must not have been allowed. */
const slips: string[] = [];
const counts = { created: 0, refused: 0, unanswered: 0, asked: 0, allowed: 0, silent: 0 };
let number = 0;

const isOut = (account: string, now: number) => now > (unboundAt.get(account) ?? now) + IN_FORCE;
/** Who must have nothing but what everybody has: `stranger` always, the others from some moment on. */
const accounts = () => ['worker', 'stranger', ...unboundAt.keys()];

/** Pods of all kinds, as users create them: those named `bad` must never be there. */
async function create(namespace: string): Promise<void> {
  number += 1;
  const named = (kind: string, account: string, spec: object) =>
    pod(namespace, `${kind}-${account}-${number}`, { serviceAccountName: account, ...spec });
  const items = [
    named('good', 'worker', ssd),
    named('bad', 'worker', tape),
    ...accounts()
      .filter((account) => account !== 'worker')
      .map((account) => named(account === 'stranger' ? 'bad' : 'left', account, ssd)),
  ];
  const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
  const args = ['--request-timeout=8s', 'create', '--validate=false', '-f', '-'];
  const { stdout, stderr } = await here().kubectl(args, { stdin });
  counts.created += stdout.match(/ created/g)?.length ?? 0;
  counts.refused += stderr.match(/denied the request/g)?.length ?? 0;
  counts.unanswered += /denied the request/.test(stderr) ? 0 : 1;
}

/** Asks a replica as an API server would, also while there is none. */
async function interrogate(replica: ReplicaProcess): Promise<void> {
  const isStale = async () => (await replica.ask('/readyz'))?.status === 503;
  const wasStale = await isStale();
  const allowed: string[] = [];
  for (const account of accounts()) {
    for (const spec of [ssd, tape]) {
      const asked = Date.now();
      const answer = await replica.ask(VALIDATION, creating({ serviceAccountName: account, ...spec }));
      counts.asked += 1;
      const response = answer?.status === 200 ? JSON.parse(answer.text).response : undefined;
      counts.silent += response === undefined ? 1 : 0;
      counts.allowed += response?.allowed === true ? 1 : 0;
      const mayNot = spec === tape || account === 'stranger' || isOut(account, asked);
      if (response?.allowed === true) {
        const what = `${replica.name} allowed ${account} ${JSON.stringify(spec)}`;
        (mayNot ? slips : allowed).push(what);
      }
    }
  }
  if (wasStale && (await isStale())) {
    slips.push(...allowed.map((what) => `${what}, while its policies were stale`));
  }
}

async function repeat(what: () => Promise<void>, every: number): Promise<void> {
  while (!run.signal.aborted) {
    await what();
    await pause(every);
  }
}

/** The account may use `disks`, and pods of it were created; then it may no longer, and the API server knows. */
async function unbind(account: string): Promise<void> {
  const { kubectl } = here();
  for (const namespace of ['a', 'b', 'shop']) {
    const binding = `use-disks-${account}`;
    expect((await kubectl(['-n', namespace, 'delete', 'rolebinding', binding])).stderr).toBe('');
    const ask = [
      '-n',
      namespace,
      'auth',
      'can-i',
      'use',
      'schedulingpolicies.scheduling.blazar-enforcement/disks',
    ];
    const who = ['--as', `system:serviceaccount:${namespace}:${account}`];
    await vi.waitUntil(async () => (await kubectl([...ask, ...who])).stdout.trim() === 'no', SETTLED);
  }
  unboundAt.set(account, Date.now());
}

async function bind(account: string): Promise<void> {
  const { apply } = here();
  for (const namespace of ['a', 'b', 'shop']) {
    const [role = {}, binding = {}] = granted(namespace, account, 'disks') as [Manifest, Manifest];
    const metadata = { name: `use-disks-${account}`, namespace };
    await apply([serviceAccount(account, namespace), role, { ...binding, metadata }]);
  }
}

const createdBy = async (account: string, namespace: string) => {
  number += 1;
  const one = pod(namespace, `good-${account}-${number}`, { serviceAccountName: account, ...ssd });
  const args = ['--request-timeout=8s', 'create', '--validate=false', '-f', '-'];
  return (await here().kubectl(args, { stdin: JSON.stringify(one) })).status === 0;
};

const states = async () =>
  Promise.all(
    replicas.map(async (replica) => {
      const answer = await replica.ask('/readyz');
      return answer === undefined ? 'silent' : `${answer.status} ${JSON.parse(answer.text).policies?.state}`;
    }),
  );

/** Good pods come through both replicas again; says after how long. */
async function resumes(what: string): Promise<void> {
  const from = performance.now();
  const seconds: string[] = [];
  for (const { name } of replicas) {
    await vi.waitUntil(() => createdBy('worker', name), SETTLED);
    seconds.push(`${name} after ${((performance.now() - from) / 1000).toFixed(1)} s`);
  }
  process.stdout.write(`${what}: good pods again by ${seconds.join(', ')}\n`);
  expect(slips).toEqual([]);
}

/** Every pod there is, judged. */
async function expectNoBadPods(): Promise<number> {
  const { items } = (await here().get('get', 'pods', '--all-namespaces')) as Manifest;
  const bad = items.filter(({ metadata, spec }: Manifest) => {
    const created = Date.parse(metadata.creationTimestamp);
    const account = spec.serviceAccountName;
    const lost = unboundAt.get(account);
    return (
      (spec.nodeSelector?.disk ?? 'ssd') !== 'ssd' ||
      (spec.nodeSelector !== undefined && account === 'stranger') ||
      (lost !== undefined && created > lost + IN_FORCE + SECOND)
    );
  });
  expect(bad.map(({ metadata }: Manifest) => `${metadata.namespace}/${metadata.name}`)).toEqual([]);
  expect(slips).toEqual([]);
  return items.length;
}

interface Outage {
  readonly what: string;
  begins(): unknown;
  ends(): unknown;
  /** In milliseconds. */
  readonly lasts: number;
}

const OUTAGES: readonly Outage[] = [
  {
    what: 'the API server was killed and started again',
    begins: () => here().stopApiServer(),
    ends: () => here().startApiServer(),
    lasts: 15_000,
  },
  {
    what: 'the API server was frozen for 20 s',
    begins: () => here().freeze(),
    ends: () => here().thaw(),
    lasts: 20_000,
  },
  {
    what: 'etcd was compacted under the watch',
    begins: () => here().compact(),
    ends: () => undefined,
    lasts: 12_000,
  },
  { what: 'etcd was frozen', begins: () => etcd?.freeze(), ends: () => etcd?.thaw(), lasts: 20_000 },
  {
    what: 'etcd was stopped for longer than cluster_stale_after',
    begins: () => etcd?.kill(),
    ends: () => etcd?.startAgain(),
    lasts: 25_000,
  },
];

describe.skipIf(started === undefined)('two replicas of the service, beside a real cluster', () => {
  beforeAll(async () => {
    if (started === undefined) {
      return;
    }
    etcd = etcdProcess(started.folder);
    await applyWithoutWebhooks(started);
    await started.apply([
      ...['a', 'b', 'shop'].map((name) => namespace(name, { replica: name })),
      schedulingPolicy('disks', { allowed: { nodeSelectors: { disk: ['ssd'] } } }),
    ]);
    const kubeconfig = await kubeconfigOfService(started);
    for (const name of ['a', 'b']) {
      const replica = await startReplica(started, name, { kubeconfig, cluster_stale_after: '10' });
      replicas.push(replica);
      await started.apply(webhooksFor(started, replica));
    }
    await vi.waitUntil(async () => (await states()).every((state) => state === '200 current'), SETTLED);
    await started.apply(['a', 'b', 'shop'].map((name) => serviceAccount('stranger', name)));
    await bind('worker');
    for (const { name } of replicas) {
      await vi.waitUntil(() => createdBy('worker', name), SETTLED);
      // The webhooks are known, when something bad is refused.
      const bad = pod(name, 'early', { serviceAccountName: 'worker', ...tape });
      const args = ['create', '--dry-run=server', '--validate=false', '-f', '-'];
      await vi.waitUntil(async () => {
        const { stderr } = await started.kubectl(args, { stdin: JSON.stringify(bad) });
        return stderr.includes('nodeSelector disk');
      }, SETTLED);
    }
    streams = Promise.all([
      ...replicas.map(({ name }) => repeat(() => create(name), 700)),
      ...replicas.map((replica) => repeat(() => interrogate(replica), 300)),
    ]);
  });

  it.each(OUTAGES.map((outage, index) => ({ ...outage, account: `leaver-${index}` })))(
    '$what: nothing bad passes, and good pods come again',
    { timeout: 1_200_000 },
    async ({ what, begins, ends, lasts, account }) => {
      await bind(account);
      for (const { name } of replicas) {
        await vi.waitUntil(() => createdBy(account, name), SETTLED);
      }
      await unbind(account);
      await begins();
      const seen = new Set<string>();
      const until = performance.now() + lasts;
      while (performance.now() < until) {
        seen.add((await states()).join(', '));
        await pause(500);
      }
      await ends();
      if (what.includes('cluster_stale_after')) {
        expect([...seen].join('; '), 'both say so').toContain('503 stale, 503 stale');
      }
      process.stdout.write(`${what}: /readyz of both: ${[...seen].join('; ')}\n`);
      await resumes(what);
      await vi.waitUntil(async () => (await states()).every((state) => state === '200 current'), SETTLED);
      await expectNoBadPods();
    },
  );

  it('of all pods that came, only those are there that policies allow', async () => {
    await vi.waitUntil(() => isOut(`leaver-${OUTAGES.length - 1}`, Date.now() - IN_FORCE), SETTLED);
    run.abort();
    await streams;
    const pods = await expectNoBadPods();
    process.stdout.write(`${pods} pods in the cluster; ${JSON.stringify(counts)}\n`);
    expect(counts.created).toBeGreaterThan(20);
    expect(counts.refused).toBeGreaterThan(counts.created);
    for (const replica of replicas) {
      expect(replica.output()).not.toMatch(/"level":"(error|fatal)"|eyJhbGci/);
    }
  });
});
