/** What the API server does not send, and how long it waits. */
import { gzipSync } from 'node:zlib';
import { describe, expect, it, vi } from 'vitest';
import { Generation } from '../../../src/server/configuration/generation.ts';
import {
  ADMISSION,
  creating,
  policies,
  policiesForAll,
  runHeld,
  runKubernetes,
  updating,
  VALIDATION,
} from '../../support/kubernetes-service.ts';
import { createLasting } from '../../support/requests.ts';

const DISKS = { allowed: { schedulerNames: [], nodeSelectors: { disk: ['ssd'] } } };
const { request, ...review } = creating();
const { object } = request;
const { metadata } = object;

/** A review in which these members of the request, or of the pod's spec, are something else. */
const asking = (changes: object) => ({ ...review, request: { ...request, ...changes } });
const holding = (spec: object) => asking({ object: { metadata, spec } });
const without = (name: string) => asking({ [name]: undefined });

type Malformed = readonly [what: string, field: string, body: unknown];

/** Nobody could be answered. */
const MALFORMED: readonly Malformed[] = [
  ['a list', '', []],
  ['an empty object', 'apiVersion', {}],
  ['a review of another version', 'apiVersion', { ...asking({}), apiVersion: 'admission.k8s.io/v1beta1' }],
  ['another kind', 'kind', { ...asking({}), kind: 'ConversionReview' }],
  ['a review that is an answer', 'request', { ...review, response: { uid: 's3cret', allowed: true } }],
  ['a request that is null', 'request', { ...review, request: null }],
  ['a uid that is a number', 'request.uid', asking({ uid: 7 })],
];

/** The API server says which request it is. Every mistake in a pod: `test/kubernetes/policies/pod.test.ts`. */
const UNJUDGED: readonly Malformed[] = [
  ['no resource', 'request.resource', without('resource')],
  ['a subresource that is a list', 'request.subResource', asking({ subResource: [] })],
  ['no operation', 'request.operation', without('operation')],
  ['a namespace that is a list', 'request.namespace', asking({ namespace: ['shop'] })],
  ['a user that is a text', 'request.userInfo', asking({ userInfo: 's3cret' })],
  ['no object', 'request.object', without('object')],
  [
    'an old object without a spec',
    'request.oldObject.spec',
    updating({}, {}, { oldObject: { metadata: { name: 's3cret' } } }),
  ],
  [
    'an affinity that is a text',
    'request.object.spec.affinity.nodeAffinity',
    holding({ affinity: { nodeAffinity: 's3cret' } }),
  ],
  // A template is not checked before mutating webhooks. The rights of an account are kept by its name.
  [
    'letters of a service account',
    'request.object.spec.serviceAccountName: expected at most 253 characters',
    holding({ serviceAccountName: 'a'.repeat(254) }),
  ],
  // The API server stores such a pod.
  [
    'too many tolerations',
    'request.object.spec.tolerations',
    holding({ tolerations: new Array(1001).fill({}) }),
  ],
  [
    'a Binding without a name',
    'request.object.target.name',
    asking({ subResource: 'binding', object: { target: {} } }),
  ],
];

describe('an invalid review', () => {
  it('gets 400 and the invalid field, without its content', async () => {
    const { post } = await runKubernetes(policies({ disks: DISKS }));
    const asked = MALFORMED.flatMap((one) => [ADMISSION, VALIDATION].map((path) => [path, ...one] as const));
    const answers = await Promise.all(asked.map(([path, , , body]) => post(path, body)));
    for (const [index, { status, json, text, headers }] of answers.entries()) {
      const [path, what, field] = asked[index] ?? [];
      const message = expect.stringMatching(/expected|Invalid/);
      expect({ status, json }, `${what} at ${path}`).toEqual({ status: 400, json: { message, field } });
      expect(headers.has('X-Enforcement-Generation')).toBe(false);
      expect(text, what).not.toContain('s3cret');
    }
  });

  it('that has a uid is refused with the invalid field in an answer, since any other status may let the pod pass', async () => {
    const { ask } = await runKubernetes(policies({ disks: DISKS }));
    for (const [what, field, body] of UNJUDGED) {
      const { answer, ...came } = await ask(body as typeof review & { request: typeof request });
      expect({ what, ...came }).toMatchObject({ what, status: 200, allowed: false, patch: [] });
      expect(came.message, what).toMatch(/^the (pod|binding) cannot be judged: .*expected/);
      expect(came.message, what).toContain(field);
      expect(answer.text, what).not.toContain('s3cret');
    }
  });

  it('of another type gets 415, and one that is too long 413', async () => {
    const { post } = await runKubernetes(policies({ disks: DISKS }), { service: { body_limit: 4000 } });
    const type = { 'Content-Type': 'application/vnd.kubernetes.protobuf' };
    expect((await post(ADMISSION, asking({}), type)).status).toBe(415);
    const json = { message: 'expected a body of at most 4000 bytes' };
    const long = holding({ containers: 'x'.repeat(5000) });
    expect(await post(ADMISSION, long)).toMatchObject({ status: 413, json });
    const small = gzipSync(JSON.stringify(long));
    expect(small.length).toBeLessThan(1000);
    expect(await post(ADMISSION, small, { 'Content-Encoding': 'gzip' })).toMatchObject({ status: 413, json });
    expect(
      (await post(ADMISSION, gzipSync(JSON.stringify(asking({}))), { 'Content-Encoding': 'gzip' })).status,
    ).toBe(200);
  });
});

describe('a review that is too large to be read', () => {
  /** As an API server writes it. */
  const written = (
    [group, resource]: readonly [string, string],
    { operation = 'CREATE', name = 'web', subResource = '' } = {},
  ) =>
    JSON.stringify({
      kind: 'AdmissionReview',
      apiVersion: 'admission.k8s.io/v1',
      request: {
        uid: 'u-1',
        kind: { group, version: 'v1', kind: 'Any' },
        resource: { group, version: 'v1', resource },
        ...(subResource && { subResource }),
        requestKind: { group, version: 'v1', kind: 'Any' },
        requestResource: { group, version: 'v1', resource },
        ...(subResource && { requestSubResource: subResource }),
        name,
        namespace: 'shop',
        operation,
        userInfo: { username: 'lin' },
        object: { metadata: { name }, spec: { hostname: 'x'.repeat(300_000) } },
      },
    });
  const PODS = ['', 'pods'] as const;
  const run = (kubernetes = {}) =>
    runKubernetes(policies({ disks: DISKS }), { service: { body_limit: 4000 }, kubernetes });

  it('is refused in an answer, whatever stands in its names', async () => {
    const { ask } = await run();
    const names = ['web', 'a"b', '","namespace":"x","operation":"DELETE"', 'x'.repeat(9000)];
    for (const name of names) {
      expect(await ask(written(PODS, { name }))).toMatchObject({
        status: 200,
        uid: 'u-1',
        allowed: false,
        message: 'the pod cannot be judged: expected a body of at most 4000 bytes',
      });
    }
    for (const resource of [
      ['apps', 'daemonsets'],
      ['', 'bindings'],
      ['scheduling.blazar-enforcement', 'schedulingpolicies'],
    ] as const) {
      expect(await ask(written(resource))).toMatchObject({ status: 200, allowed: false });
    }
    expect(await ask(written(PODS, { subResource: 'binding' }))).toMatchObject({ allowed: false });
  });

  it('passes if it needs no review, and where only a warning was asked for', async () => {
    const { ask } = await run();
    expect(await ask(written(PODS, { operation: 'DELETE' }))).toMatchObject({ allowed: true, warnings: [] });
    expect(await ask(written(PODS, { subResource: 'status' }))).toMatchObject({ allowed: true });
    expect(await ask(written(['', 'services']))).toMatchObject({ allowed: true, warnings: [] });
    const warned = { allowed: true, warnings: [expect.stringContaining('could not be checked')] };
    expect(await ask(written(['apps', 'deployments']))).toMatchObject(warned);
    const refusing = await run({ workloads: 'refuse' });
    expect(await refusing.ask(written(['apps', 'deployments']))).toMatchObject({ allowed: false });
  });

  it('is refused too if it has more values than are parsed', async () => {
    const { ask } = await runKubernetes(policies({ disks: DISKS }));
    const many = JSON.stringify(new Array(300_001).fill(0));
    const text = written(PODS).replace(/"hostname":"x*"/, () => `"env":${many}`);
    expect(await ask(text)).toMatchObject({ status: 200, allowed: false });
  });
});

describe("names of JavaScript's own members", () => {
  const hostile = (text: string) => JSON.stringify(asking({})).replace('"spec":{}', text);

  it('are ordinary labels in a pod', async () => {
    const spec = {
      allowed: { nodeSelectors: { disk: ['ssd'] } },
      default: { nodeSelector: { disk: 'ssd' } },
    };
    const { ask } = await runKubernetes(policiesForAll({ disks: spec }));
    const refused = await ask(hostile('"spec":{"nodeSelector":{"__proto__":"x","constructor":"y"}}'));
    expect(refused).toMatchObject({ status: 200, allowed: false });
    expect(refused.message).toContain('nodeSelector __proto__: expected nothing, got "x"');
    expect(refused.message).toContain('nodeSelector constructor: expected nothing, got "y"');
    const beside = await ask(
      hostile('"spec":{"__proto__":{"nodeSelector":{"disk":"tape"}},"nodeSelector":{}}'),
    );
    expect(beside).toMatchObject({
      allowed: true,
      patch: [{ op: 'add', path: '/spec/nodeSelector/disk', value: 'ssd' }],
    });
    expect(({} as { nodeSelector?: unknown }).nodeSelector).toBeUndefined();
  });

  it('are not read as fields of the request', async () => {
    const { ask } = await runKubernetes(policies({ disks: DISKS }));
    const inside = JSON.stringify(asking({})).slice(1, -1);
    expect((await ask(`{"__proto__":{${inside}}}`)).status).toBe(400);
    expect((await ask(hostile('"__proto__":{"spec":{}}'))).allowed).toBe(false);
  });
});

describe('the parameter timeout', () => {
  /** How long a decision may take that was asked for with a query, in seconds. */
  async function waiting(...queries: string[]): Promise<number[]> {
    const { ask } = await runKubernetes(policies({ disks: DISKS }), { service: { deadline: 600 } });
    const inTurn = vi.spyOn(Generation.prototype, 'inTurn');
    for (const query of queries) {
      expect((await ask(creating(), ADMISSION + query)).status, query).toBe(200);
    }
    return inTurn.mock.calls.map(([, seconds = Number.NaN]) => seconds);
  }

  it('limits the wait to less than the API server waits, in the format of Go, up to the deadline', async () => {
    const times = { '': 600, '10s': 9, '500ms': 0.4, '1.5s': 1.2, '1m30s': 89, '1h0m0s': 600, '900s': 600 };
    const waits = await waiting(...Object.keys(times).map((time) => (time === '' ? '' : `?timeout=${time}`)));
    // What has passed before is gone.
    for (const [index, most] of Object.values(times).entries()) {
      expect(waits[index]).toBeLessThanOrEqual(most);
      expect(waits[index]).toBeGreaterThan(most > 60 ? most - 60 : -1);
    }
  });

  it('of 0 still allows a response without waiting', async () => {
    expect(await waiting('?timeout=0s', '?timeout=0.001ms')).toEqual([0, 0]);
  });

  it('limits the wait for a turn', async () => {
    const service = { max_concurrent: 1, deadline: 600 };
    const { ask, post, begun, finish } = await runHeld(policies({ disks: DISKS }), service);
    const held = post('/check-create', createLasting(60));
    await begun;
    // Whoever waits for the deadline of the service waits longer than this test may take.
    for (const timeout of ['100ms', '0s']) {
      const { status, allowed, answer } = await ask(creating(), `${ADMISSION}?timeout=${timeout}`);
      // Not an HTTP error: with failurePolicy Ignore the pod would pass.
      expect({ timeout, status, allowed, answer: answer.json }).toMatchObject({
        timeout,
        status: 200,
        allowed: false,
        answer: { response: { status: { code: 503, reason: 'ServiceUnavailable' } } },
      });
    }
    finish();
    expect((await held).status).toBe(204);
    expect((await ask(creating(), `${ADMISSION}?timeout=100ms`)).status).toBe(200);
  });

  it('that is not a duration gets 400', async () => {
    const { ask } = await runKubernetes(policies({ disks: DISKS }));
    const hostile = ['10s%0a', '10s&timeout=10s', '%00', `${'9'.repeat(400)}s`];
    const values = ['', '10', 's', '-1s', '1e3s', '10s5m', '1d', '1m30', ...hostile];
    for (const value of values) {
      const { status, answer } = await ask(creating(), `${ADMISSION}?timeout=${value}`);
      expect({ value, status, json: answer.json }).toEqual({
        value,
        status: 400,
        json: { message: 'expected a duration such as 10s as the query parameter timeout' },
      });
    }
    expect((await ask(creating(), `${VALIDATION}?timeout=ten`)).status).toBe(400);
  });
});
