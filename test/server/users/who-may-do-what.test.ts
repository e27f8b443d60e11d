/** Walks through every route with every kind of caller, and compares with the one table. */
import { describe, expect, it } from 'vitest';
import { routerPath } from '../../../src/server/api/router.ts';
import { API_ROUTES } from '../../../src/server/api/routes.ts';
import { CONSOLE_PAGES } from '../../../src/server/console/pages.ts';
import { BLAZAR_ENDPOINTS, LOGIN_PATHS } from '../../../src/server/own-paths.ts';
import { ACTIONS, type Action } from '../../../src/server/users/caller.ts';
import { capturedText } from '../../support/requests.ts';
import {
  ALL_ROUTE_CALLERS,
  CLIMATE,
  ELSEWHERE,
  pathFor,
  type RouteCaller,
  servedCallers,
} from './every-route.ts';

/** What everybody may see, whoever they are. */
const OPEN = ['/healthz', '/readyz', '/metrics', '/openapi.json'];
/** For everybody who may see a page: it says that something is new, and not what. */
const EVENTS = '/events';
/** It is asked with a secret in its path. */
const CALENDAR = '/calendars/:file';
const BLAZAR = BLAZAR_ENDPOINTS.flatMap((name) => [`/${name}`, `/v1/${name}`]);
/** Everybody may come there, to say who they are. */
const LOGIN: readonly string[] = LOGIN_PATHS;

/** By the table alone: `may` itself is not asked. */
function isAllowed(
  { roles, rolesElsewhere }: RouteCaller,
  action: Action,
  path: string,
  project: string,
): boolean {
  const isElsewhere = path.includes('{project_id}') && project !== CLIMATE;
  const allowed: readonly string[] = ACTIONS[action];
  return (isElsewhere ? rolesElsewhere : roles).some((role) => allowed.includes(role));
}

describe('who may do what', () => {
  it('has an action for every route: of the API, of the console, or of those that are for everybody or Blazar', async () => {
    const { mounted } = await servedCallers();
    const known = new Set([
      ...API_ROUTES.map(({ method, path }) => `${method} ${routerPath(path)}`),
      ...CONSOLE_PAGES.map(({ method, path }) => `${method} ${routerPath(path)}`),
    ]);
    const others = new Set([...OPEN, ...BLAZAR, ...LOGIN, EVENTS, CALENDAR]);
    const without = mounted
      .filter(
        ({ method, path }) =>
          !known.has(`${method} ${path}`) && !others.has(path) && !path.startsWith('/assets/'),
      )
      .map(({ method, path }) => `${method} ${path}`);
    expect(without).toEqual([]);
    for (const { action } of [...API_ROUTES, ...CONSOLE_PAGES]) {
      expect(Object.keys(ACTIONS)).toContain(action);
    }
  });

  it('knows the project of every path that has one: by no other name would it be looked at', () => {
    for (const { path } of [...API_ROUTES, ...CONSOLE_PAGES]) {
      const [, name = 'project_id'] = /\/projects\/\{(\w+)\}/.exec(path) ?? [];
      expect(name, path).toBe('project_id');
    }
  });

  it.each([
    ['route of the API', API_ROUTES],
    ['page of the console', CONSOLE_PAGES],
  ] as const)('is the same at every %s', async (kind, routes) => {
    const { statusOf, shown } = await servedCallers();
    const wrong: string[] = [];
    for (const caller of ALL_ROUTE_CALLERS) {
      const headers = await shown(caller);
      for (const { method, path, action } of routes) {
        for (const project of path.includes('{project_id}') ? [CLIMATE, ELSEWHERE] : [CLIMATE]) {
          const isPage = kind === 'page of the console';
          const form = isPage && method === 'POST' && { body: new URLSearchParams({ a: 'b' }) };
          const status = await statusOf(pathFor(path, project), { method, headers, ...form });
          // A cookie comes with requests of other sites, too: at the API it is for reading only, and a form must have its csrf.
          const isByCookieAlone = caller.hasSession === true && method !== 'GET';
          const isRefused = isByCookieAlone || !isAllowed(caller, action, path, project);
          const refusal = isByCookieAlone && !isPage ? 401 : caller.refusal;
          // The first page of those who may not see it is another one.
          const leadsOn = path === '/' && method === 'GET' && status === 303 && caller.roles.length > 0;
          if (isRefused ? status !== refusal && !leadsOn : [401, 403].includes(status)) {
            wrong.push(`${caller.name}: ${method} ${pathFor(path, project)}: ${status}`);
          }
        }
      }
    }
    expect(wrong).toEqual([]);
  });

  it('opens the endpoints of Blazar to nobody but Blazar', async () => {
    const { statusOf, shown } = await servedCallers();
    const body = capturedText('check-create-physical-host.json');
    for (const caller of ALL_ROUTE_CALLERS) {
      const headers = { ...(await shown(caller)), 'Content-Type': 'application/json' };
      const paths = caller.name === 'an operator' ? BLAZAR : ['/check-create'];
      for (const path of paths) {
        const status = await statusOf(path, { method: 'POST', body, headers });
        // The stranger is a service of Keystone, with the role for it.
        const isBlazar = caller.token === 'blazar-1-0123456789abcdef' || caller.token === 'gAAAAAB-stranger';
        const passes = isBlazar && caller.hasSession !== true;
        expect([401, 403].includes(status), `${caller.name} at ${path}: ${status}`).toBe(!passes);
      }
    }
  });

  it('shows everybody the same of what is open', async () => {
    const { statusOf, shown } = await servedCallers();
    for (const caller of ALL_ROUTE_CALLERS) {
      const headers = await shown(caller);
      for (const path of ['/healthz', '/openapi.json']) {
        expect(await statusOf(path, { headers }), caller.name + path).toBe(200);
      }
    }
  });
});
