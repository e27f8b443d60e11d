/** Logging in with a token of the service, and out. */
import Router from '@koa/router';
import type { Context } from 'koa';
import { renderToString } from 'preact-render-to-string';
import type { AcceptedTokens } from '../credentials.ts';
import { EXACT } from '../own-paths.ts';
import { stateOf } from '../request-state.ts';
import { PAGE_HEADERS } from './document.tsx';
import { readForm } from './form.ts';
import { LoginPage } from './login.tsx';
import { LoginLimit } from './login-limit.ts';
import { returnPath } from './return-path.ts';
import type { Sessions } from './sessions.ts';

interface LoginParts {
  readonly tokens: AcceptedTokens;
  readonly sessions: Sessions;
}

/** Answers 401 with the login page, which leads back to the page of the request. `error`: what was wrong with the request, for people. */
export type ShowLogin = (ctx: Context, error?: string) => void;

/** In bytes: a token with its name, and a path. */
const FORM_LIMIT = 4096;

export function loginRoutes({ tokens, sessions }: LoginParts): { router: Router; showLogin: ShowLogin } {
  const limit = new LoginLimit();
  const show = (ctx: Context, status: number, next: string, error?: string) => {
    ctx.set(PAGE_HEADERS);
    ctx.type = 'text/html; charset=utf-8';
    const page = <LoginPage hasTokens={!tokens.isEmpty} next={next} error={error} />;
    ctx.body = `<!DOCTYPE html>${renderToString(page)}`;
    ctx.status = status;
  };

  const router = new Router(EXACT);
  router.use((ctx, next) => {
    ctx.set(PAGE_HEADERS);
    return next();
  });
  router.post('/login', async (ctx) => {
    const form = await readForm(ctx, FORM_LIMIT);
    if (form === undefined) {
      show(ctx, 413, '/', `Expected a form of at most ${FORM_LIMIT} bytes.`);
      return;
    }
    const next = returnPath(form.get('next'));
    const wait = limit.wait(ctx.ip);
    if (tokens.required && wait > 0) {
      ctx.set('Retry-After', String(wait));
      show(
        ctx,
        429,
        next,
        `There were too many wrong tokens from this address. Please try again in ${wait} seconds.`,
      );
    } else if (!tokens.required || sessions.open(ctx, form.get('token') ?? '')) {
      seeOther(ctx, next);
    } else {
      limit.count(ctx.ip);
      stateOf(ctx).refusedFor = 'expected a valid token to log in to the page';
      show(ctx, 401, next, 'This token is not accepted.');
    }
  });
  // After a wrong token, the address bar shows /login: a browser may request it.
  router.get('/login', (ctx) => seeOther(ctx, '/'));
  router.post('/logout', async (ctx) => {
    await readForm(ctx, FORM_LIMIT);
    sessions.end(ctx);
    seeOther(ctx, '/');
  });
  return {
    router,
    showLogin: (ctx, error) =>
      show(ctx, 401, ctx.method === 'GET' ? returnPath(ctx.url) : returnPath(ctx.path), error),
  };
}

function seeOther(ctx: Context, path: string): void {
  ctx.redirect(path);
  ctx.status = 303;
}
