import type Router from '@koa/router';
import Koa from 'koa';
import type { Logger } from '../logger.ts';
import { blazarEndpoints, blazarRoutes, straightTo } from './blazar.ts';
import type { Doors } from './doors.ts';
import { healthRoutes } from './health.ts';
import { kubernetesEndpoints } from './kubernetes.ts';
import { openApiRoutes } from './openapi/document.ts';
import { OWN_PATHS } from './own-paths.ts';
import { type PageParts, pageRoutes } from './page/routes.tsx';
import { aroundRequests } from './request-middleware.ts';
import { skypilotEndpoint } from './skypilot.ts';

export interface AppParts extends Omit<PageParts, 'tokens'> {
  readonly doors: Doors;
  readonly logger: Logger;
}

/** The policy service without its socket: one file per protocol, and one place that catches. */
export function createApp({ generations, doors, keepers, isDraining, logger }: AppParts): Koa {
  const { metrics } = keepers;
  const app = new Koa();
  app.on('error', (thrown: unknown) => {
    logger.warn(
      { error: thrown instanceof Error ? thrown.message : String(thrown) },
      'answer could not be sent',
    );
  });

  const health = healthRoutes({
    metrics,
    isDraining,
    problems: () => generations.problems,
    generation: () => generations.current.number,
  });
  const endpoints = blazarEndpoints(doors.blazar, keepers);
  const page = pageRoutes({ generations, tokens: doors.blazar.tokens, keepers, isDraining });
  const routers: Router[] = [blazarRoutes(endpoints), health, openApiRoutes(), page];
  const paths = new Set(OWN_PATHS);
  app.use(aroundRequests({ current: () => generations.current, isDraining, metrics, logger, paths }));
  app.use(straightTo(endpoints));
  app.use(kubernetesEndpoints(doors.kubernetes, keepers));
  app.use(skypilotEndpoint(doors.skypilot, keepers));
  for (const router of routers) {
    app.use(router.routes()).use(router.allowedMethods());
  }
  return app;
}
