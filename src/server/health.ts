/** Health and metrics, for load balancers, Kubernetes and Prometheus. They need no token: without one, they reveal nothing about leases. */
import Router from '@koa/router';
import type { Context } from 'koa';
import { formatPlace, type Problem } from '../base/errors.ts';
import type { SourceHealth } from '../kubernetes/cluster/live/contract.ts';
import type { Generation } from './configuration/generation.ts';
import type { Metrics } from './metrics/metrics.ts';
import type { Health, Readiness } from './openapi/bodies.ts';
import { EXACT } from './own-paths.ts';

interface HealthParts {
  /** `problems`: the mistakes of the configuration that was read last. */
  readonly generations: { readonly current: Generation; readonly problems: readonly Problem[] };
  readonly isDraining: () => boolean;
  /** `undefined` = metrics are at another port. */
  readonly metrics: Metrics | undefined;
  /** Whether a request may see single budgets in the metrics. Throws an HTTP error for an invalid token. */
  readonly seesBudgets: (ctx: Context) => boolean;
}

/** The word of /readyz, which the console shows, too. */
export function statusOf(
  { kubernetes }: Generation,
  problems: readonly Problem[],
  isDraining: boolean,
): Readiness['status'] {
  const followed = kubernetes?.cluster?.source.health.state;
  if (isDraining || problems.length > 0) {
    return isDraining ? 'draining' : 'configuration not valid';
  }
  return followed === 'starting' || followed === 'stale' ? 'policies not known' : 'ready';
}

function readinessOf({ generations, isDraining }: HealthParts): Readiness {
  const { current, problems } = generations;
  // Public: the full message may contain part of a value, or of an error of a filter.
  const mistakes = problems.map((problem) => `${formatPlace(problem) || 'configuration: '}not valid`);
  const followed = current.kubernetes?.cluster?.source.health;
  const unknown = followed === undefined ? undefined : unknownPolicies(followed);
  return {
    status: statusOf(current, problems, isDraining()),
    generation: current.number,
    problems: unknown === undefined ? mistakes : [...mistakes, unknown],
    ...(followed !== undefined && { policies: shown(followed) }),
  };
}

export function healthRoutes(parts: HealthParts): Router {
  const router = new Router(EXACT);
  router.get('/healthz', (ctx) => {
    ctx.body = { status: 'ok' } satisfies Health;
  });
  router.get('/readyz', (ctx) => {
    const readiness = readinessOf(parts);
    ctx.status = readiness.status === 'ready' ? 200 : 503;
    ctx.body = readiness;
  });
  const { metrics, seesBudgets } = parts;
  if (metrics !== undefined) {
    router.get('/metrics', async (ctx) => {
      const { text, contentType } = await metrics.exposition({ budgets: seesBudgets(ctx) });
      ctx.type = contentType;
      ctx.body = text;
    });
  }
  return router;
}

/** Why every pod is refused; `undefined` = not for this. Policies that are merely behind are enforced. */
function unknownPolicies({ state, problem, ageSeconds = 0 }: SourceHealth): string | undefined {
  const why = problem === undefined ? '' : `: ${problem}`;
  switch (state) {
    case 'starting':
      return `the scheduling policies of the cluster are not known yet${why}`;
    case 'stale':
      return `the scheduling policies of the cluster are ${Math.floor(ageSeconds)} s old, which is more than cluster_stale_after${why}`;
    default:
      return undefined;
  }
}

function shown({ state, ageSeconds, problem }: SourceHealth): NonNullable<Readiness['policies']> {
  const age_seconds = ageSeconds === undefined ? null : Math.round(ageSeconds * 1000) / 1000;
  return { state, age_seconds, problem: problem ?? null };
}
