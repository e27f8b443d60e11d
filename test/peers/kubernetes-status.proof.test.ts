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
import { binding, clusterRole, GROUP, namespace, RBAC, schedulingPolicy } from './cluster-objects.ts';
import { type Cluster, startCluster } from './kubernetes.ts';

const there = peerProgram('KUBERNETES_PEER') !== undefined;
const PATIENT = { timeout: 120_000, interval: 100 };
/** As in the service, but for `retry`: a busy machine does not lose the lead. */
const TIMING = { lease: 15, renew: 10, retry: 0.3 };

/** Where the lead is to be lost. */
const SHORT_TIMING = { lease: 6, renew: 4, retry: 0.3 };

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
  function replica(
    identity: string,
    { kubeconfig = join(cluster.folder, 'admin.conf'), audit = [] as string[], timing = TIMING } = {},
  ) {
    const logger = recordingLogger();
    const client = createApiClient({ kubeconfig, logger });
    const outcomes: string[] = [];
    const observer = {
      statusWritten: (outcome: string) => void outcomes.push(outcome),
      event: (outcome: string) => void outcomes.push(`event ${outcome}`),
    };
    const policies = new WatchedPolicies(
      (path, listener) => new ListWatch({ client, path, listener, logger }),
      logger,
    );
    const election = { identity, namespace: 'policies', timing };
    const writer = new StatusWriter({
      client,
      policies,
      inForce: () => ({ audit, notAsked: [] }),
      logger,
      observer,
      election,
    });
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

  it('conditions of others stay, and ours are repaired', async () => {
    const { stop } = replica('a');
    await cluster.apply([policy('shared')]);
    await shows('shared', ...VALID);
    const foreign = {
      type: 'Reviewed',
      status: 'True',
      reason: 'Seen',
      message: 'by a person',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    };
    const { status } = (await cluster.get('get', 'schedpol', 'shared')) as {
      status: { conditions: object[] };
    };
    const [, enforced] = status.conditions;
    await patchStatus('shared', {
      observedGeneration: 99,
      conditions: [foreign, { ...enforced, reason: 'Wrong' }],
    });
    await vi.waitFor(
      async () =>
        expect((await conditionsOf('shared')).sort()).toEqual([
          'Accepted=True Valid',
          'Enforced=True Enforced',
          'Exportable=True Complete',
          'Reviewed=True Seen',
        ]),
      PATIENT,
    );
    await cluster.apply([policy('shared', ['other'])]);
    await vi.waitFor(async () => {
      const after = (await cluster.get('get', 'schedpol', 'shared')) as { status: { conditions: object[] } };
      expect(after.status).toMatchObject({ observedGeneration: 2 });
      expect(after.status.conditions).toContainEqual(foreign);
      expect(after.status.conditions, 'the time of a transition that was none').toContainEqual({
        ...enforced,
        observedGeneration: 2,
      });
    }, PATIENT);
    await stop();
  });

  it('without the right to the status nothing is written but events, until it is granted', async () => {
    const kubeconfig = cluster.user('status-less', 'nobody');
    const bind = (name: string, rules: object[]) => [
      clusterRole(name, ...rules),
      binding(name, name, [{ apiGroup: RBAC, kind: 'User', name: 'status-less' }]),
    ];
    const rule = (group: string, resource: string, ...verbs: string[]) => ({
      apiGroups: [group],
      resources: [resource],
      verbs,
    });
    await cluster.apply([
      ...bind('reads', [rule(GROUP, 'schedulingpolicies', 'list', 'watch'), rule('', 'events', 'create')]),
      policy('right'),
    ]);
    const without = replica('without', { kubeconfig });
    await vi.waitFor(() => {
      const lines = without.logger.lines.filter(({ fields }) => 'lease' in fields);
      expect(lines).toMatchObject([{ level: 'warn', fields: { status: 403 } }]);
    }, PATIENT);
    await without.stop();
    expect(without.outcomes).toEqual([]);
    await cluster.apply(bind('leads', [rule('coordination.k8s.io', 'leases', 'get', 'create', 'update')]));
    const leads = replica('leads', { kubeconfig });
    await vi.waitFor(() => expect(leads.outcomes).toContain('refused'), PATIENT);
    await cluster.apply([invalid('wrong')]);
    await vi.waitFor(() => expect(leads.outcomes).toContain('event sent'), PATIENT);
    const hints = leads.logger.lines.filter(({ fields }) => 'hint' in fields && 'policy' in fields);
    expect(hints).toMatchObject([
      { level: 'warn', fields: { hint: 'grant patch on schedulingpolicies/status' } },
    ]);
    await leads.stop();
    await cluster.apply(bind('writes', [rule(GROUP, 'schedulingpolicies/status', 'patch')]));
    replica('writes', { kubeconfig });
    await shows('right', ...VALID);
  });

  it('goes on after the API server was killed and started again', async () => {
    const { writer, outcomes } = replica('a', { timing: SHORT_TIMING });
    await vi.waitFor(() => expect(writer.isLeader).toBe(true), PATIENT);
    await cluster.apply([policy('before')]);
    await shows('before', ...VALID);
    await cluster.stopApiServer();
    await vi.waitFor(() => expect(writer.isLeader, 'no leader without a lease').toBe(false), PATIENT);
    await cluster.startApiServer();
    await cluster.apply([policy('before', ['other']), policy('after')]);
    await shows('before', ...VALID);
    await shows('after', ...VALID);
    expect(outcomes.filter((one) => one === 'refused' || one === 'gone')).toEqual([]);
  });

  /** As whoever has the right writes it. */
  async function patchStatus(name: string, status: object): Promise<void> {
    const client = createApiClient({ kubeconfig: join(cluster.folder, 'admin.conf') });
    const path = `/apis/${GROUP}/v1alpha1/schedulingpolicies/${name}/status`;
    await client.request({ method: 'PATCH', path, body: { status } });
    await client.close();
  }
});
