import { readFileSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  type PodRequest,
  parseAdmissionReview,
} from '../../../../src/kubernetes/admission/admission-review.ts';
import { ApiError } from '../../../../src/kubernetes/cluster/api/contract.ts';
import { EventSender, eventObject } from '../../../../src/kubernetes/cluster/status/events.ts';
import { projectFile } from '../../../support/files.ts';
import { recordingLogger } from '../../../support/logger.ts';
import { ClusterDouble } from './cluster-double.ts';
import { MovedClock } from './moved-clock.ts';

const MESSAGE = 'the pod does not fit the scheduling policies of somebody: schedulerName: no';
const CONTROLLER = 'system:serviceaccount:kube-system:replicaset-controller';
const OWNER = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-1', uid: 'u-1', controller: true };

function telling() {
  const cluster = new ClusterDouble();
  const clock = new MovedClock();
  const logger = recordingLogger();
  const outcomes: string[] = [];
  const observer = { statusWritten() {}, event: (outcome: string) => void outcomes.push(outcome) };
  const sender = new EventSender({ client: cluster.client(), logger, observer, clock });
  onTestFinished(() => sender.close());
  const refuse = (request: PodRequest, message = MESSAGE) =>
    sender.refused(request, { allowed: false, message });
  const sent = () => cluster.called('POST', '/events').map(({ body }) => body as Record<string, unknown>);
  return { cluster, clock, logger, outcomes, sender, refuse, sent };
}

/** A pod that a controller creates. */
function creation(owner: unknown = OWNER, changes: Partial<PodRequest> = {}): PodRequest {
  const owners = Array.isArray(owner) ? owner : [owner];
  const pod = { metadata: { ownerReferences: owners }, spec: {} } as PodRequest['pod'];
  return {
    kind: 'pod',
    uid: 'r',
    username: CONTROLLER,
    groups: [],
    dryRun: false,
    name: undefined,
    namespace: 'shop',
    pod,
    current: undefined,
    isUpdate: false,
    ...changes,
  };
}

describe('a refusal', () => {
  it('is told at the controller that owns the pod, as an API server sends it', async () => {
    const { cluster, clock, outcomes, refuse, sent } = telling();
    const file = projectFile('test/fixtures/kubernetes/admission/create-by-replica-set.json');
    const request = parseAdmissionReview(JSON.parse(readFileSync(file, 'utf8')));
    refuse(request as PodRequest);
    await clock.pass(1000);
    const [owner] = (request as unknown as { pod: { metadata: { ownerReferences: object[] } } }).pod.metadata
      .ownerReferences;
    const { apiVersion, kind, name, uid } = owner as typeof OWNER;
    const { namespace } = request as PodRequest;
    expect(kind).toBe('ReplicaSet');
    expect(cluster.calls[0]?.path).toBe(`/api/v1/namespaces/${namespace}/events`);
    expect(sent()).toMatchObject([
      {
        apiVersion: 'v1',
        kind: 'Event',
        type: 'Warning',
        reason: 'SchedulingPolicyRefused',
        metadata: { namespace },
        message: MESSAGE,
        count: 1,
        involvedObject: { apiVersion, kind, name, uid, namespace },
        source: { component: 'blazar-enforcement' },
      },
    ]);
    expect(outcomes).toEqual(['sent']);
  });

  it.for([
    ['apps/v1', 'StatefulSet', 'statefulset-controller'],
    ['apps/v1', 'DaemonSet', 'daemon-set-controller'],
    ['batch/v1', 'Job', 'job-controller'],
    ['v1', 'ReplicationController', 'replication-controller'],
  ] as const)('is told at a %s %s', async ([apiVersion, kind, account]) => {
    const { clock, refuse, sent } = telling();
    const owner = { ...OWNER, apiVersion, kind };
    refuse(creation(owner, { username: `system:serviceaccount:kube-system:${account}` }));
    refuse(creation({ ...owner, uid: 'u-2' }, { username: 'system:kube-controller-manager' }));
    await clock.pass(1000);
    expect(sent()).toMatchObject([{ involvedObject: { kind } }, { involvedObject: { uid: 'u-2' } }]);
  });

  it.for<[string, PodRequest]>([
    ['by a person', creation(OWNER, { username: 'alice' })],
    ['by nobody', creation(OWNER, { username: undefined })],
    [
      'by an account of the same name elsewhere',
      creation(OWNER, { username: 'system:serviceaccount:shop:replicaset-controller' }),
    ],
    [
      'by the controller of another kind',
      creation(OWNER, { username: 'system:serviceaccount:kube-system:job-controller' }),
    ],
    ['of a dry run', creation(OWNER, { dryRun: true })],
    ['of the template of a DaemonSet', creation(OWNER, { kind: 'template' })],
    ['without an owner', creation([])],
    ['with an owner that is not its controller', creation({ ...OWNER, controller: false })],
    ['with two controllers', creation([OWNER, { ...OWNER, uid: 'u-2' }])],
    ['with an owner of another group', creation({ ...OWNER, apiVersion: 'example.org/v1' })],
    ['with an owner without a uid', creation({ ...OWNER, uid: '' })],
    ['with a name that leaves its path', creation({ ...OWNER, name: '../x' })],
    ['with more owners than there can be', creation(Array.from({ length: 101 }, () => OWNER))],
    ['with owners of no form', creation([null, 7, 'x', []])],
  ])('%s is not told', async ([, request]) => {
    const { clock, refuse, sent } = telling();
    refuse(request);
    await clock.pass(1000);
    expect(sent()).toEqual([]);
  });

  it('is told once a minute for each owner', async () => {
    const { clock, refuse, sent } = telling();
    for (let seconds = 0; seconds < 180; seconds += 1) {
      refuse(creation());
      refuse(creation({ ...OWNER, uid: 'u-2', name: 'web-2' }));
      await clock.pass(1000);
    }
    expect(sent()).toHaveLength(6);
  });

  it('that another replica has told is counted as repeated', async () => {
    const { cluster, clock, outcomes, refuse } = telling();
    cluster.fault = () => new ApiError(409, 'AlreadyExists', 'events "web-1.0" already exists');
    refuse(creation());
    await clock.pass(1000);
    expect(outcomes).toEqual(['repeated']);
  });

  it('that cannot be told is counted, and logged once in ten minutes', async () => {
    const { cluster, clock, logger, outcomes, refuse } = telling();
    cluster.fault = () => new ApiError(403, 'Forbidden', 'events is forbidden');
    for (let index = 0; index < 20; index += 1) {
      refuse(creation({ ...OWNER, uid: `u-${index}` }));
    }
    await clock.pass(10_000);
    expect(outcomes).toEqual(Array.from({ length: 20 }, () => 'failed'));
    expect(logger.lines).toHaveLength(1);
  });
});

describe('the queue of events', () => {
  it('is bounded for each namespace and for all, drops the newest, and takes more when it is shorter', async () => {
    const { clock, outcomes, refuse, sent } = telling();
    const of = (namespace: string, index: number) =>
      creation({ ...OWNER, uid: `${namespace}-${index}` }, { namespace });
    for (let index = 0; index < 1000; index += 1) {
      refuse(of('shop', index));
    }
    // The first is under way.
    expect(outcomes).toHaveLength(1000 - 65);
    for (const namespace of ['a', 'b', 'c', 'd']) {
      for (let index = 0; index < 64; index += 1) {
        refuse(of(namespace, index));
      }
    }
    expect(outcomes).toHaveLength(1000 - 65 + 64);
    expect(new Set(outcomes)).toEqual(new Set(['dropped']));
    await clock.pass(60_000);
    expect(sent()).toHaveLength(1 + 256);
    refuse(of('shop', 999));
    await clock.pass(1000);
    expect(sent(), 'what was dropped may be told later').toHaveLength(258);
  });

  it('is dropped at the end, and takes no more', async () => {
    const { outcomes, refuse, sender, sent } = telling();
    for (let index = 0; index < 10; index += 1) {
      refuse(creation({ ...OWNER, uid: `u-${index}` }));
    }
    await sender.close();
    refuse(creation({ ...OWNER, uid: 'late' }));
    expect(sent()).toHaveLength(1);
    expect(outcomes.filter((one) => one === 'dropped')).toHaveLength(9);
  });
});

describe('an event', () => {
  const draft = {
    involved: { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'u-1', namespace: 'shop' },
    namespace: 'shop',
    reason: 'SchedulingPolicyRefused',
    message: 'm',
  };
  const nameAt = (time: string, changes: object = {}) =>
    (eventObject({ ...draft, at: new Date(time), ...changes }) as { metadata: { name: string } }).metadata
      .name;

  it('has the same name in every replica for a minute of the clock', () => {
    const name = nameAt('2026-11-22T10:00:00Z');
    expect(name).toMatch(/^web\.[0-9a-f]{16}$/);
    expect(nameAt('2026-11-22T10:00:59Z')).toBe(name);
    expect(nameAt('2026-11-22T10:01:00Z')).not.toBe(name);
    expect(nameAt('2026-11-22T10:00:00Z', { reason: 'Other' })).not.toBe(name);
  });

  it('has a name and a message that the API server accepts, however long those of the object are', () => {
    const involved = { ...draft.involved, name: `${'a'.repeat(229)}.${'b'.repeat(23)}` };
    const name = nameAt('2026-11-22T10:00:00Z', { involved });
    expect(name.length).toBeLessThanOrEqual(253);
    expect(name).toMatch(/^a{229}\.[0-9a-f]{16}$/);
    const { message } = eventObject({ ...draft, message: '\n'.repeat(9999), at: new Date() }) as {
      message: string;
    };
    expect(message).toMatch(/^(\\u000a)+(\\u?0?0?)?…$/);
    expect(Buffer.byteLength(message)).toBeLessThanOrEqual(1024);
  });
});
