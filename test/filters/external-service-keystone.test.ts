/** ExternalServiceFilter with `external_service_auth = keystone`. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { UsageEnforcement } from '../../src/index.ts';
import { ALLOWED, UNCHECKED } from '../support/decisions.ts';
import { type Answer, policyServer } from '../support/policy-server.ts';
import { RECORDED_AT, recordedAnswer, recordedKeystone, tokenAnswer } from '../support/recorded-keystone.ts';
import { createPhysicalHost, endActive, updateExtend } from '../support/requests.ts';
import { unusedPort } from '../support/unused-port.ts';
import { loadValues, mistakes } from './loaded.ts';

const GENERIC = 'The lease could not be checked. Please try again later, or ask the operator.';
const AUTH = ['external_service_auth = keystone', 'external_service_base_endpoint = http://127.0.0.1:1/'];
const ACCOUNT = [
  '[keystone]',
  'auth_url = http://127.0.0.1:1/v3',
  'username = u',
  'password = p',
  'project_name = s',
];

const load = (endpoint: string, authUrl: string, options: object = {}) =>
  loadValues(
    {
      enabled_filters: ['ExternalServiceFilter'],
      external_service_auth: 'keystone',
      external_service_base_endpoint: endpoint,
      ...options,
    },
    { keystone: { auth_url: authUrl, username: 'blazar', password: 's3cret', project_name: 'service' } },
    () => RECORDED_AT,
  );

/** A service, and a Keystone whose tokens are token-1, token-2, … */
async function against(answer: Answer, options: object = {}) {
  const service = await policyServer(answer);
  const keystone = await recordedKeystone((_request, count) => tokenAnswer(`token-${count}`));
  const loaded = await load(service.url, keystone.url, options);
  const sent = () => service.requests.map(({ headers }) => headers['x-auth-token']);
  return { service, keystone, sent, ...loaded };
}

/** Accepts no token but this one. */
const accepting =
  (token: string): Answer =>
  ({ headers }, response) =>
    void response.writeHead(headers['x-auth-token'] === token ? 204 : 401).end();

describe('the token', () => {
  it('is sent with every call', async () => {
    const { enforcement, keystone, sent } = await against({ status: 204 });
    expect(await enforcement.checkCreate(createPhysicalHost())).toMatchObject(ALLOWED);
    expect(await enforcement.checkUpdate(updateExtend())).toMatchObject(ALLOWED);
    expect(await enforcement.onEnd(endActive())).toMatchObject({ failed: false });
    expect(sent()).toEqual(['token-1', 'token-1', 'token-1']);
    expect(keystone.requests).toHaveLength(1);
  });

  it('is replaced once after a 401, and the call is repeated with the same key', async () => {
    const { enforcement, service, sent } = await against(accepting('token-2'));
    expect(await enforcement.checkCreate(createPhysicalHost())).toMatchObject(ALLOWED);
    expect(sent()).toEqual(['token-1', 'token-2']);
    const [first, second] = service.requests;
    expect(second?.headers['idempotency-key']).toBe(first?.headers['idempotency-key']);
    expect(second?.headers['idempotency-key']).toMatch(/^[\w-]{43}$/);
    expect(second?.body).toBe(first?.body);
  });

  it('is replaced for an end as well', async () => {
    const { enforcement, service } = await against(accepting('token-2'));
    expect(await enforcement.onEnd(endActive())).toMatchObject({ failed: false });
    expect(service.requests.map(({ url }) => url)).toEqual(['/on-end', '/on-end']);
  });

  it('is replaced for a commit as well, which has one key', async () => {
    const service = await policyServer(({ headers, url }, response) => {
      response.writeHead(url === '/commit' && headers['x-auth-token'] === 'token-1' ? 401 : 204).end();
    });
    const keystone = await recordedKeystone((_request, count) => tokenAnswer(`token-${count}`));
    const { enforcement } = await load(service.url, keystone.url, {
      external_service_commit_create_endpoint: `${service.url}/commit`,
    });
    expect(await enforcement.checkCreate(createPhysicalHost())).toMatchObject(ALLOWED);
    expect(service.requests.map(({ url }) => url)).toEqual(['/check-create', '/commit', '/commit']);
    expect(new Set(service.requests.map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
  });

  it('is not asked for at every refusal of a service that accepts none', async () => {
    const { enforcement, keystone, logger, sent } = await against({ status: 401 });
    for (let call = 0; call < 4; call += 1) {
      expect(await enforcement.checkCreate(createPhysicalHost())).toMatchObject({
        ...UNCHECKED,
        message: GENERIC,
      });
    }
    expect(sent()).toEqual(['token-1', 'token-2', 'token-2', 'token-2', 'token-2']);
    expect(keystone.requests).toHaveLength(2);
    expect(JSON.stringify(logger.lines)).not.toMatch(/token-\d/);
  });

  it('is hidden when the service echoes it', async () => {
    const { enforcement, logger } = await against(({ headers }, response) => {
      const message = `no: ${headers['x-auth-token']}`;
      response.writeHead(403).end(JSON.stringify({ message }));
    });
    expect(await enforcement.checkCreate(createPhysicalHost())).toMatchObject({ message: 'no: ****' });
    expect(JSON.stringify(logger.lines)).not.toContain('token-1');
  });
});

describe('without a token', () => {
  it.each(['away', 'refusing'])('a lease is refused: Keystone is %s', async (state) => {
    const service = await policyServer({ status: 204 });
    const refusing = await recordedKeystone(() => recordedAnswer('wrong password'));
    const authUrl = state === 'away' ? `http://127.0.0.1:${await unusedPort()}` : refusing.url;
    const { enforcement, logger } = await load(service.url, authUrl);
    expect(await enforcement.checkCreate(createPhysicalHost())).toMatchObject({
      ...UNCHECKED,
      message: GENERIC,
    });
    expect(service.requests).toEqual([]);
    const [line] = logger.lines.filter(({ level }) => level === 'error');
    expect(JSON.stringify(line)).toContain('/v3/auth/tokens');
    expect(JSON.stringify(line)).not.toContain('s3cret');
    expect(await enforcement.onEnd(endActive())).toMatchObject({ failed: true });
  });

  it('a lease is allowed with external_service_allow_on_error, with a warning', async () => {
    const authUrl = `http://127.0.0.1:${await unusedPort()}`;
    const service = await policyServer({ status: 403 });
    const { enforcement } = await load(service.url, authUrl, { external_service_allow_on_error: true });
    const decision = await enforcement.checkCreate(createPhysicalHost());
    expect(decision).toMatchObject({ allowed: true, warnings: [expect.any(String)] });
  });
});

describe('external_service_auth', () => {
  it('needs [keystone]', async () => {
    expect(await mistakes('ExternalServiceFilter', AUTH)).toEqual([
      'blazar.conf:3: [enforcement] external_service_auth: needs an account at Keystone: set [keystone] auth_url or cloud',
    ]);
    expect(await mistakes('ExternalServiceFilter', [...AUTH, ...ACCOUNT])).toEqual([]);
  });

  it('needs a [keystone] without mistakes', async () => {
    const [problem] = await mistakes('ExternalServiceFilter', [...AUTH, ...ACCOUNT.slice(0, 2)]);
    expect(problem).toMatch(/^blazar\.conf:6: \[keystone\] auth_url: expected username and password/);
  });

  it('takes no token beside it', async () => {
    const lines = [...AUTH, 'external_service_token = s3cret', ...ACCOUNT];
    expect(await mistakes('ExternalServiceFilter', lines)).toEqual([
      'blazar.conf:3: [enforcement] external_service_auth: expected no external_service_token beside "keystone", got one',
    ]);
  });

  it('is token or keystone', async () => {
    const [problem] = await mistakes('ExternalServiceFilter', [
      'external_service_auth = kerberos',
      ...AUTH.slice(1),
    ]);
    expect(problem).toMatch(
      /^blazar\.conf:3: \[enforcement\] external_service_auth: expected .*token.*keystone/,
    );
  });
});

describe('UsageEnforcement.keystone', () => {
  it('is there when [keystone] is set, and closed with the enforcement', async () => {
    const keystone = await recordedKeystone((_request, count) => tokenAnswer(`token-${count}`));
    const { enforcement } = await load('http://127.0.0.1:1', keystone.url);
    expect(await enforcement.keystone?.token()).toBe('token-1');
    await enforcement.close();
    enforcement.keystone?.refused('token-1');
    await expect(enforcement.keystone?.token()).rejects.toThrow();
    expect(keystone.requests).toHaveLength(1);
  });

  it('is not there otherwise', async () => {
    const enforcement = await UsageEnforcement.load({
      configFiles: [],
      environment: { OS_AUTH_URL: 'http://h' },
      values: { enforcement: { enabled_filters: ['MaxLeaseDurationFilter'], max_lease_duration: 60 } },
    });
    onTestFinished(() => enforcement.close());
    expect(enforcement.keystone).toBeUndefined();
  });
});
