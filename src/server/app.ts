import type { RequestListener } from 'node:http';
import type Router from '@koa/router';
import Koa from 'koa';
import type { Logger } from '../logger.ts';
import { apiRoutes } from './api/router.ts';
import { API_ROUTES } from './api/routes.ts';
import { answerBlazar } from './blazar.ts';
import { assetRoutes } from './console/assets.ts';
import { eventRoutes } from './console/live/events.ts';
import { loginRoutes } from './console/login-routes.tsx';
import type { ConsolePage } from './console/page.ts';
import { CONSOLE_PAGES } from './console/pages.ts';
import { type ConsoleParts, consoleRoutes } from './console/router.tsx';
import type { Doors } from './doors.ts';
import { FailedReviews } from './failed-reviews.ts';
import { type HealthParts, healthRoutes, readinessParts } from './health.ts';
import { kubernetesEndpoints } from './kubernetes.ts';
import type { KubernetesReports } from './kubernetes-reports.ts';
import { openApiRoutes } from './openapi/document.ts';
import { OWN_PATHS } from './own-paths.ts';
import { budgetReaders } from './people/budget-readers.ts';
import { createPeople } from './people/people.ts';
import { Sessions } from './people/sessions.ts';
import { PeopleLine } from './people-line.ts';
import type { RefusedRequests } from './refused-requests.ts';
import { aroundRequests } from './request-middleware.ts';
import { skypilotEndpoint } from './skypilot.ts';
import { tracedRequests } from './traced-requests.ts';

export interface AppParts extends Omit<ConsoleParts, 'people' | 'showLogin' | 'line'> {
  readonly doors: Doors;
  /** Default: all. */
  readonly pages?: readonly ConsolePage[];
  /** Fires when the service begins to stop: streams without an end must end then. Default: never. */
  readonly stopping?: AbortSignal;
  readonly refusedRequests: RefusedRequests;
  /** Default: nothing is told to a cluster. */
  readonly reports?: KubernetesReports;
  /** Default: this process is the whole service. */
  readonly wholeReadiness?: HealthParts['whole'];
  readonly logger: Logger;
}

/** The policy service without its socket: one file for each protocol, and one place that catches errors. */
export function createApp(parts: AppParts): RequestListener {
  const { generations, doors, recorder, metrics, isDraining, refusedRequests, reports, logger } = parts;
  const { pages = CONSOLE_PAGES } = parts;
  const app = new Koa();
  app.on('error', (thrown: unknown) => {
    logger.warn(
      { error: thrown instanceof Error ? thrown.message : String(thrown) },
      'answer could not be sent',
    );
  });

  const health = healthRoutes({
    ...readinessParts(generations, isDraining),
    metrics,
    seesBudgets: budgetReaders(doors.people),
    whole: parts.wholeReadiness,
  });
  const failures = new FailedReviews(logger, () => metrics.refusedForOverload());
  parts.stopping?.addEventListener('abort', () => failures.close(), { once: true });
  const sessions = new Sessions();
  const people = createPeople({
    ...{ tokens: doors.people, sessions },
    configuration: () => generations.current.configuration,
  });
  const login = loginRoutes({ people, tokens: doors.people, sessions, logger });
  const { showLogin } = login;
  const line = new PeopleLine();
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
  const paths = new Set(OWN_PATHS);
  const current = () => generations.current;
  const requests = { current, isDraining, metrics, refusedRequests, logger };
  app.use(aroundRequests(requests, paths));
  app.use(
    kubernetesEndpoints(doors.kubernetes, { recorder, failures, reports, metrics: metrics.kubernetes }),
  );
  app.use(skypilotEndpoint(doors.skypilot, recorder, metrics));
  for (const router of routers) {
    app.use(router.routes()).use(router.allowedMethods());
  }
  const answerAll = answerBlazar({ ...requests, door: doors.blazar, recorder }, app.callback());
  return tracedRequests(answerAll, paths);
}
