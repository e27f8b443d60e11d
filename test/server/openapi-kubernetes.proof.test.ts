/** What /openapi.json says of admission webhooks, and that a real service does no less and no more. */
import { text as wholeText } from 'node:stream/consumers';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { PodAdmission } from '../../src/kubernetes/admission/pod-admission.ts';
import { WorkloadReview } from '../../src/kubernetes/admission/workloads.ts';
import {
  type Answer,
  described,
  expectDescribed,
  mistakenPosts,
  parsedAnswer,
} from '../support/api-answers.ts';
import { apiDescription, descriptionWith } from '../support/api-description.ts';
import {
  ADMISSION,
  creating,
  policiesForAll,
  runHeld,
  runKubernetes,
  updating,
  VALIDATION,
  type WireReview,
} from '../support/kubernetes-service.ts';
import { postHead } from '../support/raw-http.ts';
import { createLasting } from '../support/requests.ts';
import { openTls, tlsFiles } from '../support/tls.ts';
import { itIsSoundWith } from './openapi-sections.ts';

const api = descriptionWith({ kubernetes: true });
const PATHS = [ADMISSION, VALIDATION];
const SCHEMA = { $ref: '#/components/schemas/AdmissionReview' };
const POLICIES = policiesForAll({
  disks: {
    required: { nodeSelectors: { disk: ['ssd', 'hdd'] } },
    allowed: { schedulerNames: [] },
    default: { nodeSelector: { disk: 'ssd' } },
  },
});

describe('the description', () => {
  it('has the endpoints if there are scheduling policies', async () => {
    const { request } = await runKubernetes(POLICIES);
    const { json, text } = await request('/openapi.json');
    expect(json).toEqual(api.document);
    expect(Object.keys(api.document.paths)).toEqual(expect.arrayContaining(PATHS));
    expect(text).not.toContain('policies.yaml');
    const { paths, components } = apiDescription;
    expect(String([Object.keys(paths), Object.keys(components.schemas)])).not.toMatch(
      /kubernetes|Admission/i,
    );
  });

  itIsSoundWith(api, PATHS);

  it('names the timeout parameter and each way to authenticate', () => {
    for (const path of PATHS) {
      const described: { parameters?: unknown; security?: unknown } = api.document.paths[path]?.post ?? {};
      const { parameters, security } = described;
      expect(parameters).toContainEqual(
        expect.objectContaining({ name: 'timeout', in: 'query', schema: expect.anything() }),
      );
      expect(security).toEqual([{ bearer: [] }, { clientCertificate: [] }, {}]);
    }
  });
});

const JUNK: fc.Arbitrary<unknown> = fc.constantFrom(undefined, null, '', 'x', 0, true, [], {}, [1]);
const mostly = (right: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 14, arbitrary: right }, { weight: 1, arbitrary: JUNK });

/** The pod itself, and that it has a namespace, is not described: other resources may have what they like there. */
const reviews = fc.record(
  {
    apiVersion: mostly(fc.constant('admission.k8s.io/v1')),
    kind: mostly(fc.constant('AdmissionReview')),
    request: mostly(
      fc.record({
        uid: mostly(fc.string({ minLength: 1 })),
        resource: mostly(
          fc.record({
            group: mostly(fc.constantFrom('', 'apps')),
            version: mostly(fc.constant('v1')),
            resource: mostly(fc.constantFrom('pods', 'deployments')),
          }),
        ),
        subResource: mostly(fc.constantFrom(undefined, null, '', 'exec')),
        operation: mostly(fc.constantFrom('CREATE', 'UPDATE', 'DELETE', 'CONNECT', 'OTHER')),
        namespace: fc.oneof(
          { weight: 20, arbitrary: fc.constant('shop') },
          { weight: 1, arbitrary: fc.nat() },
        ),
        userInfo: mostly(fc.constantFrom(undefined, null, {}, { username: 'lin' }, { username: null })),
        dryRun: mostly(fc.constantFrom(undefined, null, true, false)),
        object: fc.constant({ spec: {} }),
        options: JUNK,
      }),
    ),
  },
  { requiredKeys: [] },
);

/** The answer to a pod that cannot be read. With a status of HTTP it would pass where `failurePolicy` is Ignore. */
const UNREAD = /"allowed":false,.*the pod cannot be judged: /;

interface SentReview {
  readonly request?: {
    readonly operation?: unknown;
    readonly subResource?: unknown;
    readonly resource?: { readonly group?: unknown; readonly resource?: unknown } | null;
  };
}

/** Whether it is certain that a pod is to be judged. */
function isOfPod({ request }: SentReview): boolean {
  const { operation, subResource, resource } = request ?? {};
  const { group, resource: name } = resource ?? {};
  return ['CREATE', 'UPDATE'].includes(String(operation)) && !subResource && group === '' && name === 'pods';
}

it('describes exactly the requests that the service reads', async () => {
  const { post } = await runKubernetes(POLICIES);
  const seen = { judged: 0, refused: 0, unread: 0 };
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...PATHS), reviews, async (path, value) => {
      const body = JSON.parse(JSON.stringify(value)) as SentReview;
      const wrong = api.mistakes(SCHEMA, body);
      const { status, text } = await post(path, body);
      if (wrong.length === 0 || status !== 200) {
        seen[wrong.length === 0 ? 'judged' : 'refused'] += 1;
        expect({ body, status, text, wrong }).toMatchObject({ status: wrong.length === 0 ? 200 : 400 });
        return;
      }
      seen.unread += 1;
      expect({ body, text }).toMatchObject({
        text: expect.stringMatching(isOfPod(body) ? UNREAD : /"allowed"/),
      });
    }),
    { numRuns: 200 },
  );
  expect(Math.min(...Object.values(seen)), JSON.stringify(seen)).toBeGreaterThan(10);
});

const send = (url: string, path: string, body: string, headers = {}) =>
  described(url + path, path.replace(/\?.*/, ''), { body, headers });

/** The one that is refused in the description. */
function refused(): WireReview {
  const spec = { nodeSelector: { disk: 'tape' } };
  return creating(spec, { uid: '705ab4f5-6393-11e8-b7cc-42010a800002', namespace: 'research' });
}

const TEXT = JSON.stringify(creating());

async function fromOneService(): Promise<Answer[]> {
  const service = await runKubernetes(POLICIES);
  const bodies = [
    creating(),
    refused(),
    updating({}, { nodeName: 'n1' }),
    creating({}, { operation: 'DELETE' }),
    {},
    creating({}, { object: null }),
    creating({}, { uid: '' }),
  ];
  return Promise.all(
    PATHS.flatMap((path) => [
      ...bodies.map((body) => send(service.url, path, JSON.stringify(body))),
      send(service.url, `${path}?timeout=soon`, TEXT),
      ...mistakenPosts(service, path, TEXT),
    ]),
  );
}

async function fromATrial(): Promise<Answer[]> {
  const { url } = await runKubernetes(POLICIES, { kubernetes: { audit: ['*'] } });
  return Promise.all(PATHS.map((path) => send(url, path, JSON.stringify(refused()))));
}

async function withoutToken(): Promise<Answer[]> {
  const { url } = await runKubernetes(POLICIES, { kubernetes: { tokens: ['s3cret-0123456789abcdef'] } });
  return Promise.all(PATHS.map((path) => send(url, path, TEXT)));
}

/** To a wrong token, after ten of them. */
async function fromGuesses(): Promise<Answer[]> {
  const { url } = await runKubernetes(POLICIES, { kubernetes: { tokens: ['s3cret-0123456789abcdef'] } });
  const guess = (path: string) => send(url, path, TEXT, { Authorization: 'Bearer another' });
  for (let count = 0; count < 10; count += 1) {
    await guess(PATHS[0] ?? '');
  }
  return Promise.all(PATHS.map(guess));
}

async function withoutCertificate(): Promise<Answer[]> {
  const { options, caFile } = tlsFiles();
  const { port } = await runKubernetes(POLICIES, {
    service: options,
    kubernetes: { client_ca_file: caFile },
  });
  return Promise.all(
    PATHS.map(async (path) => {
      const socket = openTls(undefined, 'TLSv1.3', { host: '127.0.0.1', port });
      socket.write(`${postHead(path, 2, 'Connection: close\r\n')}{}`);
      return parsedAnswer('post', path, await wholeText(socket));
    }),
  );
}

/** A pod whose review breaks is refused. A workload is only advice: what breaks there is a fault. */
async function fromFaults(): Promise<Answer[]> {
  const { url } = await runKubernetes(POLICIES);
  const fault = () => {
    throw new Error('a fault');
  };
  const spies = [
    vi.spyOn(PodAdmission.prototype, 'admit').mockImplementation(fault),
    vi.spyOn(WorkloadReview.prototype, 'concerns').mockImplementation(fault),
  ];
  const deployment = creating({}, { resource: { group: 'apps', version: 'v1', resource: 'deployments' } });
  const texts = [TEXT, JSON.stringify(deployment)];
  const answers = await Promise.all(PATHS.flatMap((path) => texts.map((text) => send(url, path, text))));
  for (const spy of spies) {
    spy.mockRestore();
  }
  expect(answers.map(({ status }) => status)).toEqual(PATHS.flatMap(() => [200, 500]));
  return answers;
}

async function fromBusyService(): Promise<Answer[]> {
  const { url, post, begun, finish } = await runHeld(POLICIES, { max_concurrent: 1, max_queued: 0 });
  const held = post('/check-create', createLasting(60));
  await begun;
  const answers = await Promise.all(PATHS.map((path) => send(url, path, TEXT)));
  finish();
  await held;
  return answers;
}

async function fromWaiting(): Promise<Answer[]> {
  const { raw } = await runKubernetes(POLICIES, { service: { deadline: 1 } });
  return Promise.all(
    PATHS.map(async (path) => parsedAnswer('post', path, await raw(`${postHead(path, 100)}{`))),
  );
}

it('an API server gets exactly the described responses', async () => {
  const faults = await fromFaults();
  const groups = await Promise.all([
    fromOneService(),
    fromATrial(),
    fromBusyService(),
    fromWaiting(),
    withoutToken(),
    fromGuesses(),
    withoutCertificate(),
  ]);
  const answers = [...faults, ...groups.flat()];
  // Of each kind: allowed, patched, refused and warned of.
  for (const member of ['"patch"', '"status"', '"warnings"', '"allowed":true}']) {
    expect(answers.filter(({ status, text }) => status === 200 && text.includes(member))).not.toEqual([]);
  }
  expectDescribed(api, answers, (path) => PATHS.includes(path));
});
