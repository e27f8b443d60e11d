import { describe, expect, it } from 'vitest';
import { ApiError, ApiUnreachableError } from '../../../../src/kubernetes/cluster/api/contract.ts';
import { Leader, type LeaderOptions } from '../../../../src/kubernetes/cluster/status/leader.ts';
import { recordingLogger } from '../../../support/logger.ts';
import { ClusterDouble } from './cluster-double.ts';
import { MovedClock } from './moved-clock.ts';

const PATH = '/apis/coordination.k8s.io/v1/namespaces/policies/leases/blazar-enforcement';

function replicas() {
  const cluster = new ClusterDouble();
  const clock = new MovedClock();
  const logger = recordingLogger();
  const elected: string[] = [];
  const replica = (identity: string, options: Partial<LeaderOptions> = {}) =>
    new Leader({
      client: cluster.client('policies'),
      logger,
      identity,
      clock,
      onElected: () => elected.push(identity),
      ...options,
    });
  const spec = () => cluster.objects.get(PATH)?.spec as Record<string, unknown>;
  return { cluster, clock, logger, elected, replica, spec, a: replica('a'), b: replica('b') };
}

describe('the leader', () => {
  it('is the replica that creates the lease, and stays it by renewing', async () => {
    const { a, b, clock, elected, spec } = replicas();
    for (let times = 0; times < 20; times += 1) {
      await a.attempt();
      await b.attempt();
      expect([a.isLeader, b.isLeader]).toEqual([true, false]);
      await clock.pass(2000);
    }
    expect(elected).toEqual(['a']);
    expect(spec()).toMatchObject({ holderIdentity: 'a', leaseDurationSeconds: 15, leaseTransitions: 0 });
    expect(spec().renewTime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  });

  it('is another one only when the lease was seen unchanged for its duration, whatever the times in it say', async () => {
    const { a, b, clock, cluster, spec } = replicas();
    await a.attempt();
    const stored = cluster.objects.get(PATH);
    cluster.objects.set(PATH, {
      ...(stored as NonNullable<typeof stored>),
      spec: { ...spec(), renewTime: '1999-01-01T00:00:00.000000Z' },
    });
    await b.attempt();
    await clock.pass(14_900);
    await b.attempt();
    expect(b.isLeader).toBe(false);
    await clock.pass(200);
    await b.attempt();
    expect([a.isLeader, b.isLeader]).toEqual([false, true]);
    expect(spec()).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 });
  });

  it('is it no more as soon as it goes on after it was frozen, before it has asked anybody', async () => {
    const { a, b, clock, elected } = replicas();
    await a.attempt();
    await b.attempt();
    clock.freeze(9_999);
    expect(a.isLeader).toBe(true);
    clock.freeze(1);
    expect(a.isLeader).toBe(false);
    clock.freeze(5_000);
    await b.attempt();
    await a.attempt();
    expect([a.isLeader, b.isLeader]).toEqual([false, true]);
    expect(elected).toEqual(['a', 'b']);
  });

  it('is one of two that find the lease free at the same time', async () => {
    const { cluster, clock, replica } = replicas();
    const gone = replica('gone');
    await gone.attempt();
    const both = [replica('a'), replica('b')];
    await Promise.all(both.map((one) => one.attempt()));
    await clock.pass(15_000);
    await Promise.all(both.map((one) => one.attempt()));
    expect(both.filter(({ isLeader }) => isLeader)).toHaveLength(1);
    expect(cluster.called('PUT', PATH)).toHaveLength(2);
  });

  it('is one of two that create the lease at the same time', async () => {
    const { cluster, replica } = replicas();
    const both = [replica('a'), replica('b')];
    await Promise.all(both.map((one) => one.attempt()));
    expect(both.filter(({ isLeader }) => isLeader)).toHaveLength(1);
    expect(cluster.called('POST', '/leases')).toHaveLength(2);
  });

  it('gives the lease back at the end, so that the next one need not wait', async () => {
    const { a, b, spec } = replicas();
    await a.attempt();
    await b.attempt();
    await a.close();
    expect(spec()).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1 });
    await b.attempt();
    expect([a.isLeader, b.isLeader]).toEqual([false, true]);
    await a.close();
    expect(spec(), 'the lease of another one').toMatchObject({ holderIdentity: 'b' });
  });

  it('keeps what others have added to the lease', async () => {
    const { cluster, replica } = replicas();
    cluster.objects.set(PATH, {
      metadata: { name: 'blazar-enforcement', resourceVersion: '0', labels: { app: 'x' } } as never,
      spec: { strategy: 'OldestEmulationVersion' },
    });
    await replica('a').attempt();
    expect(cluster.objects.get(PATH)).toMatchObject({
      metadata: { labels: { app: 'x' } },
      spec: { strategy: 'OldestEmulationVersion', holderIdentity: 'a' },
    });
  });
});

describe('nobody leads', () => {
  it('without the right to the lease, which is logged once, until the right is granted', async () => {
    const { a, cluster, logger } = replicas();
    cluster.fault = () => new ApiError(403, 'Forbidden', 'leases is forbidden');
    expect([await a.attempt(), await a.attempt()], 'seconds until the next attempt').toEqual([60, 60]);
    expect(a.isLeader).toBe(false);
    expect(logger.lines.filter(({ level }) => level === 'warn')).toMatchObject([
      { fields: { lease: 'policies/blazar-enforcement', status: 403, error: 'leases is forbidden' } },
    ]);
    cluster.fault = () => undefined;
    await a.attempt();
    expect(a.isLeader).toBe(true);
  });

  it.for([
    new ApiUnreachableError('connection refused'),
    new ApiError(500, 'InternalError', 'etcd is away'),
    new ApiError(429, 'TooManyRequests', 'later'),
  ])('for longer than its last renewal allows, while the API server says $message', async (fault) => {
    const { a, clock, cluster, logger } = replicas();
    await a.attempt();
    cluster.fault = () => fault;
    await clock.pass(5000);
    expect(await a.attempt()).toBe(2);
    expect(a.isLeader).toBe(true);
    await clock.pass(5000);
    await a.attempt();
    expect(a.isLeader).toBe(false);
    expect(logger.lines.filter(({ level }) => level === 'warn')).toEqual([]);
  });

  it.for([{}, { metadata: { resourceVersion: 7 } }, [], 'Lease', null])(
    'when the lease is %j',
    async (object) => {
      const { cluster, replica } = replicas();
      cluster.objects.set(PATH, object as never);
      const a = replica('a');
      await a.attempt();
      expect(a.isLeader).toBe(false);
    },
  );

  it('for longer than five minutes because of a lease with a wrong duration', async () => {
    const { cluster, clock, replica } = replicas();
    cluster.objects.set(PATH, {
      metadata: { name: 'blazar-enforcement', resourceVersion: '0' },
      spec: { holderIdentity: 'x', leaseDurationSeconds: 2_000_000_000 },
    });
    const a = replica('a');
    await a.attempt();
    await clock.pass(299_000);
    await a.attempt();
    expect(a.isLeader).toBe(false);
    await clock.pass(1000);
    await a.attempt();
    expect(a.isLeader).toBe(true);
  });
});
