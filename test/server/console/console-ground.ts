/** The console on a ledger, visited by people of a test: a header, or the cookie `person`, says who. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Koa from 'koa';
import { requireConfiguration } from '../../../src/enforcement/configuration.ts';
import { apiRoutes } from '../../../src/server/api/router.ts';
import { API_ROUTES } from '../../../src/server/api/routes.ts';
import { aroundRequests } from '../../../src/server/app.ts';
import { Generation } from '../../../src/server/configuration/generation.ts';
import { SECTIONS } from '../../../src/server/configuration/sections.ts';
import { assetRoutes } from '../../../src/server/console/assets.ts';
import { CONSOLE_PAGES } from '../../../src/server/console/pages.ts';
import { consoleRoutes } from '../../../src/server/console/router.tsx';
import { DecisionRecorder } from '../../../src/server/decisions/recorder.ts';
import { Metrics } from '../../../src/server/metrics/metrics.ts';
import { RefusedRequests } from '../../../src/server/refused-requests.ts';
import { fixedPerson, type Person } from '../../../src/server/users/person.ts';
import { UserLimiter } from '../../../src/server/users/user-limiter.ts';
import { type RecordingLogger, recordingLogger } from '../../support/logger.ts';

function member(name: string, projects: Readonly<Record<string, boolean>>): Person {
  return {
    kind: 'member',
    provenBy: 'keystone',
    identity: `keystone id-of-${name}`,
    who: `${name}@Default (id-of-${name})`,
    name,
    userId: `id-of-${name}`,
    memberships: Object.entries(projects).map(([projectId, isManager]) => ({
      ...{ projectId, isManager },
      ...{ name: `name-of-${projectId}`, domain: 'Default' },
    })),
  };
}

/** Mona manages `climate`, and Meg is a member of it. */
export const PEOPLE = {
  operator: fixedPerson('operator', 'operator token'),
  reader: fixedPerson('reader', 'reader token'),
  mona: member('mona', { climate: true }),
  meg: member('meg', { climate: false }),
} as const;
export type Name = keyof typeof PEOPLE;

export interface ConsoleGround {
  readonly url: string;
  readonly generation: Generation;
  readonly recorder: DecisionRecorder;
  readonly logger: RecordingLogger;
  get(who: Name, path: string): Promise<Seen>;
  /** A form, with the `csrf` of the session unless it has one. */
  send(who: Name, path: string, fields: Readonly<Record<string, string>>): Promise<Seen>;
  close(): Promise<void>;
}

export interface Seen {
  readonly status: number;
  readonly html: string;
  /** Where a form leads to; empty = nowhere else. */
  readonly location: string;
}

type Values = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

export async function consoleOn(
  connection: string,
  values: Values = {},
  now?: () => string,
): Promise<ConsoleGround> {
  const logger = recordingLogger();
  const configuration = await requireConfiguration(
    {
      environment: {},
      configFiles: [],
      values: {
        ...values,
        enforcement: { enabled_filters: ['UsageBudgetFilter'], ...values.enforcement },
        ledger: { connection, ...values.ledger },
      },
    },
    SECTIONS,
  );
  const clock = now && { now: () => new Date(now()) };
  const generation = await Generation.create(1, configuration, { logger, ...(clock && { clock }) });
  const metrics = new Metrics({
    ...{ underWay: () => 0, queued: () => 0, generation: () => 1, configurationIsValid: () => true },
  });
  const personOf = (name: string): Person | undefined => PEOPLE[name as Name];
  const people = {
    byToken: async (ctx: Koa.Context) => personOf(ctx.get('X-Auth-Token')),
    bySession: async (ctx: Koa.Context) => personOf(ctx.cookies.get('person') ?? ''),
    anybody: undefined,
    csrfOf: (ctx: Koa.Context) => (ctx.cookies.get('person') ? `csrf of ${ctx.cookies.get('person')}` : ''),
  };
  const recorder = new DecisionRecorder(metrics, undefined);
  const line = new UserLimiter();
  const app = new Koa();
  app.silent = true;
  const refusedRequests = new RefusedRequests(logger);
  app.use(
    aroundRequests({ generations: { current: generation }, metrics, refusedRequests, logger }, new Set()),
  );
  const parts = { people, line, logger };
  for (const router of [
    assetRoutes(),
    apiRoutes(API_ROUTES, parts),
    consoleRoutes(CONSOLE_PAGES, {
      ...{ ...parts, recorder, metrics, isDraining: () => false },
      generations: { current: generation, problems: [] },
      showLogin: (ctx) => ctx.throw(403, 'log in'),
    }),
  ]) {
    app.use(router.routes()).use(router.allowedMethods());
  }
  const server = createServer(app.callback()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const seen = async (path: string, init: RequestInit): Promise<Seen> => {
    const answer = await fetch(url + path, { redirect: 'manual', ...init });
    return {
      status: answer.status,
      html: await answer.text(),
      location: answer.headers.get('Location') ?? '',
    };
  };
  return {
    ...{ url, generation, recorder, logger },
    get: (who, path) => seen(path, { headers: { Cookie: `person=${who}` } }),
    send: (who, path, fields) =>
      seen(path, {
        method: 'POST',
        body: new URLSearchParams({ csrf: `csrf of ${who}`, ...fields }),
        headers: { Cookie: `person=${who}` },
      }),
    close: async () => {
      server.closeAllConnections();
      server.close();
      await generation.retire();
    },
  };
}
