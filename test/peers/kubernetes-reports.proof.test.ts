import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { peerProgram } from '../support/peers.ts';
import { type Cluster, startCluster } from './kubernetes.ts';
import { type PolicedCluster, policedCluster } from './policed-cluster.ts';

const there = peerProgram('KUBERNETES_PEER') !== undefined;
/** Those that have begun. */
const minutesSince = (began: number) => Math.ceil((performance.now() - began) / 60_000);
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
});
