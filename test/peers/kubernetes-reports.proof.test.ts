/** Events about refusals, and who of several services writes the status: services as processes, a real API server, and kubectl. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { peerProgram } from '../support/peers.ts';
import { startCommand } from '../support/run-command.ts';
import { schedulingPolicy } from './cluster-objects.ts';
import { type Cluster, startCluster } from './kubernetes.ts';
import { type PolicedCluster, policedCluster } from './policed-cluster.ts';

const there = peerProgram('KUBERNETES_PEER') !== undefined;
/** Those that have begun. */
const minutesSince = (began: number) => Math.ceil((performance.now() - began) / 60_000);
interface Leases {
  readonly items: readonly { readonly metadata: { readonly name: string } }[];
}
const PATIENT = { timeout: 120_000, interval: 250 };

describe.skipIf(!there)('services beside a real API server', () => {
  let cluster: Cluster;
  let policed: PolicedCluster;

  beforeAll(async () => {
    const started = startCluster();
    if (started === undefined) {
      throw new Error('the cluster does not start');
    }
    cluster = started;
    policed = await policedCluster(cluster, { write_status: 'true' });
  });

  afterAll(async () => {
    await policed?.close();
    cluster?.stop();
  });

  const workload = (kind: string, name: string, spec: object) => ({
    apiVersion: kind === 'Job' ? 'batch/v1' : 'apps/v1',
    kind,
    metadata: { name, namespace: 'first' },
    spec,
  });
  /** Pods that no policy allows. */
  const template = {
    metadata: { labels: { app: 'web' } },
    spec: { nodeName: 'n1', restartPolicy: 'Always', containers: [{ name: 'c', image: 'example.org/none' }] },
  };
  const selector = { matchLabels: { app: 'web' } };
  const events = async () => {
    const { items } = (await cluster.get('get', 'events', '-n', 'first')) as {
      items: { reason: string; involvedObject: { kind: string; name: string }; message: string }[];
    };
    return items.filter(({ reason }) => reason === 'SchedulingPolicyRefused');
  };

  it('kubectl describe shows at the ReplicaSet and the Job why their pods are refused, once a minute', async () => {
    const began = performance.now();
    const never = { ...template, spec: { ...template.spec, restartPolicy: 'Never' } };
    await policed.create(workload('Deployment', 'web', { replicas: 3, selector, template }));
    await policed.create(workload('Job', 'batch', { template: { spec: never.spec } }));
    await vi.waitFor(async () => {
      for (const kind of ['rs', 'job']) {
        const { stdout } = await cluster.kubectl(['describe', kind, '-n', 'first']);
        expect(stdout).toMatch(
          /Warning +SchedulingPolicyRefused +\S+ +blazar-enforcement +the pod does not fit the scheduling policies of system:serviceaccount:first:default: /,
        );
      }
    }, PATIENT);
    const told = await events();
    expect([...new Set(told.map(({ involvedObject }) => involvedObject.kind))].sort()).toEqual([
      'Job',
      'ReplicaSet',
    ]);
    // The controllers have tried more often than that.
    expect(told.length).toBeLessThanOrEqual(2 * (1 + minutesSince(began)));
  });

  it('nobody can have an event written at what somebody else owns', async () => {
    const { items } = (await cluster.get('get', 'rs', '-n', 'first')) as {
      items: { metadata: { name: string; uid: string } }[];
    };
    const [owner] = items;
    const began = performance.now();
    const before = (await events()).length;
    const said = await policed.create({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: 'forged',
        namespace: 'first',
        ownerReferences: [
          { apiVersion: 'apps/v1', kind: 'ReplicaSet', controller: true, ...owner?.metadata },
        ].map(({ apiVersion, kind, controller, name, uid }) => ({ apiVersion, kind, controller, name, uid })),
      },
      spec: { ...template.spec, schedulerName: 'forged-words' },
    });
    expect(said).toContain('denied');
    await new Promise((resolve) => setTimeout(resolve, 2000));
    const after = await events();
    expect(after.filter(({ message }) => message.includes('forged-words'))).toEqual([]);
    expect(after.length).toBeLessThanOrEqual(before + 2 * minutesSince(began));
  });

  it('a service that is killed or frozen is followed by another one, and never writes what is old', async () => {
    await policed.close();
    const conf = join(cluster.folder, 'replica.conf');
    const text = readFileSync(join(cluster.folder, 'policy-service.conf'), 'utf8');
    writeFileSync(conf, text);
    const replica = () => {
      const command = startCommand(['serve', '--config-file', conf]);
      onTestFinished(async () => {
        command.process.kill('SIGCONT');
        command.process.kill('SIGKILL');
        await command.ended;
      });
      const log = () => command.output().stderr;
      const times = (message: string) => log().split(message).length - 1;
      return {
        process: command.process,
        get isRunning() {
          return command.process.exitCode === null && command.process.signalCode === null;
        },
        get isLeader() {
          return times('replica writes the status') > times('no longer writes the status');
        },
      };
    };
    const pid = ({ process }: ReturnType<typeof replica>) => process.pid;
    const change = async (name: string, word: string) => {
      await cluster.apply([schedulingPolicy(name, { allowed: { schedulerNames: [word] } })]);
    };
    const isWritten = (name: string) =>
      vi.waitFor(async () => {
        const { metadata, status } = (await cluster.get('get', 'schedpol', name)) as {
          metadata: { generation: number };
          status?: { observedGeneration: number };
        };
        expect(status?.observedGeneration).toBe(metadata.generation);
      }, PATIENT);

    await cluster.kubectl(['delete', 'mutatingwebhookconfiguration,validatingwebhookconfiguration', '--all']);
    const replicas = [replica(), replica(), replica()];
    const leaders = () => replicas.filter(({ isLeader, isRunning }) => isLeader && isRunning);
    await vi.waitFor(() => expect(leaders()).toHaveLength(1), PATIENT);
    await change('chaos', 'one');
    await isWritten('chaos');

    leaders()[0]?.process.kill('SIGKILL');
    // It renews its lease no more: nobody has to wait for all of it.
    const shorter = JSON.stringify({ spec: { leaseDurationSeconds: 1 } });
    const lease = (await cluster.get('get', 'lease', '-n', 'blazar-enforcement')) as Leases;
    const patch = ['patch', 'lease', '-n', 'blazar-enforcement', String(lease.items[0]?.metadata.name)];
    await cluster.kubectl([...patch, '--type=merge', '-p', shorter]);
    await vi.waitFor(() => expect(leaders()).toHaveLength(1), PATIENT);
    await change('chaos', 'two');
    await isWritten('chaos');

    const [frozen] = leaders();
    frozen?.process.kill('SIGSTOP');
    await change('chaos', 'three');
    await isWritten('chaos');
    const others = () => leaders().filter((one) => one !== frozen);
    await vi.waitFor(() => expect(others()).toHaveLength(1), PATIENT);
    const next = others();
    frozen?.process.kill('SIGCONT');
    await change('chaos', 'four');
    await isWritten('chaos');
    await vi.waitFor(() => expect(leaders().map(pid)).toEqual(next.map(pid)), PATIENT);
    const { metadata } = (await cluster.get('get', 'schedpol', 'chaos')) as {
      metadata: { resourceVersion: string };
    };
    await new Promise((resolve) => setTimeout(resolve, 3000));
    const later = (await cluster.get('get', 'schedpol', 'chaos')) as {
      metadata: { resourceVersion: string };
    };
    expect(later.metadata.resourceVersion, 'nobody writes again').toBe(metadata.resourceVersion);

    next[0]?.process.kill('SIGTERM');
    await vi.waitFor(() => expect(leaders().map(pid)).toEqual([frozen?.process.pid]), PATIENT);
  });
});
