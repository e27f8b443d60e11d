/** Every door to another service, with the SDK of OpenTelemetry in this process. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { context, propagation, trace } from '@opentelemetry/api';
import { describe, expect, it, onTestFinished } from 'vitest';
import { temporaryFolder } from '../support/filter-folder.ts';
import { type Answer, policyServer } from '../support/policy-server.ts';
import { spansSince, withRecordedSpans } from '../support/recorded-spans.ts';

async function doors() {
  const { boundedFetch } = await import('../../src/client/bounded-fetch.ts');
  const { createHttpClient } = await import('../../src/http/client.ts');
  const { createApiClient } = await import('../../src/kubernetes/cluster/api/api-client.ts');
  const { OidcClient } = await import('../../src/server/users/oidc-client.ts');
  const { oidcOptions } = await import('../../src/server/users/oidc-options.ts');
  const { tracedCall } = await import('../../src/base/trace-context.ts');
  return { boundedFetch, createHttpClient, createApiClient, OidcClient, oidcOptions, tracedCall };
}

let loaded: Awaited<ReturnType<typeof doors>>;

withRecordedSpans(async () => {
  loaded = await doors();
});

const PATH = '/api/v1/namespaces/shop/pods';

function cluster(url: string) {
  const kubeconfig = join(temporaryFolder(), 'kubeconfig');
  const named = { name: 'it' };
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      'current-context': 'it',
      contexts: [{ ...named, context: { cluster: 'it', user: 'it' } }],
      clusters: [{ ...named, cluster: { server: url } }],
      users: [{ ...named, user: { token: 's3cret' } }],
    }),
  );
  const client = loaded.createApiClient({ kubeconfig });
  onTestFinished(() => client.close());
  return client;
}

function http() {
  const client = loaded.createHttpClient({
    timeout: 10,
    connectRetries: 0,
    breakerFailures: 0,
    breakerCooldown: 0,
    headers: { 'X-Auth-Token': 's3cret' },
  });
  onTestFinished(() => client.close());
  return client;
}

const headers = { 'Content-Type': 'application/json' };
const json = (body: object): Answer => ({ status: 200, body: JSON.stringify(body), headers });

interface Door {
  readonly called: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly answer: (url: string) => Answer;
  readonly call: (url: string) => Promise<unknown>;
}

const DOORS: readonly Door[] = [
  {
    called: 'an external service, a webhook or a SkyPilot',
    method: 'POST',
    path: '/check-create',
    answer: () => json({}),
    call: (url) => http().postJson(`${url}/check-create?t=s3cret`, '{}'),
  },
  {
    called: 'Keystone or Blazar',
    method: 'GET',
    path: '/v1/leases',
    answer: () => json({}),
    call: (url) => http().get(`${url}/v1/leases?t=s3cret`),
  },
  {
    called: 'a list of a cluster',
    method: 'GET',
    path: PATH,
    answer: () => json({ items: [] }),
    call: (url) => cluster(url).request({ method: 'GET', path: PATH, query: { continue: 's3cret' } }),
  },
  {
    called: 'a review of a cluster',
    method: 'POST',
    path: '/apis/authorization.k8s.io/v1/subjectaccessreviews',
    answer: () => json({}),
    call: (url) =>
      cluster(url).request({
        method: 'POST',
        path: '/apis/authorization.k8s.io/v1/subjectaccessreviews',
        body: { spec: { user: 's3cret' } },
      }),
  },
  {
    called: 'a watch of a cluster',
    method: 'GET',
    path: PATH,
    answer: () => json({ type: 'ADDED', object: { metadata: { name: 'a' } } }),
    async call(url) {
      for await (const { type } of cluster(url).watch(PATH, { resourceVersion: 's3cret' }, never)) {
        expect(type).toBe('ADDED');
      }
    },
  },
  {
    called: 'an issuer of OpenID Connect',
    method: 'GET',
    path: '/.well-known/openid-configuration',
    answer: (url) => json({ issuer: url, authorization_endpoint: `${url}/authorize` }),
    async call(url) {
      const client = new loaded.OidcClient(
        loaded.oidcOptions.parse({ issuer: url, client_id: 'it', client_secret: 's3cret' }),
      );
      onTestFinished(() => client.close());
      await client.authorizationUrl({ state: 's3cret', nonce: 's3cret', verifier: 's3cret' }, `${url}/back`);
    },
  },
  {
    called: 'our own API, by its client',
    method: 'GET',
    path: '/v1/budgets',
    answer: () => json({}),
    async call(url) {
      const client = loaded.boundedFetch({ timeout: 10, maxAnswerBytes: 1000 });
      onTestFinished(() => client.close());
      await client.fetch(
        new Request(`${url}/v1/budgets?t=s3cret`, { headers: { 'X-Auth-Token': 's3cret' } }),
      );
    },
  },
];

const never = new AbortController().signal;

/** Calls within a span, as a part of a request does. */
function withinRequest<Result>(call: () => Promise<Result>): Promise<Result> {
  return trace.getTracer('test').startActiveSpan('request', (span) => {
    const baggage = propagation.setBaggage(
      context.active(),
      propagation.createBaggage({ user: { value: 'alice' } }),
    );
    return context.with(baggage, call).finally(() => span.end());
  });
}

describe.each(DOORS)('$called', ({ method, path, answer, call }) => {
  it('has one span, without secrets, which is part of the trace and is passed on', async () => {
    const server = await policyServer({ status: 500 });
    server.answer = answer(server.url);
    spansSince();
    await withinRequest(() => call(server.url));
    const [span, request, ...others] = spansSince();
    expect(others).toEqual([]);
    expect(span).toMatchObject({
      name: method,
      kind: 2,
      status: { code: 0 },
      parentSpanContext: { spanId: request?.spanContext().spanId },
    });
    expect(span?.attributes).toEqual({
      'http.request.method': method,
      'server.address': '127.0.0.1',
      'server.port': Number(new URL(server.url).port),
      'url.full': server.url + path,
      'http.response.status_code': 200,
    });
    const { traceId, spanId } = span?.spanContext() ?? {};
    expect(server.requests.map(({ headers: sent }) => [sent.traceparent, sent.baggage])).toEqual([
      [`00-${traceId}-${spanId}-01`, undefined],
    ]);
  });

  it('has a span that ends as an error where nobody listens', async () => {
    spansSince();
    await expect(withinRequest(() => call('http://127.0.0.1:9'))).rejects.toThrow();
    const [span, , ...others] = spansSince();
    expect(others).toEqual([]);
    expect(span?.status).toEqual({ code: 2, message: 'failed; the log has the cause' });
    expect(span?.attributes['error.type']).toMatch(/^[\w-]+$/);
    expect(span?.ended).toBe(true);
  });
});

describe('a call', () => {
  it('has no user, query or fragment in its span, and no more of its path than fits', async () => {
    spansSince();
    const address = `http://alice:s3cret@h.example/${'p'.repeat(10_000)}?t=s3cret#s3cret`;
    await loaded.tracedCall(
      { method: 'GET', address },
      () => Promise.resolve(200),
      (status) => status,
    );
    const [span] = spansSince();
    expect(JSON.stringify(span?.attributes)).not.toContain('s3cret');
    expect(String(span?.attributes['url.full']).length).toBeLessThan(300);
  });

  it('to an address that is none has no span, and fails as it does', async () => {
    spansSince();
    await expect(http().get('not an address')).rejects.toMatchObject({ code: 'invalid-url' });
    expect(spansSince()).toEqual([]);
  });
});
