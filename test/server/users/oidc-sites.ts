/** A real provider of OpenID Connect, run by this process, and a service that lets people log in with it. */
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import Provider from 'oidc-provider';
import { expect } from 'vitest';
import { startBalancer } from '../../support/balancer.ts';
import { temporaryFile } from '../../support/files.ts';
import { listen } from '../../support/listening.ts';
import { type RunningPolicyService, runServiceOn } from '../../support/running-service.ts';
import { Browser } from './browser.ts';

type Claims = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

export const SECRET = 'the-secret-of-the-client-0123456789';
const CLAIMS: Claims = {
  alice: {
    preferred_username: 'alice',
    groups: ['/projects/c11/manager', '/projects/physics/member', '/staff'],
  },
  olga: { preferred_username: 'olga', realm_access: { roles: ['cloud-admin'] } },
  rita: { preferred_username: 'rita', realm_access: { roles: ['auditor', 'cloud'] } },
  nobody: {
    preferred_username: 'nobody',
    groups: ['/projects/c11/owner', '/projects/c11', 'projects/c11/member'],
  },
};

/** A server on a port that is known before it answers. */
async function reserved(): Promise<{ server: Server; url: string }> {
  const server = createServer();
  return { server, url: `http://127.0.0.1:${(await listen(server)).port}` };
}

export interface Site {
  readonly isPublic?: boolean;
  readonly secretFile?: string;
  /** Whether the provider gives refresh tokens. */
  readonly refreshes?: boolean;
  /** Whether its logout tokens name the session. Default: they do. */
  readonly namesSessions?: boolean;
  /** Of a ledger: then there are two services on it, behind a load balancer without stickiness. Default: one, without a ledger. */
  readonly ledger?: string;
}

export async function sites(site: Site = {}) {
  const { isPublic = false, secretFile, refreshes = false, namesSessions = true, ledger } = site;
  /** By the name of the account; a test may change them. */
  const accounts: Record<string, Record<string, unknown> | undefined> = structuredClone(CLAIMS);
  const { server, url: issuer } = await reserved();
  const conf = temporaryFile('oidc.conf', '');
  const secret =
    secretFile === undefined ? `client_secret = ${SECRET}` : `client_secret_file = ${secretFile}`;
  const ledgerLines =
    ledger === undefined
      ? ''
      : `[ledger]\nconnection = ${ledger}\n[enforcement]\nenabled_filters = MaxLeasesFilter\n`;
  const write = (...lines: readonly string[]) =>
    writeFileSync(conf, `${ledgerLines}[service]\nport = 0\ndecision_store = none\n${lines.join('\n')}\n`);
  const oidc = [
    '[oidc]',
    `issuer = ${issuer}`,
    'client_id = console',
    isPublic ? '' : secret,
    'roles_claim = realm_access.roles',
    'operator_values = cloud-admin',
    'reader_values = auditor',
    'project_ids = physics:p44',
  ];
  write(...oidc);
  const start = () => runServiceOn({ environment: {}, configFiles: [conf] });
  const running: RunningPolicyService = await start();
  const url = ledger === undefined ? running.url : await startBalancer([running.url, (await start()).url]);
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: 'console',
        ...(isPublic
          ? { token_endpoint_auth_method: 'none' as const }
          : { client_secret: SECRET, token_endpoint_auth_method: 'client_secret_basic' as const }),
        redirect_uris: [`${url}/login/oidc/callback`],
        post_logout_redirect_uris: [`${url}/`],
        grant_types: ['authorization_code', ...(refreshes ? ['refresh_token'] : [])],
        backchannel_logout_uri: `${url}/login/oidc/backchannel-logout`,
        backchannel_logout_session_required: namesSessions,
        response_types: ['code'],
      },
    ],
    conformIdTokenClaims: false,
    claims: { openid: ['sub'], profile: ['preferred_username', 'groups', 'realm_access'] },
    findAccount: (_, id) =>
      accounts[id] && { accountId: id, claims: () => ({ sub: `sub-${id}`, ...accounts[id] }) as never },
    issueRefreshToken: async () => refreshes,
    features: { backchannelLogout: { enabled: true } },
    pkce: { required: () => true },
    cookies: { keys: ['k'] },
    // Its own dispatcher refuses addresses of this machine.
    fetch: (url, init) => fetch(url, { ...init, dispatcher: undefined } as RequestInit),
  });
  server.on('request', provider.callback());
  const browser = new Browser();
  /** To the page that comes back from the provider, which is not asked for yet. */
  const toCallback = async (login: string, next = '/login/project', by = browser) => {
    const asked = await by.get(`${url}/login/oidc?next=${encodeURIComponent(next)}`);
    expect(asked.url).toMatch(/\/interaction\//);
    const consent = await by.post(asked.url, { prompt: 'login', login, password: 'x' });
    const back = await by.post(consent.url, { prompt: 'consent' }, /\/login\/oidc\/callback/);
    return back.url;
  };
  const logIn = async (login: string, next?: string) => browser.get(await toCallback(login, next));
  return { ...running, url, issuer, provider, accounts, server, browser, toCallback, logIn, write, oidc };
}

export const isIn = async (browser: Browser, url: string) =>
  (await browser.get(`${url}/`)).html.includes('action="/logout"');

/** Has a provider answer with 503. Returns what brings it back. */
export function away(server: Server): () => void {
  const answers = server.listeners('request');
  server.removeAllListeners('request');
  server.on('request', (_, response) => response.writeHead(503).end());
  return () => {
    server.removeAllListeners('request');
    for (const answer of answers) {
      server.on('request', answer as () => void);
    }
  };
}
