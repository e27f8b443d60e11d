import Router from '@koa/router';
import Koa from 'koa';
import type { UsageEnforcement } from '../enforcement.ts';
import type { Logger } from '../logger.ts';
import { requireToken } from './authentication.ts';
import { blazarRoutes } from './blazar.ts';
import { answerErrors } from './errors.ts';

export interface AppParts {
  readonly enforcement: UsageEnforcement;
  readonly tokens: readonly string[];
  /** Seconds for a decision. */
  readonly deadline: number;
  readonly logger: Logger;
}

/** The policy service without its socket: one file per protocol, behind one token check and one place that catches. */
export function createApp({ enforcement, tokens, deadline, logger }: AppParts): Koa {
  const app = new Koa();
  app.on('error', (thrown: unknown) => {
    logger.warn(
      { error: thrown instanceof Error ? thrown.message : String(thrown) },
      'answer could not be sent',
    );
  });

  const open = new Router();
  open.get('/healthz', (ctx) => {
    ctx.body = { status: 'ok' };
  });
  // The token check stands before the routes: a router runs nothing that is added behind them.
  const protocols = new Router().use(requireToken(tokens), blazarRoutes(enforcement, deadline).routes());

  app.use(answerErrors(logger));
  for (const router of [open, protocols]) {
    app.use(router.routes()).use(router.allowedMethods());
  }
  return app;
}
