/** A configuration on a ledger, served to people of a test: what fixtures of the API and of the console share. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type Router from '@koa/router';
import Koa from 'koa';
import { requireConfiguration } from '../../src/enforcement/configuration.ts';
import { apiRoutes } from '../../src/server/api/router.ts';
import { API_ROUTES } from '../../src/server/api/routes.ts';
import { aroundRequests } from '../../src/server/app.ts';
import { Generation } from '../../src/server/configuration/generation.ts';
import { SECTIONS } from '../../src/server/configuration/sections.ts';
import { DecisionStores } from '../../src/server/decisions/stores.ts';
import { Metrics } from '../../src/server/metrics/metrics.ts';
import type { Caller } from '../../src/server/users/caller.ts';
import type { UserAuthenticator } from '../../src/server/users/user-authenticator.ts';
import { UserLimiter } from '../../src/server/users/user-limiter.ts';
import { valuesOnly } from '../support/files.ts';
import { recordingLogger } from '../support/logger.ts';

export type Values = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** `projects`: whether they manage it. */
export function member(name: string, projects: Readonly<Record<string, boolean>>): Caller {
  return {
    kind: 'member',
    provenBy: 'keystone',
    identity: `keystone id-of-${name}`,
    who: `${name}@Default (id-of-${name})`,
    name: `${name}@Default`,
    userId: `id-of-${name}`,
    memberships: Object.entries(projects).map(([projectId, isManager]) => ({
      projectId,
      isManager,
      name: `name-of-${projectId}`,
      domain: 'Default',
    })),
  };
}

/** Those who show one of these names as their token; nobody has a session. */
export function usersByToken(callers: Readonly<Record<string, Caller>>): UserAuthenticator {
  return {
    byToken: async (ctx) => callers[ctx.get('X-Auth-Token')],
    bySession: async () => undefined,
    anonymous: undefined,
    csrfOf: () => '',
  };
}

interface ServedParts {
  readonly users: UserAuthenticator;
  readonly line: UserLimiter;
  readonly logger: ReturnType<typeof recordingLogger>;
  readonly generation: Generation;
  readonly metrics: Metrics;
}

/** The API, and further routes. `hasStores`: whether decisions are stored. */
export async function servedGeneration({
  connection,
  values = {},
  now,
  users,
  hasStores = false,
  routes = () => [],
}: {
  readonly connection: string;
  readonly values?: Values | undefined;
  readonly now?: (() => string) | undefined;
  readonly users: UserAuthenticator;
  readonly hasStores?: boolean;
  readonly routes?: (parts: ServedParts) => readonly Router[];
}) {
  const logger = recordingLogger();
  const configuration = await requireConfiguration(
    valuesOnly({
      ...values,
      enforcement: { enabled_filters: ['UsageBudgetFilter'], ...values.enforcement },
      ledger: { connection, ...values.ledger },
    }),
    SECTIONS,
  );
  const metrics = new Metrics({
    underWay: () => 0,
    queued: () => 0,
    generation: () => 1,
    configurationIsValid: () => true,
  });
  const generation = await Generation.create(1, configuration, {
    logger,
    ...(hasStores && { stores: new DecisionStores(logger, metrics.decisionStore) }),
    ...(now && { clock: { now: () => new Date(now()) } }),
  });
  const app = new Koa();
  app.silent = true;
  app.use(aroundRequests({ generations: { current: generation }, metrics, logger }, new Set()));
  const parts = { users, line: new UserLimiter(), logger, generation, metrics };
  for (const router of [apiRoutes(API_ROUTES, parts), ...routes(parts)]) {
    app.use(router.routes()).use(router.allowedMethods());
  }
  const server = createServer(app.callback()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    generation,
    logger,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await generation.retire();
    },
  };
}
