/** Conditions and events beside a real API server, as kubectl shows them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createApiClient } from '../../src/kubernetes/cluster/api/api-client.ts';
import { ListWatch } from '../../src/kubernetes/cluster/api/list-watch.ts';
import { WatchedPolicies } from '../../src/kubernetes/cluster/live/live-policies.ts';
import { StatusWriter } from '../../src/kubernetes/cluster/status/status-writer.ts';
import { projectFile } from '../support/files.ts';
import { recordingLogger } from '../support/logger.ts';
import { peerProgram } from '../support/peers.ts';
import { namespace, schedulingPolicy } from './cluster-objects.ts';
import { type Cluster, startCluster } from './kubernetes.ts';

const there = peerProgram('KUBERNETES_PEER') !== undefined;
const PATIENT = { timeout: 120_000, interval: 100 };
/** As in the service, but for `retry`. */
const TIMING = { lease: 15, renew: 10, retry: 0.3 };

const VALID = ['Accepted=True Valid', 'Enforced=True Enforced', 'Exportable=True Complete'];

const policy = (name: string, schedulerNames: unknown = []) =>
  schedulingPolicy(name, { allowed: { schedulerNames } });

/** The API server takes it, because it allows unknown fields. */
const invalid = (name: string) => ({ ...policy(name), spec: { alowed: {} } });

describe.skipIf(!there)('beside a real API server', () => {
  let cluster: Cluster;

  beforeAll(async () => {
    const started = startCluster();
    if (started === undefined) {
      throw new Error('the cluster does not start');
    }
    cluster = started;
    const file = projectFile('etc/kubernetes/custom-resource-definition.yaml');
    await cluster.kubectl(['apply', '-f', '-'], { stdin: readFileSync(file, 'utf8') });
    await cluster.kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=300s']);
    await cluster.apply([namespace('policies')]);
  });

  afterAll(() => cluster?.stop());

  /** A replica, without a service around it. */
  function replica(identity: string) {
    const logger = recordingLogger();
    const client = createApiClient({ kubeconfig: join(cluster.folder, 'admin.conf'), logger });
    const outcomes: string[] = [];
    const observer = {
      statusWritten: (outcome: string) => void outcomes.push(outcome),
      event: (outcome: string) => void outcomes.push(`event ${outcome}`),
    };
    const policies = new WatchedPolicies(
      (path, listener) => new ListWatch({ client, path, listener, logger }),
      logger,
    );
    const election = { identity, namespace: 'policies', timing: TIMING };
    const writer = new StatusWriter({ client, policies, audit: [], logger, observer, election });
    policies.start();
    writer.start();
    let isStopped = false;
    const stop = async () => {
      if (!isStopped) {
        isStopped = true;
        await writer.close();
        await policies.close();
        await client.close();
      }
    };
    onTestFinished(stop);
    return { writer, outcomes, logger, stop };
  }

  const conditionsOf = async (name: string) => {
    const { status } = (await cluster.get('get', 'schedpol', name)) as {
      status?: { observedGeneration: number; conditions: { type: string; status: string; reason: string }[] };
    };
    return (status?.conditions ?? []).map(({ type, status: is, reason }) => `${type}=${is} ${reason}`);
  };
  const shows = (name: string, ...conditions: string[]) =>
    vi.waitFor(async () => expect(await conditionsOf(name)).toEqual(conditions), PATIENT);

  it('kubectl waits for conditions, and describe shows why a policy is invalid', async () => {
    const { outcomes, stop } = replica('a');
    await cluster.apply([policy('x')]);
    const waited = await cluster.kubectl([
      'wait',
      '--for=condition=Accepted',
      'schedpol/x',
      '--timeout=300s',
    ]);
    expect(waited).toMatchObject({ status: 0, stderr: '' });
    await shows('x', ...VALID);
    await cluster.apply([invalid('x')]);
    await shows('x', 'Accepted=False Invalid', 'Enforced=True LastGoodForm', 'Exportable=False Invalid');
    await vi.waitFor(async () => {
      const { stdout } = await cluster.kubectl(['describe', 'schedpol', 'x']);
      expect(stdout).toMatch(/Generation 1, the last valid one, is in force/);
      expect(stdout).toMatch(/Warning\s+SchedulingPolicyInvalid\s+\S+\s+blazar-enforcement\s+\S+/);
    }, PATIENT);
    await stop();
    const written = outcomes.filter((one) => one === 'written').length;
    expect(written).toBe(2);
    const next = replica('b');
    await vi.waitFor(() => expect(next.writer.isLeader).toBe(true), PATIENT);
    // It does not know the last good form.
    await shows('x', 'Accepted=False Invalid', 'Enforced=False Invalid', 'Exportable=False Invalid');
    await cluster.kubectl(['delete', 'schedpol', 'x']);
    await cluster.apply([policy('x')]);
    await shows('x', ...VALID);
  });
});
