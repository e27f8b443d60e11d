/** Commits and their keys, between ExternalServiceFilter and a real HTTP service. */
import { describe, expect, it, vi } from 'vitest';
import type { CreateRequest, UpdateRequest } from '../../src/index.ts';
import { ALLOWED, REJECTED, UNCHECKED } from '../support/decisions.ts';
import { filterSource } from '../support/filter-folder.ts';
import { type Answer, policyServer } from '../support/policy-server.ts';
import { createPhysicalHost, updateExtend } from '../support/requests.ts';
import { type LedgerSetup, onLedger } from './on-ledger.ts';

const GENERIC = 'The lease could not be checked. Please try again later, or ask the operator.';
const PROJECT = createPhysicalHost().context.project_id;
const SOON = 30_000;

/** The service, followed by a ledger with a budget. `commits` answers the commits; every other call gets 204. */
async function against(commits: Answer, options: object = {}, setup: Partial<LedgerSetup> = {}) {
  const service = await policyServer(() => {});
  service.answer = (request, response) => {
    if (request.url?.startsWith('/commit') !== true) {
      response.writeHead(204).end();
    } else if (typeof commits === 'function') {
      commits(request, response);
    } else {
      response.writeHead(commits.status, commits.headers).end(commits.body);
    }
  };
  const chain = await onLedger({
    enabled: ['ExternalServiceFilter', 'MaxLeasesFilter', 'UsageBudgetFilter'],
    ...setup,
    options: {
      external_service_on_end_endpoint: `${service.url}/on-end`,
      external_service_commit_create_endpoint: `${service.url}/commit/create/`,
      external_service_commit_update_endpoint: `${service.url}/commit/update/`,
      external_service_timeout: 60,
      external_service_breaker_failures: 0,
      ...options,
    },
  });
  await chain.budget({ projectId: PROJECT, amount: '1000' });
  const sent = () => service.requests.map(({ url, body }) => [url, JSON.parse(body)]);
  return { service, sent, ...chain };
}

/** All leases and balances in the ledger, without the number of times that a lease was written. */
const held = ({ leases, balances }: Pick<Awaited<ReturnType<typeof against>>, 'leases' | 'balances'>) => ({
  leases: leases().map(({ revision: _, ...lease }) => lease),
  balances: balances(PROJECT),
});

const named = (name: string): CreateRequest => {
  const { context, lease } = createPhysicalHost();
  return { context, lease: { ...lease, name } };
};

describe('the Idempotency-Key', () => {
  const keys = (service: { requests: readonly { headers: Record<string, unknown> }[] }) =>
    service.requests.map(({ headers }) => headers['idempotency-key']);

  it('is the same for the check and the commit of a request, and different for each request', async () => {
    const checked = await policyServer({ status: 204 });
    const { enforcement, service } = await against(
      { status: 204 },
      { external_service_check_create_endpoint: `${checked.url}/check-create` },
      { enabled: ['ExternalServiceFilter'] },
    );
    await enforcement.checkCreate(createPhysicalHost());
    await enforcement.checkCreate(createPhysicalHost());
    const sent = keys(service);
    expect(sent).toHaveLength(2);
    expect(keys(checked)).toEqual(sent);
    expect(sent.every((key) => typeof key === 'string' && /^[\w-]{43}$/.test(key))).toBe(true);
    expect(new Set(sent).size).toBe(2);
    await enforcement.checkUpdate(updateExtend());
    await enforcement.onEnd({ context: createPhysicalHost().context, lease: createPhysicalHost().lease });
    expect(keys(service).slice(2)).toEqual([undefined, undefined]);
  });

  it('is the same if the caller repeats a request, and different for another lease', async () => {
    const { enforcement, service } = await against(
      { status: 204 },
      {},
      { enabled: ['ExternalServiceFilter'] },
    );
    for (const request of [named('a'), named('a'), named('b')]) {
      await enforcement.checkCreate(request, { idempotencyKey: 'k1' });
    }
    const [first, second, third] = keys(service);
    expect(second).toBe(first);
    expect(third).not.toBe(first);
    expect(first).not.toBe('k1');
  });
});

describe('a commit request', () => {
  it('has the body and the token of a check, and is sent after every filter has allowed the lease', async () => {
    const { enforcement, service, sent } = await against(
      { status: 204 },
      { external_service_token: 's3cret' },
    );
    expect(await enforcement.checkCreate(createPhysicalHost())).toMatchObject(ALLOWED);
    expect(await enforcement.checkUpdate(updateExtend())).toMatchObject(ALLOWED);
    const { context, currentLease, lease } = updateExtend();
    expect(sent()).toEqual([
      ['/commit/create/', createPhysicalHost()],
      ['/commit/update/', { context, current_lease: currentLease, lease }],
    ]);
    for (const { headers, method } of service.requests) {
      expect([method, headers['x-auth-token']]).toEqual(['POST', 's3cret']);
    }
  });

  it('is not sent if the ledger refuses the lease, for a dry run, or for an exempt project', async () => {
    const over = await against({ status: 204 }, { max_leases_per_project: 0 });
    expect(await over.enforcement.commitCreate(createPhysicalHost())).toMatchObject({
      allowed: false,
      filter: 'MaxLeasesFilter',
    });
    expect(over.sent()).toEqual([]);
    const exempt = await against({ status: 204 }, { exempt_projects: [PROJECT] });
    await exempt.enforcement.checkCreate(createPhysicalHost());
    await exempt.enforcement.commitCreate(createPhysicalHost());
    expect(exempt.sent()).toEqual([]);
    const tried = await against({ status: 204 });
    await tried.enforcement.checkCreate(createPhysicalHost(), { dryRun: true });
    expect(tried.sent()).toEqual([]);
  });
});

describe('a commit to the external service', () => {
  it('is sent after the lease is recorded, and holds no lock on the ledger', async () => {
    const seen: unknown[] = [];
    let chain: Awaited<ReturnType<typeof against>> | undefined;
    const commits: Answer = async (_, response) => {
      seen.push(chain?.leases().map(({ name, state }) => ({ name, state })));
      if (seen.length === 1) {
        // Of the same project, and it asks the same service.
        const other = await chain?.enforcement.checkCreate(named('other'));
        seen.push(other?.allowed);
      }
      response.writeHead(204).end();
    };
    chain = await against(commits);
    expect(await chain.enforcement.checkCreate(named('first'))).toMatchObject(ALLOWED);
    expect(seen).toEqual([
      [{ name: 'first', state: 'open' }],
      [
        { name: 'first', state: 'open' },
        { name: 'other', state: 'open' },
      ],
      true,
    ]);
    expect(chain.balances(PROJECT)).toMatchObject({ 'max_leases/project': 2n });
  });

  it('that is refused refuses the lease with its message, and reverts the recording', async () => {
    const chain = await against({ status: 403, body: '{"message": "no credit"}' });
    const decision = await chain.enforcement.checkCreate(createPhysicalHost(), { requestId: 'req-1' });
    expect(decision).toMatchObject({
      allowed: false,
      failed: false,
      filter: 'ExternalServiceFilter',
      message: 'no credit',
    });
    expect(chain.balances(PROJECT)).toEqual({});
    expect(chain.leases()).toMatchObject([{ state: 'ended' }]);
    const undone = chain.entries().filter(({ operation }) => operation === 'undo');
    expect(undone.length).toBeGreaterThan(0);
    for (const entry of undone) {
      expect(entry).toMatchObject({ who: createPhysicalHost().context.user_id, request_id: 'req-1' });
    }
    expect(
      chain.sent().map(([url]) => url),
      'a service that refused has nothing to release',
    ).toEqual(['/commit/create/']);
  });

  it.each<[what: string, answer: Answer]>([
    ['200', { status: 200, body: '{"message": "fine"}' }],
    ['500', { status: 500 }],
    ['a redirect', { status: 307, headers: { location: '/elsewhere' } }],
    ['silence', () => {}],
    ['a connection that is cut', (request) => void request.socket.destroy()],
  ])(
    'that fails refuses and reverts the lease, and tells the service that it has ended: %s',
    async (what, answer) => {
      // Only the silent service is waited for; all others answer at once.
      const external_service_timeout = what === 'silence' ? 1 : 60;
      const chain = await against(answer, { external_service_timeout });
      const decision = await chain.enforcement.checkCreate(createPhysicalHost());
      expect(decision).toMatchObject({
        allowed: false,
        failed: true,
        filter: 'ExternalServiceFilter',
        message: GENERIC,
      });
      expect(chain.balances(PROJECT)).toEqual({});
      expect(chain.sent()).toEqual([
        ['/commit/create/', createPhysicalHost()],
        ['/on-end', createPhysicalHost()],
      ]);
    },
  );

  it('that fails refuses the lease, even with external_service_allow_on_error', async () => {
    const chain = await against(
      { status: 500 },
      {
        external_service_allow_on_error: true,
        external_service_check_create_endpoint: 'http://127.0.0.1:1/',
        external_service_connect_retries: 0,
      },
    );
    expect(await chain.enforcement.checkCreate(createPhysicalHost())).toMatchObject({
      allowed: false,
      failed: true,
      outcomes: [{ filter: 'ExternalServiceFilter', allowed: false, onError: true }, {}, {}],
    });
    expect(await chain.enforcement.checkUpdate(updateExtend())).toMatchObject(UNCHECKED);
    expect(chain.balances(PROJECT)).toEqual({});
  });

  it.each([
    [403, false],
    [500, true],
  ])('of an update that is answered with %d leaves the lease unchanged', async (status, failed) => {
    const chain = await against((request, response) =>
      response.writeHead(request.url === '/commit/create/' ? 204 : status).end(),
    );
    await chain.enforcement.checkCreate(createPhysicalHost());
    const before = held(chain);
    expect(await chain.enforcement.checkUpdate(updateExtend())).toMatchObject({ allowed: false, failed });
    expect(held(chain)).toEqual(before);
    expect(
      chain.sent().map(([url]) => url),
      'the lease continues',
    ).toEqual(['/commit/create/', '/commit/update/']);
  });

  it('of an audited filter only warns, and the lease is recorded', async () => {
    const chain = await against(
      { status: 403, body: '{"message": "no credit"}' },
      { audit_filters: ['ExternalServiceFilter'] },
    );
    const warning = 'ExternalServiceFilter (tried, not enforced) would have rejected: no credit';
    expect(await chain.enforcement.checkCreate(createPhysicalHost())).toMatchObject({
      allowed: true,
      warnings: [warning],
    });
    expect(chain.balances(PROJECT)).toMatchObject({ 'max_leases/project': 1n });
    expect(chain.logger.lines.filter(({ fields }) => 'filter' in fields)).toMatchObject([
      { level: 'warn', message: warning },
    ]);
  });

  it('whose caller has stopped waiting is refused at once, and still reverted', async () => {
    const over = new AbortController();
    const chain = await against(() => over.abort(new Error('enough')), { external_service_timeout: 3600 });
    const { signal } = over;
    const decision = await chain.enforcement.checkCreate(createPhysicalHost(), { signal });
    expect(decision).toMatchObject({ allowed: false, failed: true, message: GENERIC });
    await vi.waitFor(() => {
      expect(chain.balances(PROJECT)).toEqual({});
      expect(chain.sent().map(([url]) => url)).toEqual(['/commit/create/', '/on-end']);
    }, SOON);
  });

  it('is reverted before the chain is closed, and delays no later answer', async () => {
    const ends: (() => void)[] = [];
    const over = new AbortController();
    const service = await policyServer((request, response) => {
      if (request.url === '/on-end') {
        ends.push(() => response.writeHead(204).end());
      } else {
        over.abort(new Error('enough'));
      }
    });
    const chain = await onLedger({
      enabled: ['ExternalServiceFilter', 'MaxLeasesFilter'],
      options: {
        external_service_on_end_endpoint: `${service.url}/on-end`,
        external_service_commit_create_endpoint: `${service.url}/commit`,
        external_service_timeout: 3600,
      },
    });
    const { signal } = over;
    expect(await chain.enforcement.checkCreate(createPhysicalHost(), { signal })).toMatchObject(UNCHECKED);
    let isClosed = false;
    const closing = chain.enforcement.close().then(() => {
      isClosed = true;
    });
    await vi.waitFor(() => expect(ends).toHaveLength(1), SOON);
    expect(isClosed).toBe(false);
    ends[0]?.();
    await closing;
    expect(chain.balances(PROJECT)).toEqual({});
    expect(chain.logger.lines.filter(({ message }) => message.includes('closed'))).toEqual([]);
  });
});

describe('a filter that has committed a new lease', () => {
  const COMMITS = (name: string, verdict: string) =>
    filterSource(name, { extra: `commitCreate() { ${verdict} } commitUpdate() { ${verdict} }` });
  const enabled = ['ExternalServiceFilter', 'MaxLeasesFilter', 'LastFilter'];
  const setup = (verdict: string) => ({ enabled, files: { LastFilter: COMMITS('LastFilter', verdict) } });

  it.each([
    ["return reject('not today');", { failed: false, message: 'not today' }],
    ["throw new Error('broken');", { failed: true, message: GENERIC }],
    ['return allow({});', { failed: true, message: GENERIC }],
    ['', { failed: true, message: GENERIC }],
  ])('is told of its end when a later filter refuses it: %j', async (verdict, refusal) => {
    const chain = await against({ status: 204 }, {}, setup(verdict));
    expect(await chain.enforcement.checkCreate(createPhysicalHost())).toMatchObject({
      allowed: false,
      filter: 'LastFilter',
      ...refusal,
    });
    expect(chain.sent()).toEqual([
      ['/commit/create/', createPhysicalHost()],
      ['/on-end', createPhysicalHost()],
    ]);
    expect(chain.balances(PROJECT)).toEqual({});
  });

  it('is not told of an end when an update is refused, or when the lease existed before', async () => {
    vi.stubGlobal('refusal', undefined);
    const chain = await against(
      { status: 204 },
      {},
      setup("return globalThis.refusal === undefined ? allow() : reject('not today');"),
    );
    const again = { idempotencyKey: 'k1' };
    await chain.enforcement.checkCreate(createPhysicalHost(), again);
    const before = held(chain);
    vi.stubGlobal('refusal', true);
    const update: UpdateRequest = updateExtend();
    expect(await chain.enforcement.checkUpdate(update)).toMatchObject(REJECTED);
    expect(await chain.enforcement.checkCreate(createPhysicalHost(), again)).toMatchObject(REJECTED);
    vi.unstubAllGlobals();
    expect(held(chain), 'who was granted a lease keeps it').toEqual(before);
    expect(chain.sent().map(([url]) => url)).toEqual([
      '/commit/create/',
      '/commit/update/',
      '/commit/create/',
    ]);
  });

  it('is not called when an earlier filter refuses', async () => {
    const chain = await against(
      { status: 204 },
      {},
      {
        ...setup("return reject('not today');"),
        enabled: ['LastFilter', 'MaxLeasesFilter', 'ExternalServiceFilter'],
      },
    );
    expect(await chain.enforcement.checkCreate(createPhysicalHost())).toMatchObject(REJECTED);
    expect(chain.sent()).toEqual([]);
    expect(chain.balances(PROJECT)).toEqual({});
  });
});
