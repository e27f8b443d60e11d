import { describe, expect, it } from 'vitest';
import { capturedText } from '../../support/requests.ts';
import { runService } from '../../support/running-service.ts';
import { ValidatingKeystone } from '../../support/validating-keystone.ts';
import { callersOf } from './callers.ts';

const BLAZAR = 'blazar-1-0123456789abcdef';
const OPERATOR = 'op-1-0123456789abcdef';
const READER = 'read-1-0123456789abcdef';
const FITS = capturedText('check-create-physical-host.json');
const sends = (token: string) => ({ 'X-Auth-Token': token });
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

describe('a token of the configuration', () => {
  const tokens = {
    blazar: [BLAZAR],
    operator: [OPERATOR, 'op-2-0123456789abcdef'],
    reader: [READER],
  };

  it.for([
    [OPERATOR, 'operator', 'operator token'],
    ['op-2-0123456789abcdef', 'operator', 'operator token'],
    [READER, 'reader', 'reader token'],
    [BLAZAR, 'reader', 'service token'],
  ] as const)('%s is that of an %s', async ([token, kind, who]) => {
    const { ask } = await callersOf(tokens);
    const caller = { kind, who, name: who, provenBy: 'token', userId: null, memberships: [] };
    expect(await ask(sends(token))).toMatchObject({ status: 200, body: caller });
    expect(await ask(bearer(token))).toMatchObject({ status: 200, body: caller });
  });

  it('is refused if it is another one', async () => {
    const other = 'op-2-0123456789abcdef';
    const twice = `${OPERATOR}, ${OPERATOR}`;
    for (const token of ['op-1', OPERATOR.toUpperCase(), `${OPERATOR},${other}`, twice, `"${OPERATOR}"`]) {
      const { ask } = await callersOf(tokens);
      expect((await ask(sends(token))).status, token).toBe(401);
      expect((await ask(bearer(token))).status, token).toBe(401);
    }
    const { ask } = await callersOf(tokens);
    for (const Authorization of [undefined, 'Basic b3A6b3AtMQ==', OPERATOR]) {
      expect((await ask(Authorization === undefined ? {} : { Authorization })).status).toBe(401);
    }
  });

  it('may come twice, but not with another', async () => {
    const { ask } = await callersOf(tokens);
    expect((await ask({ ...sends(OPERATOR), ...bearer(OPERATOR) })).status).toBe(200);
    expect((await ask({ ...sends(READER), ...bearer(OPERATOR) })).status).toBe(401);
    expect((await ask({ ...sends(OPERATOR), ...bearer('wrong') })).status).toBe(401);
  });

  it('counts no longer when it is replaced', async () => {
    const { ask, tokens: accepted } = await callersOf(tokens);
    accepted.replace({ operator: ['op-3'], reader: [], metrics: [] });
    expect((await ask(sends(OPERATOR))).status).toBe(401);
    expect((await ask(sends(READER))).status).toBe(401);
    expect((await ask(sends('op-3'))).body).toMatchObject({ kind: 'operator' });
  });
});

describe('anonymous', () => {
  it('is a reader where nothing at all is configured, whatever is sent', async () => {
    const { ask } = await callersOf({});
    for (const headers of [{}, sends('any'), bearer('any')]) {
      expect((await ask(headers)).body).toMatchObject({
        kind: 'reader',
        provenBy: 'nobody',
        who: 'anonymous',
      });
    }
  });

  it.for([{ blazar: ['t'] }, { operator: ['t'] }, { reader: ['t'] }])(
    'is nobody where there are tokens: %j',
    async (configured) => {
      const { ask } = await callersOf(configured);
      expect((await ask()).status).toBe(401);
      expect((await ask(sends('any'))).status).toBe(401);
    },
  );

  it('is nobody where Keystone is asked', async () => {
    const { ask } = await callersOf({ keystone: { auth_url: 'http://127.0.0.1:9/v3' } });
    expect((await ask()).status).toBe(401);
  });
});

describe('a token of Keystone', () => {
  async function cloud(configured: Parameters<typeof callersOf>[0] = {}) {
    const keystone = await ValidatingKeystone.start();
    keystone.tokens
      .set('gAAAAAB-blazar', 'service')
      .set('gAAAAAB-alice', 'member')
      .set('gAAAAAB-carol', 'reader')
      .set('gAAAAAB-unscoped', 'unscoped');
    return { keystone, ...(await callersOf({ keystone: keystone.account, ...configured })) };
  }
  const memberOf = (isManager: boolean) => ({
    kind: 'member',
    provenBy: 'keystone',
    memberships: [{ name: 'climate', domain: 'Default', isManager }],
  });

  it('with a role in a project is that of a member of it', async () => {
    const { ask } = await cloud();
    const { body } = await ask(sends('gAAAAAB-alice'));
    expect(body).toMatchObject({ ...memberOf(false), name: 'alice@Default' });
    expect(body.who).toBe(`alice@Default (${String(body.userId)})`);
    expect((await ask(bearer('gAAAAAB-carol'))).body).toMatchObject(memberOf(false));
  });

  it('goes by admin_roles, manager_roles and reader_roles, letter by letter', async () => {
    const operator = await cloud({ service: { admin_roles: ['member'] } });
    expect((await operator.ask(sends('gAAAAAB-alice'))).body).toMatchObject({ kind: 'operator' });
    const manager = await cloud({ service: { manager_roles: ['member'] } });
    expect((await manager.ask(sends('gAAAAAB-alice'))).body).toMatchObject(memberOf(true));
    const strict = await cloud({ service: { reader_roles: ['Member', 'memb', '*'] } });
    const message =
      'expected a token for a project in which its user has one of the roles admin, manager, Member, memb, *';
    expect(await strict.ask(sends('gAAAAAB-alice'))).toMatchObject({ status: 403, body: { message } });
    // Every role, and tokens without one: `user-authenticator.test.ts`.
    expect((await strict.ask(sends('gAAAAAB-unscoped'))).status).toBe(403);
  });

  it('that Keystone does not know is refused, with where to get one', async () => {
    const { ask, keystone, counted } = await cloud();
    const { status, headers } = await ask(sends('gAAAAAB-unknown'));
    expect([status, headers.get('WWW-Authenticate')]).toEqual([401, `Keystone uri="${keystone.url}"`]);
    expect((await ask(sends('not a token'))).status).toBe(401);
    expect(counted).toEqual(['invalid keystone', 'invalid form']);
  });

  it('is validated once, and goes on while Keystone is away', async () => {
    const { ask, keystone } = await cloud();
    await ask(sends('gAAAAAB-alice'));
    await keystone.stop();
    expect((await ask(sends('gAAAAAB-alice'))).status).toBe(200);
    const { status, headers } = await ask(sends('gAAAAAB-carol'));
    expect([status, headers.get('Retry-After')]).toEqual([503, '5']);
    expect(keystone.asked).toEqual(['gAAAAAB-alice']);
  });

  it('is what a token of the configuration is not: Keystone is told of none', async () => {
    const { ask, keystone } = await cloud({
      blazar: [BLAZAR],
      operator: [OPERATOR],
      reader: [READER],
    });
    for (const [token, kind] of [
      [OPERATOR, 'operator'],
      [READER, 'reader'],
      [BLAZAR, 'reader'],
    ] as const) {
      expect((await ask(sends(token))).body).toMatchObject({ kind });
    }
    expect(keystone.asked).toEqual([]);
  });
});

describe("Blazar's authenticator", () => {
  it('is closed to the tokens of people, and Keystone is not told of them', async () => {
    const keystone = await ValidatingKeystone.start();
    keystone.tokens.set(OPERATOR, 'service').set(READER, 'service');
    const { post } = await runService({
      enforcement: { max_lease_duration: 345_600 },
      service: {
        keystone_auth: true,
        tokens: ['t-0123456789abcdef'],
        operator_tokens: [OPERATOR],
        reader_tokens: [READER],
      },
      keystone: keystone.account,
    });
    for (const path of ['/check-create', '/v1/commit-create', '/on-end']) {
      for (const token of [OPERATOR, READER]) {
        expect((await post(path, FITS, sends(token))).status, path + token).toBe(401);
      }
    }
    expect(keystone.asked).toEqual([]);
    expect((await post('/check-create', FITS, sends('t-0123456789abcdef'))).status).toBe(204);
  });

  it('stays open where it was: tokens of people close it to nobody', async () => {
    const { post } = await runService({
      enforcement: { max_lease_duration: 345_600 },
      service: { operator_tokens: [OPERATOR] },
    });
    expect((await post('/check-create', FITS)).status).toBe(204);
  });
});
