import { describe, expect, it, onTestFinished } from 'vitest';
import { ApiError, ApiUnreachableError } from '../../../../src/kubernetes/cluster/api/contract.ts';
import { StatusWriter } from '../../../../src/kubernetes/cluster/status/status-writer.ts';
import { recordingLogger } from '../../../support/logger.ts';
import { ClusterDouble } from './cluster-double.ts';
import { MovedClock } from './moved-clock.ts';

const LEASES = '/leases';

function writing({
  audit = [],
  cluster = new ClusterDouble(),
}: {
  audit?: string[];
  cluster?: ClusterDouble;
} = {}) {
  const inForce = { audit, notAsked: [] as string[] };
  const clock = new MovedClock();
  const logger = recordingLogger();
  const outcomes: string[] = [];
  const observer = {
    statusWritten: (outcome: string) => void outcomes.push(outcome),
    event: (outcome: string) => void outcomes.push(`event ${outcome}`),
  };
  const client = cluster.client('policies');
  const writer = new StatusWriter({
    client,
    policies: cluster.live,
    inForce: () => inForce,
    logger,
    observer,
    clock,
  });
  onTestFinished(() => writer.close());
  const patches = () => cluster.called('PATCH', '/status');
  const statusOf = (name: string) => cluster.policies.get(name)?.status as { conditions: object[] };
  const auditChanged = (names: string[]) => {
    inForce.audit = names;
    writer.lookAgain();
  };
  return { cluster, clock, logger, outcomes, writer, auditChanged, patches, statusOf };
}

const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);

describe('the status of a policy', () => {
  it('says of a valid one that it is accepted and in force', async () => {
    const { cluster, clock, writer, patches, statusOf } = writing();
    cluster.store('a');
    writer.start();
    await clock.pass(1000);
    expect(statusOf('a')).toMatchObject({
      observedGeneration: 1,
      conditions: [
        { type: 'Accepted', status: 'True', message: 'The policy is valid.', lastTransitionTime: TIME },
        { type: 'Enforced', status: 'True' },
        { type: 'Exportable', status: 'True' },
      ],
    });
    expect(patches()).toMatchObject([
      {
        path: '/apis/scheduling.blazar-enforcement/v1alpha1/schedulingpolicies/a/status',
        query: { fieldManager: 'blazar-enforcement', force: 'true' },
        contentType: 'application/apply-patch+yaml',
        body: { metadata: { name: 'a', uid: 'uid-a', resourceVersion: '1' } },
      },
    ]);
  });

  it('is written within a moment of each change, and keeps the time of a condition whose status stays', async () => {
    const { cluster, clock, writer, patches, statusOf } = writing();
    writer.start();
    await clock.pass(1000);
    cluster.store('a');
    await clock.pass(100);
    const before = statusOf('a');
    const old = before.conditions.map((one) => ({ ...one, lastTransitionTime: '2020-01-01T00:00:00Z' }));
    cluster.writeStatus('a', { ...before, conditions: old });
    await clock.pass(10_000);
    expect(patches(), 'nobody can tell that a time is not ours').toHaveLength(1);
    cluster.store('a', { mistake: 'spec.allowed: no', enforcedGeneration: 1 });
    await clock.pass(100);
    expect(statusOf('a').conditions).toMatchObject([
      { status: 'False', lastTransitionTime: expect.not.stringMatching(/^2020/) },
      { status: 'True', reason: 'LastGoodForm', lastTransitionTime: '2020-01-01T00:00:00Z' },
      { type: 'Exportable', status: 'False' },
    ]);
  });

  it('is not written again by a replica that starts', async () => {
    const { cluster, clock, writer } = writing();
    cluster.store('a');
    cluster.store('b', { mistake: 'spec: no', enforcedGeneration: undefined });
    writer.start();
    await clock.pass(2000);
    await writer.close();
    cluster.calls.length = 0;
    const next = writing({ cluster });
    next.writer.start();
    await next.clock.pass(60_000);
    expect(cluster.called('PATCH', '')).toEqual([]);
    expect(cluster.called('POST', '/events')).toEqual([]);
  });

  it('is written by nobody but the leader', async () => {
    const { cluster, clock, writer } = writing();
    cluster.fault = ({ path }) => (path.includes(LEASES) ? new ApiError(403, 'Forbidden', 'no') : undefined);
    cluster.store('a', { mistake: 'spec: no', enforcedGeneration: undefined });
    writer.start();
    await clock.pass(10_000);
    cluster.store('b');
    await clock.pass(600_000);
    expect(cluster.calls.filter(({ path }) => !path.includes(LEASES))).toEqual([]);
  });

  it('says at once when audit mode begins and ends', async () => {
    const { cluster, clock, writer, statusOf, auditChanged } = writing({ audit: ['a'] });
    cluster.store('a');
    cluster.store('b');
    writer.start();
    await clock.pass(1000);
    const reasons = () =>
      ['a', 'b'].map((name) => (statusOf(name).conditions[1] as { reason: string }).reason);
    expect(reasons()).toEqual(['Audited', 'Enforced']);
    auditChanged(['*']);
    await clock.pass(1000);
    expect(reasons()).toEqual(['Audited', 'Audited']);
    auditChanged([]);
    await clock.pass(1000);
    expect(reasons()).toEqual(['Enforced', 'Enforced']);
  });

  it('is repaired, ever more slowly where somebody else insists', async () => {
    const { cluster, clock, writer, patches } = writing();
    cluster.store('a');
    writer.start();
    await clock.pass(60_000);
    const times: number[] = [];
    for (let seconds = 0; seconds < 1200; seconds += 1) {
      const count = patches().length;
      cluster.writeStatus('a', { conditions: [], observedGeneration: 7 });
      await clock.pass(1000);
      if (patches().length > count) {
        times.push(seconds);
      }
    }
    expect(times.slice(0, 3)).toEqual([0, 1, 5]);
    expect(times.length).toBeLessThan(13);
    cluster.store('a');
    await clock.pass(200);
    expect(cluster.policies.get('a')?.status, 'what is new is written at once').toMatchObject({
      observedGeneration: 2,
    });
  });

  it('is written ten times a second at most, the newest state of each', async () => {
    const { cluster, clock, writer, patches, statusOf } = writing();
    writer.start();
    await clock.pass(1000);
    const names = Array.from({ length: 1000 }, (_, index) => `p${index}`);
    for (const name of [...names, ...names, ...names]) {
      cluster.store(name);
    }
    await clock.pass(10_000);
    expect(patches().length).toBeGreaterThan(90);
    expect(patches().length).toBeLessThanOrEqual(101);
    await clock.pass(91_000);
    expect(patches()).toHaveLength(1000);
    expect(
      names.map(statusOf).every((status) => JSON.stringify(status).includes('"observedGeneration":3')),
    ).toBe(true);
  });

  it('is not written once more while the watch is silent', async () => {
    const { cluster, clock, writer, patches, auditChanged } = writing();
    cluster.watches = false;
    cluster.store('a');
    writer.start();
    await clock.pass(1000);
    cluster.tell('a');
    auditChanged([]);
    await clock.pass(600_000);
    expect(patches()).toHaveLength(1);
  });
});

describe('a write that fails', () => {
  const onStatus = (error: Error) => (request: { path: string }) =>
    request.path.endsWith('/status') ? error : undefined;

  it('because the policy has changed is tried with the newer state, rarely while it goes on changing', async () => {
    const { cluster, clock, outcomes, writer, patches } = writing();
    cluster.store('a');
    writer.start();
    cluster.fault = onStatus(new ApiError(409, 'Conflict', 'changed'));
    for (let times = 0; times < 600; times += 1) {
      cluster.store('a');
      await clock.pass(100);
    }
    expect(patches().length).toBeGreaterThan(5);
    expect(patches().length).toBeLessThan(20);
    cluster.fault = () => undefined;
    cluster.store('a');
    await clock.pass(11_000);
    expect(outcomes.at(-1)).toBe('written');
    expect(cluster.policies.get('a')?.status).toMatchObject({ observedGeneration: 602 });
  });

  it.for([
    new ApiUnreachableError('connection refused'),
    new ApiError(500, 'InternalError', 'etcd'),
    new ApiError(503, 'ServiceUnavailable', 'starting'),
    new ApiError(429, 'TooManyRequests', 'later'),
  ])('with $message keeps all writes back for ever longer, and resumes', async (error) => {
    const { cluster, clock, logger, writer, patches, statusOf } = writing();
    for (let index = 0; index < 50; index += 1) {
      cluster.store(`p${index}`);
    }
    writer.start();
    cluster.fault = onStatus(error);
    await clock.pass(300_000);
    expect(patches().length).toBeGreaterThan(8);
    expect(patches().length).toBeLessThan(20);
    expect(logger.lines.filter(({ level }) => level === 'warn')).toEqual([]);
    cluster.fault = () => undefined;
    await clock.pass(45_000);
    expect(cluster.policies.size).toBe(50);
    expect([...cluster.policies.keys()].every((name) => statusOf(name) !== undefined)).toBe(true);
  });

  it('without the right is tried once a minute, and logged once until the right is there', async () => {
    const { cluster, clock, logger, outcomes, writer, patches } = writing();
    cluster.store('a');
    cluster.store('b');
    writer.start();
    cluster.fault = onStatus(new ApiError(403, 'Forbidden', 'schedulingpolicies/status is forbidden'));
    await clock.pass(600_000);
    expect(patches().length).toBeLessThanOrEqual(11);
    const lines = logger.lines.filter(({ level }) => level === 'warn');
    expect(lines).toMatchObject([{ fields: { hint: 'grant patch on schedulingpolicies/status' } }]);
    cluster.fault = () => undefined;
    await clock.pass(61_000);
    expect(outcomes.filter((one) => one === 'written')).toHaveLength(2);
  });

  it('because there is no such policy any more stops nothing', async () => {
    const { cluster, clock, outcomes, writer } = writing();
    cluster.store('gone');
    cluster.store('there');
    writer.start();
    cluster.fault = ({ path }) =>
      path.endsWith('/gone/status') ? new ApiError(404, 'NotFound', 'gone') : undefined;
    await clock.pass(1000);
    expect(outcomes).toEqual(['gone', 'written']);
    cluster.remove('gone');
    await clock.pass(600_000);
    expect(outcomes).toEqual(['gone', 'written']);
  });

  it('because policies have no status there is tried once a minute, and logged', async () => {
    const { cluster, clock, logger, writer, patches } = writing();
    for (let index = 0; index < 1000; index += 1) {
      cluster.store(`p${index}`);
    }
    cluster.fault = onStatus(
      new ApiError(404, 'NotFound', 'the server could not find the requested resource'),
    );
    writer.start();
    await clock.pass(600_000);
    expect(patches().length).toBeLessThan(15);
    expect(logger.lines.filter(({ level }) => level === 'warn')).toMatchObject([
      { fields: { hint: 'apply the CustomResourceDefinition of this version' } },
    ]);
  });
});

it('an event tells of a policy that turns invalid, at the policy', async () => {
  const { cluster, clock, writer } = writing();
  cluster.store('a');
  writer.start();
  await clock.pass(1000);
  cluster.store('a', { mistake: 'spec.allowed: \u202eno', enforcedGeneration: 1 });
  await clock.pass(1000);
  expect(cluster.called('POST', '/events')).toMatchObject([
    {
      path: '/api/v1/namespaces/default/events',
      body: {
        involvedObject: { kind: 'SchedulingPolicy', name: 'a', uid: 'uid-a', namespace: undefined },
        type: 'Warning',
        reason: 'SchedulingPolicyInvalid',
        message: 'spec.allowed: \\u202eno',
      },
    },
  ]);
});
