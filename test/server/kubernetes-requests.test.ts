/** What the API server does not send, and how long it waits. */
import { gzipSync } from 'node:zlib';
import { describe, expect, it, vi } from 'vitest';
import { Generation } from '../../src/server/generation.ts';
import {
  ADMISSION,
  creating,
  policies,
  policiesForAll,
  runHeld,
  runKubernetes,
  updating,
  VALIDATION,
} from '../support/kubernetes-service.ts';
import { createLasting } from '../support/requests.ts';

const DISKS = { allowed: { schedulerNames: [], nodeSelectors: { disk: ['ssd'] } } };
const { request, ...review } = creating();
const { object } = request;
const resource = { group: '', version: 'v1', resource: 'pods' };
const { metadata } = object;

/** A review in which these members of the request, or of the pod's spec, are something else. */
const asking = (changes: object) => ({ ...review, request: { ...request, ...changes } });
const holding = (spec: object) => asking({ object: { metadata, spec } });
const without = (name: string) => asking({ [name]: undefined });

const MALFORMED: readonly [what: string, field: string, body: unknown][] = [
  ['a list', '', []],
  ['null', '', 'null'],
  ['a text', '', '"s3cret"'],
  ['an empty object', 'apiVersion', {}],
  ['a review of another version', 'apiVersion', { ...asking({}), apiVersion: 'admission.k8s.io/v1beta1' }],
  ['a review without a version', 'apiVersion', { ...asking({}), apiVersion: undefined }],
  ['another kind', 'kind', { ...asking({}), kind: 'ConversionReview' }],
  ['a lease', 'apiVersion', { context: {}, lease: { name: 's3cret' } }],
  ['a review that is an answer', 'request', { ...review, response: { uid: 's3cret', allowed: true } }],
  ['a request that is null', 'request', { ...review, request: null }],
  ['a request that is a list', 'request', { ...review, request: [request] }],
  ['no uid', 'request.uid', without('uid')],
  ['a uid that is a number', 'request.uid', asking({ uid: 7 })],
  ['a uid that is empty', 'request.uid', asking({ uid: '' })],
  ['no resource', 'request.resource', without('resource')],
  [
    'a resource without a group',
    'request.resource.group',
    asking({ resource: { ...resource, group: null } }),
  ],
  [
    'a resource that is a number',
    'request.resource.resource',
    asking({ resource: { ...resource, resource: 7 } }),
  ],
  ['a subresource that is a list', 'request.subResource', asking({ subResource: [] })],
  ['no operation', 'request.operation', without('operation')],
  ['no namespace', 'request.namespace', without('namespace')],
  ['a namespace that is null', 'request.namespace', asking({ namespace: null })],
  ['a namespace that is empty', 'request.namespace', asking({ namespace: '' })],
  ['a namespace that is a list', 'request.namespace', asking({ namespace: ['shop'] })],
  ['a user that is a text', 'request.userInfo', asking({ userInfo: 's3cret' })],
  ['a name that is an object', 'request.userInfo.username', asking({ userInfo: { username: {} } })],
  ['a dry run in words', 'request.dryRun', asking({ dryRun: 'true' })],
  ['no object', 'request.object', without('object')],
  ['an object that is null', 'request.object', asking({ object: null })],
  ['an object that is a text', 'request.object', asking({ object: 's3cret' })],
  ['a pod without a spec', 'request.object.spec', asking({ object: { metadata } })],
  ['a spec that is a list', 'request.object.spec', holding([])],
  [
    'metadata that are a text',
    'request.object.metadata',
    asking({ object: { metadata: 's3cret', spec: {} } }),
  ],
  [
    'an old object without a spec',
    'request.oldObject.spec',
    updating({}, {}, { oldObject: { metadata: { name: 's3cret' } } }),
  ],
  ['a scheduler in numbers', 'request.object.spec.schedulerName', holding({ schedulerName: 7 })],
  ['a node that is an object', 'request.object.spec.nodeName', holding({ nodeName: { s3cret: 1 } })],
  [
    'a service account that is a list',
    'request.object.spec.serviceAccountName',
    holding({ serviceAccountName: [] }),
  ],
  ['tolerations that are a text', 'request.object.spec.tolerations', holding({ tolerations: 's3cret' })],
  ['a toleration that is null', 'request.object.spec.tolerations.0', holding({ tolerations: [null] })],
  [
    'a toleration with a number for its key',
    'request.object.spec.tolerations.1.key',
    holding({ tolerations: [{}, { key: 7 }] }),
  ],
  ['labels that are a list', 'request.object.spec.nodeSelector', holding({ nodeSelector: ['disk'] })],
  [
    'a label that is true',
    'request.object.spec.nodeSelector.disk',
    holding({ nodeSelector: { disk: true } }),
  ],
  [
    'an affinity that is a text',
    'request.object.spec.affinity.nodeAffinity',
    holding({ affinity: { nodeAffinity: 's3cret' } }),
  ],
];

describe('an invalid review', () => {
  it('gets 400 and the invalid field, without its content', async () => {
    const { post } = await runKubernetes(policies({ disks: DISKS }));
    const asked = MALFORMED.flatMap((one) => [ADMISSION, VALIDATION].map((path) => [path, ...one] as const));
    const answers = await Promise.all(asked.map(([path, , , body]) => post(path, body)));
    for (const [index, { status, json, text, headers }] of answers.entries()) {
      const [path, what, field] = asked[index] ?? [];
      expect({ path, what, status, json }).toEqual({
        path,
        what,
        status: 400,
        json: { message: expect.stringMatching(/expected|Invalid/), field },
      });
      expect(headers.has('X-Enforcement-Generation')).toBe(false);
      expect(text, what).not.toContain('s3cret');
    }
  });

  it('that is truncated, empty or not JSON gets 400', async () => {
    const { post } = await runKubernetes(policies({ disks: DISKS }));
    const whole = JSON.stringify(asking({}));
    for (const body of [
      '',
      ' ',
      '{',
      whole.slice(0, -1),
      whole.slice(0, 100),
      `${whole}}`,
      '\ufeff{',
      'uid: 1',
    ]) {
      expect(await post(ADMISSION, body), body).toMatchObject({
        status: 400,
        json: { message: 'expected a body in JSON' },
      });
    }
  });

  it('of another type gets 415, and one that is too long 413', async () => {
    const { post } = await runKubernetes(policies({ disks: DISKS }), { service: { body_limit: 4000 } });
    const types = ['text/plain', 'application/yaml', 'application/vnd.kubernetes.protobuf'];
    for (const type of types) {
      expect((await post(ADMISSION, asking({}), { 'Content-Type': type })).status, type).toBe(415);
    }
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
    expect((await ask(hostile('"__proto__":{"spec":{}}'))).status).toBe(400);
  });
});

it('a large pod is judged, and its message is bounded', async () => {
  const { ask } = await runKubernetes(policiesForAll({ disks: DISKS }));
  const nodeSelector = Object.fromEntries(
    Array.from({ length: 5000 }, (_, i) => [`label-${i}`, 'x'.repeat(300)]),
  );
  const { allowed, message = '' } = await ask(creating({ nodeSelector }));
  expect(allowed).toBe(false);
  expect(message.length).toBe(2000);
  expect(message).toMatch(/^the pod does not fit .*…$/);
});

describe('the parameter timeout', () => {
  /** How long a decision may take that was asked for with a query, in seconds. */
  async function waiting(...queries: string[]): Promise<unknown[]> {
    const { ask } = await runKubernetes(policies({ disks: DISKS }), { service: { deadline: 600 } });
    const inTurn = vi.spyOn(Generation.prototype, 'inTurn');
    try {
      for (const query of queries) {
        expect((await ask(creating(), ADMISSION + query)).status, query).toBe(200);
      }
      return inTurn.mock.calls.map(([, seconds]) => seconds);
    } finally {
      inTurn.mockRestore();
    }
  }

  it('limits the wait, in the format of Go, up to the deadline', async () => {
    expect(
      await waiting(
        '',
        '?timeout=10s',
        '?timeout=500ms',
        '?timeout=1.5s',
        '?timeout=1m30s',
        '?timeout=1h0m0s',
        '?timeout=900s',
      ),
    ).toEqual([600, 10, 0.5, 1.5, 90, 600, 600]);
  });

  it('of 0 still allows a response without waiting', async () => {
    expect(await waiting('?timeout=0s', '?timeout=0.001ms')).toEqual([0, 0.000001]);
  });

  it('limits the wait for a turn', async () => {
    const service = { max_concurrent: 1, deadline: 600 };
    const { ask, post, begun, finish } = await runHeld(policies({ disks: DISKS }), service);
    const held = post('/check-create', createLasting(60));
    await begun;
    // Whoever waits for the deadline of the service waits longer than this test may take.
    for (const timeout of ['100ms', '0s']) {
      const { status, answer } = await ask(creating(), `${ADMISSION}?timeout=${timeout}`);
      expect({ timeout, status, again: answer.headers.get('Retry-After') }).toMatchObject({
        timeout,
        status: 503,
        again: expect.stringMatching(/^\d+$/),
      });
    }
    finish();
    expect((await held).status).toBe(204);
    expect((await ask(creating(), `${ADMISSION}?timeout=100ms`)).status).toBe(200);
  });

  it('that is not a duration gets 400', async () => {
    const { ask } = await runKubernetes(policies({ disks: DISKS }));
    const values = [
      ...[
        '',
        '10',
        's',
        'ten',
        '-1s',
        '+1s',
        '1e3s',
        '%2010s',
        '10s%20',
        '10s5m',
        '10ss',
        'Infinitys',
        '1d',
        '10S',
      ],
      ...['10s&timeout=10s', '10s&timeout=1s', '%00', `${'9'.repeat(400)}s`, '1m30', '10s%0a'],
    ];
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
