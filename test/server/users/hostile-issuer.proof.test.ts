/** An issuer that is wrong, slow, huge or hostile: nobody gets in, and nothing waits for ever. */
import { createHmac, createSign, generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { confFile } from '../../support/files.ts';
import { breakLedger, mendLedger, newLedger } from '../../support/ledgers.ts';
import { listen } from '../../support/listening.ts';
import { runServiceOn } from '../../support/running-service.ts';
import { Browser } from './browser.ts';

const ours = generateKeyPairSync('rsa', { modulusLength: 2048 });
const theirs = generateKeyPairSync('rsa', { modulusLength: 2048 });
const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

function signed(claims: object, key: KeyObject = ours.privateKey, header: object = {}): string {
  const text = `${part({ alg: 'RS256', kid: 'k', typ: 'JWT', ...header })}.${part(claims)}`;
  return `${text}.${createSign('RSA-SHA256').update(text).sign(key).toString('base64url')}`;
}

/** By somebody who does not have the key of the issuer. */
const FORGED: Readonly<Record<string, (claims: object, header?: object) => string>> = {
  'signed by another': (claims, header) => signed(claims, theirs.privateKey, header),
  'not signed': (claims, header) => `${part({ ...header, alg: 'none' })}.${part(claims)}.`,
  'signed with the public key as a secret': (claims, header) => {
    const text = `${part({ ...header, alg: 'HS256', kid: 'k' })}.${part(claims)}`;
    const pem = ours.publicKey.export({ type: 'spki', format: 'pem' });
    return `${text}.${createHmac('sha256', pem).update(text).digest('base64url')}`;
  },
  'changed after it was signed': (claims, header) => {
    const [head, , end] = signed(claims, ours.privateKey, header).split('.');
    return `${head}.${part({ ...claims, sub: 's2' })}.${end}`;
  },
  'signed by a key that it brings along': (claims, header) =>
    signed(claims, theirs.privateKey, { ...header, jwk: theirs.publicKey.export({ format: 'jwk' }) }),
  'that is none': () => 'x.y.z',
  'that is empty': () => '',
};

type Answers = Partial<
  Record<'/.well-known/openid-configuration' | '/jwks' | '/token', (response: ServerResponse) => void>
>;
const JWKS = { keys: [{ ...ours.publicKey.export({ format: 'jwk' }), kid: 'k', use: 'sig', alg: 'RS256' }] };
const sendJson = (response: ServerResponse, value: object) =>
  response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(value));

const LOGOUT = { typ: 'logout+jwt' };
const EVENT = 'http://schemas.openid.net/event/backchannel-logout';
function logoutClaims(iss: string) {
  const iat = Math.floor(Date.now() / 1000);
  const events = { [EVENT]: {} };
  return { iss, aud: 'console', iat, exp: iat + 120, jti: randomUUID(), sid: 'sid-1', events };
}

/** A logout token of the issuer, which a test may change. */
const logoutToken = (issuer: string, claims: object = {}, header: object = LOGOUT) =>
  signed({ ...logoutClaims(issuer), ...claims }, ours.privateKey, header);

/** An issuer that is as it should be, but for what a test changes. */
async function issuerWith({
  idToken,
  answers = {},
  metadata = {},
  sections = '',
}: {
  readonly idToken?: ((claims: Record<string, unknown>) => string) | undefined;
  readonly answers?: Answers;
  readonly metadata?: object;
  readonly sections?: string;
} = {}) {
  let nonce = '';
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? '', url).pathname as keyof Answers;
    asked.push(path);
    const now = Math.floor(Date.now() / 1000);
    const claims = {
      iss: url,
      aud: 'console',
      sub: 's1',
      iat: now,
      exp: now + 300,
      nonce,
      roles: ['root'],
      sid: 'sid-1',
    };
    const instead = answers[path];
    if (instead !== undefined) {
      instead(response);
    } else if (path === '/.well-known/openid-configuration') {
      sendJson(response, {
        issuer: url,
        authorization_endpoint: `${url}/auth`,
        token_endpoint: `${url}/token`,
        jwks_uri: `${url}/jwks`,
        response_types_supported: ['code'],
        id_token_signing_alg_values_supported: ['RS256'],
        ...metadata,
      });
    } else if (path === '/jwks') {
      sendJson(response, JWKS);
    } else {
      sendJson(response, { access_token: 'a', token_type: 'Bearer', id_token: (idToken ?? signed)(claims) });
    }
  });
  const url = `http://127.0.0.1:${(await listen(server)).port}`;
  const conf = confFile(
    `[service]\nport = 0\ndeadline = 30\n[oidc]\nissuer = ${url}\nclient_id = console\noperator_values = root\ntimeout = 5\n${sections}`,
  );
  const running = await runServiceOn({ environment: {}, configFiles: [conf] });
  const browser = new Browser();
  const begin = async () => {
    const page = await browser.get(`${running.url}/login/oidc`, /\/auth\?/);
    const sent = new URL(page.url).searchParams;
    nonce = sent.get('nonce') ?? '';
    return { page, state: sent.get('state') ?? '' };
  };
  const logIn = async () => {
    const { state } = await begin();
    return browser.get(`${running.url}/login/oidc/callback?code=c&state=${state}`);
  };
  const isIn = () => browser.cookieOf(running.url, 'blazar-enforcement-session') !== undefined;
  const hasSession = async () => (await browser.get(`${running.url}/`)).html.includes('action="/logout"');
  const tellLogout = (...tokens: readonly string[]) =>
    fetch(`${running.url}/login/oidc/backchannel-logout`, {
      method: 'POST',
      body: new URLSearchParams(tokens.map((token) => ['logout_token', token])),
    });
  return { ...running, browser, begin, logIn, isIn, hasSession, tellLogout, asked, issuer: url };
}

describe('an issuer', () => {
  it('that is as it should be lets in', async () => {
    const { logIn, isIn } = await issuerWith();
    expect((await logIn()).status).toBe(200);
    expect(isIn()).toBe(true);
  });

  const hour = 3600;
  const wrong: Record<string, (claims: Record<string, unknown>) => string> = {
    ...FORGED,
    'for another audience': (claims) => signed({ ...claims, aud: 'other' }),
    'for others, too, and not for us': (claims) => signed({ ...claims, aud: ['other', 'third'] }),
    'from another issuer': (claims) => signed({ ...claims, iss: 'https://evil.example.org' }),
    expired: (claims) =>
      signed({ ...claims, exp: Number(claims.iat) - hour, iat: Number(claims.iat) - 2 * hour }),
    'without an end': (claims) => signed({ ...claims, exp: undefined }),
    'with another nonce': (claims) => signed({ ...claims, nonce: 'other' }),
    'without a nonce': (claims) => signed({ ...claims, nonce: undefined }),
    'without a user': (claims) => signed({ ...claims, sub: undefined }),
  };
  it.for(Object.entries(wrong))('lets nobody in by an ID token %s', async ([, idToken]) => {
    const { logIn, isIn, logger } = await issuerWith({ idToken });
    const page = await logIn();
    expect([page.status, isIn()]).toEqual([401, false]);
    expect(page.html).toContain('did not confirm who you are');
    expect(JSON.stringify(logger.lines)).not.toMatch(/eyJ/);
  });

  const endless = (response: ServerResponse) => {
    response.writeHead(200, { 'Content-Type': 'application/json' });
    const more = () => {
      while (!response.destroyed && response.write(' '.repeat(65_536)));
    };
    response.on('drain', more);
    more();
  };
  const silent = () => {};
  const dripping = (response: ServerResponse) => {
    response.writeHead(200, { 'Content-Type': 'application/json' });
    const timer = setInterval(() => response.write(' '), 100);
    response.on('close', () => clearInterval(timer));
  };
  const leading = (response: ServerResponse) =>
    response.writeHead(302, { Location: 'http://127.0.0.1:1/' }).end();
  const broken = (response: ServerResponse) => response.writeHead(500).end('<html>');

  const paths = ['/.well-known/openid-configuration', '/jwks', '/token'] as const;
  const expectNobodyIn = async (path: (typeof paths)[number], answer: (response: ServerResponse) => void) => {
    const { begin, browser, url, isIn } = await issuerWith({ answers: { [path]: answer } });
    const { page, state } = await begin();
    if (path === '/.well-known/openid-configuration') {
      expect([page.status, page.html.includes('does not answer now')], path).toEqual([503, true]);
    } else {
      const { status } = await browser.get(`${url}/login/oidc/callback?code=c&state=${state}`);
      expect(status, path).toBe(401);
    }
    expect(isIn(), path).toBe(false);
    const { status } = await browser.get(`${url}/healthz`);
    expect(status, path).toBe(200);
  };
  // All paths at once: some take as long as is waited for them.
  it.for(Object.entries({ endless, silent, dripping, leading, broken }))(
    'lets nobody in, and keeps nobody waiting, if one of its answers is %s',
    async ([, answer]) => {
      await Promise.all(paths.map((path) => expectNobodyIn(path, answer)));
    },
  );

  it('lets nobody in if it calls itself otherwise', async () => {
    const { begin, isIn } = await issuerWith({ metadata: { issuer: 'https://evil.example.org' } });
    expect((await begin()).page.status).toBe(503);
    expect(isIn()).toBe(false);
  });

  it('lets nobody in if it comes back as another: its name in the address is checked', async () => {
    const { begin, browser, url, isIn } = await issuerWith({
      metadata: { authorization_response_iss_parameter_supported: true },
    });
    const { state } = await begin();
    const other = encodeURIComponent('https://evil.example.org');
    const page = await browser.get(`${url}/login/oidc/callback?code=c&state=${state}&iss=${other}`);
    expect([page.status, isIn()]).toEqual([401, false]);
  });

  it('is asked about itself once by many', async () => {
    const { url, asked } = await issuerWith({ answers: { '/.well-known/openid-configuration': broken } });
    await Promise.all(Array.from({ length: 20 }, () => new Browser().get(`${url}/login/oidc`)));
    expect(asked).toEqual(['/.well-known/openid-configuration']);
  });
});

describe('a logout token', () => {
  const minute = 60;
  const now = () => Math.floor(Date.now() / 1000);
  const wrong: Record<string, (issuer: string) => string> = {
    ...Object.fromEntries(
      Object.entries(FORGED).map(([name, forge]) => [
        name,
        (issuer: string) => forge(logoutClaims(issuer), LOGOUT),
      ]),
    ),
    'of another issuer': () => logoutToken('https://evil.example.org'),
    'for another audience': (issuer) => logoutToken(issuer, { aud: 'other' }),
    'of ten minutes ago': (issuer) => logoutToken(issuer, { iat: now() - 10 * minute, exp: now() + minute }),
    'of the future': (issuer) => logoutToken(issuer, { iat: now() + 10 * minute }),
    'that has expired': (issuer) => logoutToken(issuer, { exp: now() - 2 * minute }),
    'without a time': (issuer) => logoutToken(issuer, { iat: undefined }),
    'without an id': (issuer) => logoutToken(issuer, { jti: undefined }),
    'without an event': (issuer) => logoutToken(issuer, { events: undefined }),
    'of another event': (issuer) => logoutToken(issuer, { events: { 'http://example.org/other': {} } }),
    'whose event is no object': (issuer) => logoutToken(issuer, { events: { [EVENT]: true } }),
    'with a nonce': (issuer) => logoutToken(issuer, { nonce: 'n' }),
    'of nobody': (issuer) => logoutToken(issuer, { sid: undefined }),
    'of another type': (issuer) => logoutToken(issuer, {}, { typ: 'at+jwt' }),
  };
  it('ends no session if anything is wrong with it, and then the session that it names, once', async () => {
    const { logIn, hasSession, tellLogout, issuer, logger } = await issuerWith();
    await logIn();
    for (const [name, token] of Object.entries(wrong)) {
      const answer = await tellLogout(token(issuer));
      expect([answer.status, answer.headers.get('Cache-Control')], name).toEqual([400, 'no-store']);
      expect(await answer.json(), name).toMatchObject({ error: 'invalid_request' });
    }
    expect((await tellLogout(logoutToken(issuer), logoutToken(issuer))).status, 'two').toBe(400);
    expect((await tellLogout()).status, 'none').toBe(400);
    for (const claims of [{ sid: 'sid-2' }, { sub: 's2' }, { sub: 's2', sid: undefined }]) {
      expect((await tellLogout(logoutToken(issuer, claims))).status).toBe(200);
    }
    expect(await hasSession(), 'nothing was meant for it').toBe(true);
    const token = logoutToken(issuer);
    const answer = await tellLogout(token);
    expect([answer.status, answer.headers.get('Cache-Control')]).toEqual([200, 'no-store']);
    expect(await hasSession()).toBe(false);
    await logIn();
    expect((await tellLogout(token)).status, 'again').toBe(400);
    expect(await hasSession()).toBe(true);
    expect(
      (await tellLogout(logoutToken(issuer, { sid: undefined, sub: 's1' }, { typ: 'JWT' }))).status,
    ).toBe(200);
    expect(await hasSession(), 'an older issuer, which names the user').toBe(false);
    expect(JSON.stringify(logger.lines)).not.toMatch(/eyJ/);
  });

  it('ends none while the keys of the issuer cannot be asked for', async () => {
    let isAway = false;
    const answers: Answers = {
      '/jwks': (response) => (isAway ? response.writeHead(503).end() : sendJson(response, JWKS)),
    };
    const { logIn, hasSession, tellLogout, issuer } = await issuerWith({ answers });
    await logIn();
    isAway = true;
    expect((await tellLogout(logoutToken(issuer))).status).toBe(400);
    expect(await hasSession()).toBe(true);
    isAway = false;
    expect((await tellLogout(logoutToken(issuer))).status).toBe(200);
    expect(await hasSession()).toBe(false);
  });

  it('ends its session when it comes again, after the database could not be reached', async () => {
    const connection = await newLedger();
    const sections = `[enforcement]\nenabled_filters = MaxLeasesFilter\n[ledger]\nconnection = ${connection}\n`;
    const { logIn, hasSession, tellLogout, issuer } = await issuerWith({ sections });
    await logIn();
    breakLedger(connection, 'sessions');
    const token = logoutToken(issuer);
    expect((await tellLogout(token)).status).toBe(503);
    mendLedger(connection, 'sessions');
    expect(await hasSession()).toBe(true);
    expect((await tellLogout(token)).status).toBe(200);
    expect(await hasSession()).toBe(false);
    expect((await tellLogout(token)).status).toBe(400);
  });
});
