/** The client that programs use, against a real service and against servers that are none. */
import { describe, expect, expectTypeOf, it, onTestFinished, vi } from 'vitest';
import {
  type ApiClient,
  type ApiClientOptions,
  type components,
  createApiClient,
  EndpointError,
  type Page,
} from '../../src/client/index.ts';
import { copiedLedgers } from '../ledger/recorded-leases.ts';
import { drips, hugely, sends } from '../support/faulty-answers.ts';
import { policyServer } from '../support/policy-server.ts';
import { recordedKeystone, tokenAnswer } from '../support/recorded-keystone.ts';
import { runServiceOf } from '../support/running-service.ts';

const OPERATOR = 'of-an-operator-0123456789abcdef';
const JSON_TYPE = { 'Content-Type': 'application/json' };
const newLedger = copiedLedgers(async () => {});

function clientOf(options: ApiClientOptions) {
  const client = createApiClient(options);
  onTestFinished(() => client.close());
  return client;
}

async function realClient() {
  const { url } = await runServiceOf({
    service: { operator_tokens: [OPERATOR] },
    ledger: { connection: await newLedger() },
    enforcement: { enabled_filters: ['UsageBudgetFilter'] },
  });
  return clientOf({ endpoint: url, token: OPERATOR });
}

const budgetOf = (project: string, year = 2030) => ({
  project_id: project,
  amount: '100',
  reason: 'why',
  valid_from: `${year}-01-01`,
  valid_until: `${year + 1}-01-01`,
});

/** What a call rejects with. */
const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => expect.unreachable('it was answered'),
    (thrown: unknown) => thrown,
  );

/** A client of a server that is no service. */
async function clientOfServer(
  answer: Parameters<typeof policyServer>[0],
  more: Partial<ApiClientOptions> = {},
) {
  const server = await policyServer(answer);
  return { server, client: clientOf({ endpoint: server.url, token: 'a-secret-token', ...more }) };
}

describe('createApiClient', () => {
  it('calls a service, with the types of its document', async () => {
    const client = await realClient();
    const { data: set, response } = await client.POST('/v1/budgets', { body: budgetOf('climate') });
    expectTypeOf(set).toExtend<components['schemas']['Budget']>();
    expectTypeOf(set.amount).toEqualTypeOf<string>();
    expect(set).toMatchObject({ project: { id: 'climate' }, amount: '100' });
    expect(response.headers.get('ETag')).toBe(set.etag);
    const path = { budget_id: set.id };
    const { data: changed } = await client.PATCH('/v1/budgets/{budget_id}', {
      params: { path, header: { 'If-Match': set.etag } },
      body: { amount: '50', reason: 'less' },
    });
    expect(changed.amount).toBe('50');
    const { data: file } = await client.GET('/v1/budgets/export', {
      params: { query: { format: 'csv' } },
      parseAs: 'text',
    });
    expectTypeOf(file).toEqualTypeOf<string>();
    expect(file).toContain('climate,,2030-01-01T00:00:00Z');
    await client.DELETE('/v1/budgets/{budget_id}', {
      params: { path, header: { 'If-Match': changed.etag }, query: { reason: 'over' } },
    });
    expect((await client.GET('/v1/budgets')).data).toEqual({ items: [], next: null });
  });

  it('gives the items of a list across its pages, and asks for no page before it is wanted', async () => {
    const client = await realClient();
    for (const year of [2030, 2031, 2032, 2033, 2034]) {
      await client.POST('/v1/budgets', { body: budgetOf('climate', year) });
    }
    await client.POST('/v1/budgets', { body: budgetOf('ocean') });
    const init = { query: { project_id: 'climate', limit: 2 } };
    const starts: string[] = [];
    for await (const budget of client.items('/v1/budgets', init)) {
      expectTypeOf(budget).toEqualTypeOf<Page<'/v1/budgets'>['items'][number]>();
      starts.push(budget.valid_from.slice(0, 4));
    }
    expect(starts).toEqual(['2030', '2031', '2032', '2033', '2034']);
    const sizes: number[] = [];
    for await (const page of client.pages('/v1/budgets', init)) {
      sizes.push(page.items.length);
    }
    expect(sizes).toEqual([2, 2, 1]);

    const one = { items: [1], next: 'more' };
    const { server, client: other } = await clientOfServer({
      status: 200,
      headers: JSON_TYPE,
      body: JSON.stringify(one),
    });
    for await (const page of other.pages('/v1/projects/{project_id}/leases', {
      path: { project_id: 'a/b c' },
    })) {
      expect(page).toEqual(one);
      break;
    }
    expect(server.requests.map(({ url }) => url)).toEqual(['/v1/projects/a%2Fb%20c/leases']);
  });

  it('rejects what the service refuses as a value that says why', async () => {
    const client = await realClient();
    await client.POST('/v1/budgets', { body: budgetOf('climate') });
    const twice = await failureOf(client.POST('/v1/budgets', { body: budgetOf('climate') }));
    expect(twice).toBeInstanceOf(EndpointError);
    expect(twice).toMatchObject({ kind: 'refused', status: 409, retryAfter: undefined });
    const wrong = client.POST('/v1/budgets', { body: { ...budgetOf('climate'), amount: 'much' } });
    expect(await failureOf(wrong)).toMatchObject({ kind: 'refused', status: 422, field: 'amount' });
    const { client: other } = await clientOfServer({
      status: 409,
      headers: { 'Content-Type': 'application/problem+json' },
      body: '{"message":"twice","field":"from"}',
    });
    expect(await failureOf(other.GET('/v1/budgets'))).toMatchObject({ kind: 'refused', field: 'from' });
  });

  it.each([
    ['half of its JSON', sends('{"items":[', 200, JSON_TYPE), /not as blazar-enforcement/],
    ['a redirect', sends('', 307, { Location: 'http://127.0.0.1:1/' }), /redirects elsewhere/],
    ['a page of a proxy', sends('<h1>404</h1>', 404, {}), /answered 404, but not as/],
    ['no list', sends('{"items":5,"next":null}', 200, JSON_TYPE), /something else than expected/],
    ['a list without an end', sends('{"items":[],"next":"a"}', 200, JSON_TYPE), /has no end/],
    ['in an endless drip', (it) => drips(it, '{'), /no whole answer within 0.5 s/],
    ['too much', hugely, /longer than 1000000 bytes/],
  ] satisfies [string, (response: Parameters<typeof hugely>[0]) => void, RegExp][])(
    'fails in one sentence where a server answers with %s',
    async (_, answer, message) => {
      const { server, client } = await clientOfServer((_request, response) => answer(response), {
        timeout: message.source.includes('within') ? 0.5 : 60,
        maxAnswerBytes: 1_000_000,
      });
      const list = client.items('/v1/budgets');
      const thrown = await failureOf(
        (async () => {
          for await (const _item of list) {
            // Until it fails.
          }
        })(),
      );
      expect(thrown).toMatchObject({ name: 'EndpointError', kind: 'failed' });
      expect(String(thrown)).toMatch(message);
      expect(String(thrown)).not.toContain('a-secret-token');
      expect(server.requests.every(({ headers }) => headers['x-auth-token'] === 'a-secret-token')).toBe(true);
    },
  );

  it('hides a token that the service repeats, says after how long to try again, and where nobody answers', async () => {
    const { server, client } = await clientOfServer({
      status: 503,
      headers: { ...JSON_TYPE, 'Retry-After': '7' },
      body: '{"message":"who is a-secret-token?","field":5}',
    });
    expect(await failureOf(client.GET('/v1/projects'))).toMatchObject({
      kind: 'failed',
      status: 503,
      retryAfter: 7,
      field: undefined,
      message: `${server.url}: who is ****? (it asks to wait 7 s)`,
    });
    server.server.close();
    server.server.closeAllConnections();
    expect(await failureOf(client.GET('/v1/projects'))).toMatchObject({ kind: 'failed', status: undefined });
  });

  it.each(['.', '..'])('sends no request for the id %s, which would be another path', async (id) => {
    const { server, client } = await clientOfServer({ status: 204 });
    const path = { project_id: id };
    const thrown = [
      await failureOf(client.items('/v1/projects/{project_id}/decisions', { path }).next()),
      await failureOf(client.GET('/v1/projects/{project_id}', { params: { path } })),
    ];
    expect(thrown).toMatchObject(
      Array(2).fill({ kind: 'refused', message: `project_id: expected an id, got "${id}"` }),
    );
    expect(server.requests).toEqual([]);
  });

  it('stops when its signal fires, with the reason of the signal', async () => {
    const { client } = await clientOfServer(() => {});
    const reason = new Error('enough');
    const signal = AbortSignal.abort(reason);
    expect(await failureOf(client.GET('/v1/projects', { signal }))).toBe(reason);
    const stop = new AbortController();
    const { server, client: other } = await clientOfServer(() => stop.abort(reason));
    expect(await failureOf(other.items('/v1/projects', { signal: stop.signal }).next())).toBe(reason);
    expect(server.requests).toHaveLength(1);
  });

  it.each<[Partial<ApiClientOptions>, string]>([
    [{ endpoint: 'nonsense' }, 'expected the address of a service'],
    [{ endpoint: 'http://user:secret@x/' }, 'expected the address of a service'],
    [{ endpoint: 'http://x/?token=secret' }, 'expected the address of a service'],
    [{ token: 'a\nb' }, 'expected a token: one line'],
    [{ token: 'x', cloud: 'y' }, 'expected a token or a cloud'],
    [{ timeout: 0 }, 'expected a timeout'],
    [{ maxAnswerBytes: -1 }, 'expected a timeout'],
  ])('refuses the options %j', (options, message) => {
    expect(() => createApiClient({ endpoint: 'http://127.0.0.1', ...options })).toThrow(
      expect.objectContaining({ name: 'TypeError', message: expect.stringContaining(message) }),
    );
  });
});

it('has types that want what a path needs', () => {
  // Never called: only its types are of interest.
  expectTypeOf(async (client: ApiClient) => {
    // @ts-expect-error: which budget?
    await client.GET('/v1/budgets/{budget_id}');
    // @ts-expect-error: of which project?
    client.items('/v1/projects/{project_id}/leases');
    // @ts-expect-error: no list
    client.items('/v1/projects/{project_id}');
    // @ts-expect-error: no such filter
    client.items('/v1/budgets', { query: { project: 'climate' } });
  }).toBeFunction();
});

describe('createApiClient with a cloud', () => {
  /** A Keystone, and a server that accepts the tokens that `accepts` does. */
  async function cloud(accepts: (token: unknown) => boolean, issued = true) {
    const keystone = await recordedKeystone((_request, count) =>
      issued ? tokenAnswer(`token-${count}`) : { ...tokenAnswer(''), status: 401, body: '{}' },
    );
    for (const [name, value] of Object.entries({
      AUTH_URL: `${keystone.url}/v3`,
      USERNAME: 'alice',
      PASSWORD: 'of-alice',
      PROJECT_NAME: 'climate',
    })) {
      vi.stubEnv(`OS_${name}`, value);
    }
    const { client, server } = await clientOfServer(
      ({ headers }, response) => {
        const status = accepts(headers['x-auth-token']) ? 200 : 401;
        const page = status === 200 ? { items: [], next: null } : { message: 'expected a valid token' };
        response.writeHead(status, JSON_TYPE).end(JSON.stringify(page));
      },
      { token: undefined, cloud: 'envvars' },
    );
    return { keystone, server, client };
  }

  it('asks Keystone for a token, keeps it, and gets another when it is refused', async () => {
    let refused: unknown = 'none';
    const { keystone, server, client } = await cloud((token) => token !== refused);
    await client.GET('/v1/budgets');
    await client.GET('/v1/budgets');
    expect(keystone.requests).toHaveLength(1);
    refused = 'token-1';
    const { data } = await client.POST('/v1/budgets', { body: budgetOf('climate') });
    expect(data).toEqual({ items: [], next: null });
    expect(server.requests.map(({ headers }) => headers['x-auth-token'])).toEqual([
      'token-1',
      'token-1',
      'token-1',
      'token-2',
    ]);
    expect(server.requests.at(-1)?.body).toBe(JSON.stringify(budgetOf('climate')));
  });

  it('asks once more and no oftener where every token is refused', async () => {
    const { server, client } = await cloud(() => false);
    expect(await failureOf(client.GET('/v1/budgets'))).toMatchObject({ kind: 'refused', status: 401 });
    expect(server.requests).toHaveLength(2);
  });

  it('refuses without a token of Keystone, and tells the service nothing', async () => {
    const { server, client } = await cloud(() => true, false);
    expect(await failureOf(client.GET('/v1/budgets'))).toMatchObject({
      kind: 'refused',
      message: expect.stringMatching(/^no token of Keystone: /),
    });
    expect(server.requests).toEqual([]);
  });
});
