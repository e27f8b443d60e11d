import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../src/index.ts';
import { start } from '../external-service-example/helpers.ts';
import { ALLOWED, REJECTED, rejectedWith, UNCHECKED } from '../support/decisions.ts';
import { type Answer, policyServer } from '../support/policy-server.ts';
import { createGpuAndFloatingIp, createPhysicalHost, endActive, updateExtend } from '../support/requests.ts';
import { testFilter } from './contract.ts';
import { loadValues, mistakes } from './loaded.ts';

const GENERIC = 'The lease could not be checked. Please try again later, or ask the operator.';
const DENIED = 'The external service denied the request.';
const TOKEN = 'token-5f1b0c';

const load = (options: Record<string, unknown>) =>
  loadValues({ enabled_filters: ['ExternalServiceFilter'], ...options });

async function against(answer: Answer, options: Record<string, unknown> = {}) {
  const service = await policyServer(answer);
  return { service, ...(await load({ external_service_base_endpoint: service.url, ...options })) };
}

describe('with a service that allows everything', () => {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(204).end());
  });
  const options = () => ({
    external_service_base_endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  });
  beforeAll(() => new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening)));
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  testFilter({ name: 'ExternalServiceFilter', options });
});

describe('a request to the service', () => {
  it('follows the protocol of Blazar: a POST of JSON, with the lease unchanged', async () => {
    const { service, enforcement } = await against({ status: 204 });
    await enforcement.checkCreate(createGpuAndFloatingIp());
    await enforcement.checkUpdate(updateExtend());
    await enforcement.onEnd(endActive());
    const { context, currentLease, lease } = updateExtend();
    expect(service.requests.map(({ method, url, body }) => [method, url, JSON.parse(body)])).toEqual([
      ['POST', '/check-create', createGpuAndFloatingIp()],
      ['POST', '/check-update', { context, current_lease: currentLease, lease }],
      ['POST', '/on-end', endActive()],
    ]);
    for (const { headers } of service.requests) {
      expect(headers['content-type']).toMatch(/^application\/json/);
      expect(headers).not.toHaveProperty('x-auth-token');
      expect(headers).not.toHaveProperty('authorization');
    }
  });

  it('has dates in ISO 8601 if the caller passed objects', async () => {
    const { service, enforcement } = await against({ status: 204 });
    const { context } = createPhysicalHost();
    const start_date = new Date('2026-12-01T09:00:00Z');
    await enforcement.checkCreate({ context, lease: { start_date, end_date: '2026-12-02 09:00' } });
    expect(JSON.parse(service.requests[0]?.body ?? '')).toMatchObject({
      lease: { start_date: '2026-12-01T09:00:00.000Z', end_date: '2026-12-02 09:00' },
    });
  });

  it('carries the token as X-Auth-Token and the bearer token as Authorization', async () => {
    const { service, enforcement } = await against(
      { status: 204 },
      { external_service_token: TOKEN, external_service_bearer_token: 'bearer-1' },
    );
    await enforcement.checkCreate(createPhysicalHost());
    expect(service.requests[0]?.headers).toMatchObject({
      'x-auth-token': TOKEN,
      authorization: 'Bearer bearer-1',
    });
  });
});

describe('the endpoints', () => {
  it.each([
    ['', '/check-create'],
    ['/', '/check-create'],
    ['/api/v2', '/api/v2/check-create'],
    ['/api/v2/', '/api/v2/check-create'],
    ['/api?site=north', '/api/check-create?site=north'],
  ])('are appended to the path of the base endpoint: %j', async (path, url) => {
    const service = await policyServer({ status: 204 });
    const { enforcement } = await load({ external_service_base_endpoint: `${service.url}${path}` });
    await enforcement.checkCreate(createPhysicalHost());
    expect(service.requests.map((request) => request.url)).toEqual([url]);
  });

  it('can be set separately', async () => {
    const service = await policyServer({ status: 204 });
    const { enforcement } = await load({
      external_service_base_endpoint: `${service.url}/base`,
      external_service_check_create_endpoint: `${service.url}/may-i`,
      external_service_check_update_endpoint: `${service.url}/may-i-still?v=2`,
      external_service_on_end_endpoint: `${service.url}/bye/`,
    });
    await enforcement.checkCreate(createPhysicalHost());
    await enforcement.checkUpdate(updateExtend());
    await enforcement.onEnd(endActive());
    expect(service.requests.map(({ url }) => url)).toEqual(['/may-i', '/may-i-still?v=2', '/bye/']);
  });

  it('that are neither set nor derivable are not called', async () => {
    const service = await policyServer({ status: 403 });
    const { enforcement } = await load({ external_service_check_update_endpoint: `${service.url}/update` });
    expect(await enforcement.checkCreate(createPhysicalHost())).toMatchObject(ALLOWED);
    expect(await enforcement.onEnd(endActive())).toMatchObject({ failed: false });
    expect(service.requests).toEqual([]);
    expect(await enforcement.checkUpdate(updateExtend())).toMatchObject(REJECTED);
  });

  it('have one for ends if these are to be delivered durably', async () => {
    const lines = [
      'external_service_delivery = durable',
      'external_service_check_create_endpoint = http://127.0.0.1:1/',
    ];
    expect(await mistakes('ExternalServiceFilter', lines)).toEqual([
      'blazar.conf:3: [enforcement] external_service_delivery: durable needs external_service_base_endpoint or external_service_on_end_endpoint',
    ]);
  });

  it('are required: at least one', async () => {
    await expect(load({})).rejects.toThrow(ConfigurationError);
    await expect(load({})).rejects.toThrow(/external_service_base_endpoint or another of its endpoints/);
  });

  it.each([
    'policy.example.org',
    'ftp://policy.example.org',
    'http://',
    'http:///check',
    'http:policy.example.org',
    'https://?a=b',
    '/check',
    'javascript:alert(1)',
    '',
    'http://exa mple.org',
    'https://user:hunter2@policy.example.org',
  ])('must be http or https with a host and no credentials: %j is refused', async (url) => {
    const failure = await load({ external_service_base_endpoint: url }).catch((thrown: unknown) =>
      String(thrown),
    );
    expect(failure).toContain('expected an http or https URL with a host and without credentials');
    expect(failure).not.toContain('hunter2');
  });
});

describe('an answer with status', () => {
  it('204 allows', async () => {
    const { enforcement } = await against({ status: 204 });
    expect(await enforcement.checkCreate(createPhysicalHost())).toMatchObject(ALLOWED);
  });

  it('403 rejects with its message', async () => {
    const body = JSON.stringify({ message: 'You shall not pass!' });
    const { enforcement } = await against({ status: 403, body });
    const rejected = {
      allowed: false,
      failed: false,
      message: 'You shall not pass!',
      filter: 'ExternalServiceFilter',
    };
    expect(await enforcement.checkCreate(createPhysicalHost())).toMatchObject(rejected);
    expect(await enforcement.checkUpdate(updateExtend())).toMatchObject(rejected);
  });

  it('403 is searched for a reason in external_service_message_fields, in order', async () => {
    const options = { external_service_message_fields: ['error', 'message'] };
    const { service, enforcement } = await against(
      { status: 403, body: '{"message": "m", "error": "e"}' },
      options,
    );
    expect((await enforcement.checkCreate(createPhysicalHost())).message).toBe('e');
    service.answer = { status: 403, body: '{"message": "m", "error": {"text": "e"}}' };
    expect((await enforcement.checkCreate(createPhysicalHost())).message).toBe('m');
  });

  it.each([
    undefined,
    '',
    'You shall not pass!',
    '["message"]',
    '"message"',
    'null',
    '{}',
    '{"message": ""}',
    '{"message": "  "}',
    '{"message": 5}',
    '{"message": null}',
    '{"message": {"message": "x"}}',
    '{"message": "cut off',
    '{"__proto__": {"message": "x"}}',
  ])('403 and the body %j rejects with a generic message and logs the body', async (body) => {
    const { enforcement, logger } = await against({ status: 403, ...(body !== undefined && { body }) });
    expect(await enforcement.checkCreate(createPhysicalHost())).toMatchObject(rejectedWith(DENIED));
    expect(logger.lines).toMatchObject([{ level: 'debug', fields: { status: 403, body: body ?? '' } }]);
  });

  it('403 is shown on one line of limited length, with visible and whole characters', async () => {
    const message = `no\r\n\u001b[31m\u202e${'x'.repeat(1979)}\u{1f600}yy`;
    const { enforcement } = await against({ status: 403, body: JSON.stringify({ message }) });
    const decision = await enforcement.checkCreate(createPhysicalHost());
    expect(decision.message).toBe(`no \\u001b[31m\\u202e${'x'.repeat(1979)}…`);
  });

  it.each([200, 201, 202, 205, 301, 302, 307, 308, 400, 401, 404, 407, 429, 500, 502, 503])(
    '%d is a failure: the user sees a generic message, the log has the start of the body',
    async (status) => {
      const body = `inside-${'x'.repeat(5000)}`;
      const headers = { location: '/elsewhere' };
      const { service, enforcement, logger } = await against({
        status,
        headers,
        ...(status !== 205 && { body }),
      });
      const decision = await enforcement.checkCreate(createPhysicalHost());
      expect(decision).toMatchObject({ allowed: false, failed: true, message: GENERIC });
      expect(service.requests).toHaveLength(1);
      const debug = logger.lines.filter(({ message }) => message.includes('unexpected answer'));
      expect(debug).toMatchObject([{ level: 'debug', fields: { status } }]);
      if (status !== 205) {
        expect(debug[0]?.fields.body).toBe(body.slice(0, 500));
      }
      expect(logger.lines.filter(({ level }) => level === 'error')).toMatchObject([
        { fields: { error: `expected 204 or 403 from the external service, got ${status}` } },
      ]);
      expect(JSON.stringify(decision)).not.toContain('inside');
    },
  );

  it('204 is the only success of an on-end: any other is logged and reported', async () => {
    const { service, enforcement, logger } = await against({ status: 204 });
    expect(await enforcement.onEnd(endActive())).toMatchObject({ failed: false });
    service.answer = { status: 403, body: '{"message": "no"}' };
    expect(await enforcement.onEnd(endActive())).toMatchObject({ failed: true });
    const error = 'expected 204 from the external service, got 403';
    expect(logger.lines).toContainEqual(
      expect.objectContaining({ fields: expect.objectContaining({ error }) }),
    );
  });

  it('403 or 500 shows no token in the log or to the user, even if the service echoes it', async () => {
    const echo: Answer = (request, response) => {
      const body = JSON.stringify({ message: `you sent ${request.headers['x-auth-token']}` });
      response.writeHead(request.url === '/check-create' ? 403 : 500).end(body);
    };
    const { enforcement, logger } = await against(echo, { external_service_token: TOKEN });
    const decisions = [
      await enforcement.checkCreate(createPhysicalHost()),
      await enforcement.checkUpdate(updateExtend()),
    ];
    expect(decisions[0]?.message).toBe('you sent ****');
    expect(JSON.stringify([decisions, logger.lines])).not.toContain(TOKEN);
  });
});

describe('a service that fails', () => {
  it('refuses leases with a generic message, and logs the cause without the token', async () => {
    const { service, enforcement, logger } = await against(
      { status: 204 },
      { external_service_token: TOKEN },
    );
    await new Promise((closed) => service.server.close(closed));
    expect(await enforcement.checkCreate(createPhysicalHost())).toMatchObject({
      ...UNCHECKED,
      message: GENERIC,
    });
    expect(logger.lines[0]?.fields.error).toMatch(/ECONNREFUSED/);
    expect(JSON.stringify(logger.lines)).not.toContain(TOKEN);
  });

  it('is not waited for longer than external_service_timeout', async () => {
    const { enforcement, logger } = await against(() => {}, { external_service_timeout: 1 });
    expect(await enforcement.checkCreate(createPhysicalHost())).toMatchObject(UNCHECKED);
    expect(logger.lines[0]?.fields.error).toMatch(/within 1 s/);
  });

  it('is not waited for after the caller has stopped waiting', async () => {
    const { enforcement } = await against(() => {}, { external_service_timeout: 3600 });
    const signal = AbortSignal.timeout(50);
    expect(await enforcement.checkCreate(createPhysicalHost(), { signal })).toMatchObject({ failed: true });
  });

  it('is not called after external_service_breaker_failures failures, and leases are refused', async () => {
    const { service, enforcement, logger } = await against(
      { status: 500 },
      { external_service_breaker_failures: 2 },
    );
    for (let call = 0; call < 4; call += 1) {
      expect(await enforcement.checkCreate(createPhysicalHost())).toMatchObject(UNCHECKED);
    }
    expect(service.requests).toHaveLength(2);
    expect(logger.lines.findLast(({ level }) => level === 'error')?.fields.error).toMatch(/not sent/);
  });

  it.each([200, 302, 400, 401, 413, 429])(
    'has not failed with %i: external_service_allow_on_error allows no lease',
    async (status) => {
      const { enforcement } = await against({ status }, { external_service_allow_on_error: true });
      expect(await enforcement.checkCreate(createPhysicalHost())).toMatchObject(UNCHECKED);
    },
  );

  it.each([0, 65_537])('has not failed if it rejects, with a reason of %i bytes', async (length) => {
    const { service, enforcement } = await against(
      { status: 403, body: 'x'.repeat(length) },
      { external_service_allow_on_error: true, external_service_breaker_failures: 2 },
    );
    for (let call = 0; call < 4; call += 1) {
      const decision = await enforcement.checkCreate(createPhysicalHost());
      expect(decision).toMatchObject(rejectedWith('The external service denied the request.'));
    }
    expect(service.requests).toHaveLength(4);
  });

  it('allows leases with external_service_allow_on_error, and logs a warning for each', async () => {
    const { service, enforcement, logger } = await against(
      { status: 500 },
      { external_service_allow_on_error: true, external_service_token: TOKEN },
    );
    expect(await enforcement.checkCreate(createPhysicalHost())).toMatchObject(ALLOWED);
    expect(await enforcement.checkUpdate(updateExtend())).toMatchObject(ALLOWED);
    const warnings = logger.lines.filter(({ level }) => level === 'warn');
    expect(warnings.map(({ message }) => message)).toEqual(
      Array(2).fill('allowed on error: the external service failed'),
    );
    service.answer = { status: 403, body: '{"message": "no"}' };
    expect(await enforcement.checkCreate(createPhysicalHost())).toMatchObject(rejectedWith('no'));
  });

  it('allows and logs nothing after the caller has stopped waiting', async () => {
    const { enforcement, logger } = await against(() => {}, { external_service_allow_on_error: true });
    const signal = AbortSignal.timeout(50);
    expect(await enforcement.checkCreate(createPhysicalHost(), { signal })).toMatchObject(UNCHECKED);
    // The filter finishes after the decision, which did not wait for it.
    await new Promise((done) => setTimeout(done, 50));
    expect(logger.lines.filter(({ level }) => level === 'warn')).toEqual([]);
  });
});

/** The filter with our token, and the example with these settings. */
async function againstExample(settings: Parameters<typeof start>[0]) {
  const { url } = await start(settings);
  return load({ external_service_base_endpoint: url, external_service_token: TOKEN });
}

describe('with external-service-example', () => {
  it('charges a lease and its extension, and refuses leases over the budget', async () => {
    const { enforcement } = await againstExample({ token: TOKEN, budgetNodeHours: 200 });
    // Two nodes for 48 hours are 96 node-hours, for another 48 hours another 96.
    expect(await enforcement.checkCreate(createPhysicalHost())).toMatchObject(ALLOWED);
    expect(await enforcement.checkUpdate(updateExtend())).toMatchObject(ALLOWED);
    const refused = await enforcement.checkCreate(createGpuAndFloatingIp());
    expect(refused).toMatchObject(REJECTED);
    expect(refused.message).toMatch(/node-hours/);
    // The lease ends before it starts: all of it is returned.
    expect(
      await enforcement.onEnd({ ...endActive(), lease: { ...endActive().lease, ...updateExtend().lease } }),
    ).toMatchObject({ failed: false });
    expect(await enforcement.checkUpdate(updateExtend())).toMatchObject(ALLOWED);
  });

  it('fails closed if the token is wrong', async () => {
    const { enforcement } = await againstExample({ token: 'another' });
    expect(await enforcement.checkCreate(createPhysicalHost())).toMatchObject(UNCHECKED);
  });
});
