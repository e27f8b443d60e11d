import type { IncomingMessage, RequestListener } from 'node:http';
import type Router from '@koa/router';
import Koa, { type Context, type Middleware } from 'koa';
import { errorText } from '../base/errors.ts';
import type { LimitedLogger } from '../base/limited-logger.ts';
import { answerProblem } from './api/route.ts';
import { apiRoutes } from './api/router.ts';
import { API_ROUTES } from './api/routes.ts';
import type { Authenticators } from './authentication/authenticators.ts';
import { calendarRoutes } from './calendar/feed.ts';
import type { Generation } from './configuration/generation.ts';
import { assetRoutes } from './console/assets.ts';
import { errorPages } from './console/error-page.tsx';
import { eventRoutes } from './console/live/events.ts';
import { loginRoutes } from './console/login-routes.tsx';
import type { ConsolePage } from './console/page.ts';
import { CONSOLE_PAGES } from './console/pages.ts';
import { type ConsoleParts, consoleRoutes } from './console/router.tsx';
import type { KubernetesReports } from './followers/kubernetes-sources.ts';
import { healthRoutes } from './health.ts';
import { pathOf } from './listener/connections.ts';
import type { Metrics } from './metrics/metrics.ts';
import { openApiRoutes } from './openapi/document.ts';
import { kubernetesPathOf, OWN_PATHS } from './own-paths.ts';
import { answerBlazar } from './protocols/blazar.ts';
import { FailedReviews } from './protocols/failed-reviews.ts';
import { kubernetesEndpoints } from './protocols/kubernetes.ts';
import { servesSkypilot, skypilotEndpoint } from './protocols/skypilot.ts';
import { beginRequest, endRequest, errorAnswer, type RequestParts, stateOf } from './request-state.ts';
import { tracedRequests } from './traced-requests.ts';
import { OidcLogins } from './users/oidc-login.ts';
import { Sessions } from './users/sessions/sessions.ts';
import { budgetReaders, createUserAuthenticator, sessionOwners } from './users/user-authenticator.ts';
import { UserLimiter } from './users/user-limiter.ts';

export interface AppParts extends Omit<ConsoleParts, 'users' | 'showLogin' | 'line'> {
  readonly authenticators: Authenticators;
  /** Default: all. */
  readonly pages?: readonly ConsolePage[];
  /** Fires when the service begins to stop: endless streams must end then. Default: never. */
  readonly stopping?: AbortSignal;
  /** Default: no reports to a cluster. */
  readonly reports?: KubernetesReports;
  /** Whether metrics are served by `createAdminApp` instead. Default: false. */
  readonly hasAdminPort?: boolean;
  /** Limited: clients cause its lines. */
  readonly logger: LimitedLogger;
}

/** The policy service without its socket: one file per protocol, one place that catches errors. */
export function createApp(parts: AppParts): RequestListener {
  const { generations, authenticators, recorder, metrics, reports, logger } = parts;
  const { pages = CONSOLE_PAGES, hasAdminPort = false } = parts;
  const { users: tokens, wrong } = authenticators;
  const paths = new Set(OWN_PATHS);
  const app = koaApp(parts, paths, [errorPages]);
  const health = healthOf(parts, hasAdminPort ? undefined : metrics);
  const failures = new FailedReviews(logger, () => metrics.overloadRefusals.inc());
  const logins = new OidcLogins(logger);
  const sessions = new Sessions({
    ownerOf: sessionOwners(tokens, logins.renew),
    logger,
  });
  const users = createUserAuthenticator({
    tokens,
    sessions,
    wrong,
    configuration: () => generations.current.configuration,
  });
  const login = loginRoutes({ users, tokens, wrong, sessions, logins, logger });
  const { showLogin } = login;
  const line = new UserLimiter();
  const api = apiRoutes(API_ROUTES, { users, line });
  const console = consoleRoutes(pages, { ...parts, users, showLogin, line });
  const events = eventRoutes({ users, current: () => generations.current, recent: recorder.recent });
  parts.stopping?.addEventListener('abort', events.close, { once: true });
  const routers: Router[] = [
    health,
    openApiRoutes(),
    calendarRoutes(line),
    api,
    login.router,
    console,
    events.router,
    assetRoutes(),
  ];
  const reviews = { recorder, failures, reports, metrics: metrics.kubernetes };
  app.use(kubernetesEndpoints(authenticators.kubernetes, reviews));
  app.use(skypilotEndpoint(authenticators.skypilot, recorder, metrics));
  for (const router of routers) {
    app.use(router.routes()).use(router.allowedMethods());
  }
  const blazar = { ...parts, authenticator: authenticators.blazar };
  return tracedRequests(answerBlazar(blazar, app.callback()), paths, clientOf(parts));
}

/** Health and metrics, for `[service] admin_port`. */
export function createAdminApp(parts: AppParts): RequestListener {
  const paths = new Set(['/healthz', '/readyz', '/metrics']);
  const health = healthOf(parts, parts.metrics);
  const app = koaApp(parts, paths).use(health.routes()).use(health.allowedMethods());
  return tracedRequests(app.callback(), paths, clientOf(parts));
}

function clientOf({ generations }: AppParts): (request: IncomingMessage) => string | undefined {
  return (request) => generations.current.clientOf(request);
}

/** `paths`: paths that metrics and logs name; `around`: middleware outside all others. */
function koaApp(parts: AppParts, paths: ReadonlySet<string>, around: readonly Middleware[] = []): Koa {
  const app = new Koa();
  app.on('error', (thrown: unknown) =>
    parts.logger.warn({ error: errorText(thrown) }, 'answer could not be sent'),
  );
  for (const middleware of [...around, aroundRequests(parts, paths)]) {
    app.use(middleware);
  }
  return app;
}

function healthOf(
  { generations, authenticators, isDraining }: AppParts,
  metrics: Metrics | undefined,
): Router {
  const seesBudgets = budgetReaders(authenticators.users, authenticators.wrong);
  return healthRoutes({ generations, isDraining, metrics, seesBudgets });
}

/** `paths`: paths that metrics and logs name. */
export function aroundRequests(parts: RequestParts, paths: ReadonlySet<string>): Middleware {
  return async (ctx, next) => {
    const state = beginRequest(ctx.req, parts);
    ctx.state = state;
    ctx.request.ip = state.address ?? '';
    try {
      await next();
      answerUnknown(ctx);
    } catch (thrown) {
      const answer = errorAnswer(thrown, state, ctx.req, namedPath(ctx, state.generation), parts);
      ctx.status = answer.status;
      ctx.set({ ...answer.headers });
      ctx.body = answer.body;
    } finally {
      state.generation.leave();
    }
    answerProblem(ctx);
    endRequest(state, ctx.req, ctx.status, namedPath(ctx, state.generation), parts);
    send(ctx, state.headers);
  };

  /** The path for metrics and logs. Other paths are omitted: clients choose them, and they may hold a token. */
  function namedPath(ctx: Context, { skypilot, kubernetes }: Generation): string {
    // Not `ctx.path`, which throws if the target is not a URL.
    const path = pathOf(ctx.req);
    const { route } = stateOf(ctx);
    if (route !== undefined) {
      return route;
    }
    if (paths.has(path)) {
      return path;
    }
    if (servesSkypilot(skypilot, path)) {
      return skypilot.options.path;
    }
    return (kubernetes && kubernetesPathOf(path)?.path) ?? 'other';
  }
}

/** Koa sends most responses. Reviews are sent here: setting headers one by one is the largest cost. */
function send(ctx: Context, headers: readonly string[]): void {
  const { json } = stateOf(ctx);
  if (json !== undefined && ctx.writable && ctx.res.getHeaderNames().length === 0) {
    const length = String(Buffer.byteLength(json));
    const all = [...headers, 'Content-Type', 'application/json; charset=utf-8', 'Content-Length', length];
    ctx.respond = false;
    ctx.res.writeHead(200, all).end(json);
    return;
  }
  for (let index = 0; index < headers.length; index += 2) {
    ctx.set(headers[index] ?? '', headers[index + 1] ?? '');
  }
}

function answerUnknown(ctx: Context): void {
  if (ctx.status === 404 && ctx.body === undefined) {
    // Without the path: a mistyped path may hold a token, and clients show errors to their users.
    ctx.throw(
      404,
      'there is nothing at this path; leases are judged at /check-create, /check-update and /on-end',
    );
  }
  if (ctx.status === 405 || ctx.status === 501) {
    const { status } = ctx;
    ctx.body = { message: `${ctx.method} is not allowed here` };
    ctx.status = status;
  }
}
