import type { IncomingMessage, RequestListener } from 'node:http';
import type Router from '@koa/router';
import Koa from 'koa';
import { errorText } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import { apiRoutes } from './api/router.ts';
import { API_ROUTES } from './api/routes.ts';
import type { Authenticators } from './authentication/authenticators.ts';
import { assetRoutes } from './console/assets.ts';
import { eventRoutes } from './console/live/events.ts';
import { loginRoutes } from './console/login-routes.tsx';
import type { ConsolePage } from './console/page.ts';
import { CONSOLE_PAGES } from './console/pages.ts';
import { type ConsoleParts, consoleRoutes } from './console/router.tsx';
import type { KubernetesReports } from './followers/kubernetes-reports.ts';
import { healthRoutes, readinessParts } from './health.ts';
import { LimitedLines } from './limited-lines.ts';
import type { Metrics } from './metrics/metrics.ts';
import { openApiRoutes } from './openapi/document.ts';
import { OWN_PATHS } from './own-paths.ts';
import { answerBlazar } from './protocols/blazar.ts';
import { FailedReviews } from './protocols/failed-reviews.ts';
import { kubernetesEndpoints } from './protocols/kubernetes.ts';
import { skypilotEndpoint } from './protocols/skypilot.ts';
import type { RefusedRequests } from './refused-requests.ts';
import { aroundRequests } from './request-middleware.ts';
import type { RequestParts } from './request-state.ts';
import { tracedRequests } from './traced-requests.ts';
import { budgetReaders } from './users/budget-readers.ts';
import { createPeople } from './users/people.ts';
import { Sessions } from './users/sessions.ts';
import { UserLimiter } from './users/user-limiter.ts';

export interface AppParts extends Omit<ConsoleParts, 'people' | 'showLogin' | 'line'> {
  readonly authenticators: Authenticators;
  /** Default: all. */
  readonly pages?: readonly ConsolePage[];
  /** Fires when the service begins to stop: streams without an end must end then. Default: never. */
  readonly stopping?: AbortSignal;
  readonly refusedRequests: RefusedRequests;
  /** Default: nothing is told to a cluster. */
  readonly reports?: KubernetesReports;
  /** Whether `createAdminApp` has the metrics. Default: false. */
  readonly hasAdminPort?: boolean;
  readonly logger: Logger;
}

/** The policy service without its socket: one file for each protocol, and one place that catches errors. */
export function createApp(parts: AppParts): RequestListener {
  const { generations, authenticators, recorder, metrics, isDraining, reports, logger } = parts;
  const { pages = CONSOLE_PAGES, hasAdminPort = false } = parts;
  const paths = new Set(OWN_PATHS);
  const app = koaApp(parts, paths);
  const health = healthOf(parts, hasAdminPort ? undefined : metrics);
  const failures = new FailedReviews(logger, () => metrics.refusedForOverload());
  parts.stopping?.addEventListener('abort', () => failures.close(), { once: true });
  const sessions = new Sessions();
  const people = createPeople({
    ...{ tokens: authenticators.people, sessions, wrong: authenticators.wrong },
    configuration: () => generations.current.configuration,
  });
  const login = loginRoutes({
    people,
    tokens: authenticators.people,
    wrong: authenticators.wrong,
    sessions,
    logger,
  });
  const { showLogin } = login;
  const line = new UserLimiter();
  const api = apiRoutes(API_ROUTES, { people, line, logger });
  const console = consoleRoutes(pages, {
    ...{ generations, recorder, metrics, isDraining },
    ...{ people, showLogin, line, logger },
  });
  const events = eventRoutes({ people, current: () => generations.current, recent: recorder.recent });
  parts.stopping?.addEventListener('abort', events.close, { once: true });
  const routers: Router[] = [
    ...[health, openApiRoutes()],
    ...[api, login.router, console, events.router, assetRoutes()],
  ];
  app.use(
    kubernetesEndpoints(authenticators.kubernetes, {
      recorder,
      failures,
      reports,
      metrics: metrics.kubernetes,
    }),
  );
  app.use(skypilotEndpoint(authenticators.skypilot, recorder, metrics));
  for (const router of routers) {
    app.use(router.routes()).use(router.allowedMethods());
  }
  const blazar = { ...requestParts(parts), authenticator: authenticators.blazar, recorder };
  return tracedRequests(answerBlazar(blazar, app.callback()), paths, clientOf(parts));
}

/** Health and metrics, for `[service] admin_port`. */
export function createAdminApp(parts: AppParts): RequestListener {
  const paths = new Set(['/healthz', '/readyz', '/metrics']);
  const health = healthOf(parts, parts.metrics);
  const app = koaApp(parts, paths).use(health.routes()).use(health.allowedMethods());
  return tracedRequests(app.callback(), paths, clientOf(parts));
}

/** The address of the client of a request. */
function clientOf({ generations }: AppParts): (request: IncomingMessage) => string | undefined {
  return (request) => generations.current.proxies.clientOf(request);
}

/** `paths`: those that are counted by name. */
function koaApp(parts: AppParts, paths: ReadonlySet<string>): Koa {
  const app = new Koa();
  const unsent = new LimitedLines(parts.logger, {
    level: 'warn',
    message: 'answer could not be sent',
    more: 'more answers could not be sent than are logged',
  });
  app.on('error', (thrown: unknown) => unsent.log(() => ({ error: errorText(thrown) })));
  parts.stopping?.addEventListener('abort', () => unsent.close(), { once: true });
  return app.use(aroundRequests(requestParts(parts), paths));
}

function requestParts({ generations, isDraining, metrics, refusedRequests, logger }: AppParts): RequestParts {
  return { current: () => generations.current, isDraining, metrics, refusedRequests, logger };
}

function healthOf(
  { generations, authenticators, isDraining }: AppParts,
  metrics: Metrics | undefined,
): Router {
  const seesBudgets = budgetReaders(authenticators.people, authenticators.wrong);
  return healthRoutes({ ...readinessParts(generations, isDraining), metrics, seesBudgets });
}
