/** Every route of the service, and every kind of caller: what the walk through all of them needs. */
import Router from '@koa/router';
import { vi } from 'vitest';
import type { Role } from '../../../src/server/users/caller.ts';
import { runService } from '../../support/running-service.ts';
import { ValidatingKeystone } from '../../support/validating-keystone.ts';

/** What the recorded tokens are for. */
export const CLIMATE = '0000000000000000000000000000000e';
export const ELSEWHERE = 'ffffffffffffffffffffffffffffffff';

export interface RouteCaller {
  readonly name: string;
  /** In `CLIMATE`, and in no particular project. */
  readonly roles: readonly Role[];
  /** In every other project. */
  readonly rolesElsewhere: readonly Role[];
  /** What is answered to a request that its roles do not allow. */
  readonly refusal: 401 | 403;
  readonly token?: string;
  /** Who has a session instead of showing the token. */
  readonly hasSession?: boolean;
}

function caller(
  name: string,
  token: string | undefined,
  roles: readonly Role[],
  rolesElsewhere: readonly Role[] = [],
): RouteCaller {
  const isKnown = token !== undefined && token !== 'gAAAAAB-wrong';
  return { name, roles, rolesElsewhere, refusal: isKnown ? 403 : 401, ...(token && { token }) };
}

const KINDS: readonly RouteCaller[] = [
  caller('an operator', 'op-1-0123456789abcdef', ['operator'], ['operator']),
  caller('a reader', 'read-1-0123456789abcdef', ['reader'], ['reader']),
  caller('Blazar', 'blazar-1-0123456789abcdef', ['reader'], ['reader']),
  caller('a reader of the system', 'gAAAAAB-system', ['reader'], ['reader']),
  caller('a manager', 'gAAAAAB-manager', ['manager', 'member']),
  caller('a member', 'gAAAAAB-member', ['member']),
];

/** Those that cannot log in have no session. */
const ROUTE_CALLERS: readonly RouteCaller[] = [
  ...KINDS,
  caller('a stranger', 'gAAAAAB-stranger', []),
  caller('somebody without a project', 'gAAAAAB-unscoped', []),
  caller('an administrator of a domain', 'gAAAAAB-domain', []),
  caller('a wrong token', 'gAAAAAB-wrong', []),
  caller('nobody', undefined, []),
];
const WITH_SESSION: readonly RouteCaller[] = KINDS.map((kind) => ({
  ...kind,
  name: `${kind.name}, in a session`,
  hasSession: true,
}));
export const ALL_ROUTE_CALLERS: readonly RouteCaller[] = [...ROUTE_CALLERS, ...WITH_SESSION];

/** A service with all of them, and what they send. */
export async function servedCallers() {
  const routes = vi.spyOn(Router.prototype, 'routes');
  const keystone = await ValidatingKeystone.start();
  keystone.tokens
    .set('gAAAAAB-manager', 'member')
    .set('gAAAAAB-member', 'reader')
    .set('gAAAAAB-stranger', 'other-service')
    .set('gAAAAAB-domain', 'of-domain')
    .set('gAAAAAB-system', 'of-system')
    .set('gAAAAAB-unscoped', 'unscoped');
  const { request, url } = await runService({
    service: {
      keystone_auth: true,
      tokens: ['blazar-1-0123456789abcdef'],
      // Each request has an address of its own: a wrong token is sent more often than is possible from one.
      trusted_proxies: ['127.0.0.1'],
      operator_tokens: ['op-1-0123456789abcdef'],
      reader_tokens: ['read-1-0123456789abcdef'],
      manager_roles: ['member'],
      reader_roles: ['reader'],
    },
    keystone: keystone.account,
  });
  const mounted = routes.mock.contexts
    .flatMap((router) => (router as Router).stack)
    .flatMap(({ path, methods }) => methods.map((method) => ({ method, path: String(path) })))
    // Where GET is possible, HEAD is.
    .filter(({ method }) => method !== 'HEAD');
  const cookies = new Map<string, string>();
  /** The headers by which somebody shows who they are. */
  const shown = async ({ token, hasSession }: RouteCaller): Promise<Record<string, string>> => {
    if (token === undefined) {
      return {};
    }
    if (hasSession !== true) {
      return { 'X-Auth-Token': token };
    }
    const cookie = cookies.get(token) ?? (await logIn(token));
    cookies.set(token, cookie);
    return { Cookie: cookie };
  };
  const logIn = async (token: string) => {
    const body = new URLSearchParams({ token });
    const { headers } = await request('/login', { method: 'POST', body, redirect: 'manual' });
    return headers.getSetCookie()[0]?.split(';')[0] ?? '';
  };
  let requests = 0;
  /** Reads no body: some never end. */
  const statusOf = async (path: string, init: RequestInit) => {
    requests += 1;
    const headers = new Headers(init.headers);
    headers.set('X-Forwarded-For', `10.0.${requests >> 8}.${requests & 255}`);
    const answer = await fetch(url + path, { redirect: 'manual', ...init, headers });
    await answer.body?.cancel();
    return answer.status;
  };
  return { statusOf, mounted, shown };
}

/** The path of a route with values for its parts that vary. */
export function pathFor(path: string, projectId: string): string {
  return path.replaceAll('{project_id}', projectId).replaceAll(/\{\w+\}/g, 'x');
}
