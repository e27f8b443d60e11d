/** Health and metrics, for load balancers, Kubernetes and Prometheus. They need no token, so they reveal nothing about leases. */
import Router from '@koa/router';
import { formatProblem, type Problem } from '../errors.ts';
import type { Metrics } from './metrics.ts';
import type { Health, Readiness } from './openapi/bodies.ts';
import { EXACT } from './own-paths.ts';

export interface HealthParts {
  readonly metrics: Metrics;
  readonly isDraining: () => boolean;
  /** The mistakes of the configuration that was read last. */
  readonly problems: () => readonly Problem[];
  readonly generation: () => number;
}

export function healthRoutes({ metrics, isDraining, problems, generation }: HealthParts): Router {
  const router = new Router(EXACT);
  router.get('/healthz', (ctx) => {
    ctx.body = { status: 'ok' } satisfies Health;
  });
  router.get('/readyz', (ctx) => {
    const mistakes = problems().map(formatProblem);
    const status = isDraining() ? 'draining' : mistakes.length > 0 ? 'configuration not valid' : 'ready';
    ctx.status = status === 'ready' ? 200 : 503;
    ctx.body = { status, generation: generation(), problems: mistakes } satisfies Readiness;
  });
  router.get('/metrics', async (ctx) => {
    const { text, contentType } = await metrics.exposition();
    ctx.type = contentType;
    ctx.body = text;
  });
  return router;
}
