/** Login with OpenID Connect. */
import type Router from '@koa/router';
import { type Context, HttpError, type Middleware } from 'koa';
import { ConcurrencyLimiter, OverloadedError } from '../../base/concurrency-limiter.ts';
import { withinDeadline } from '../../base/deadline.ts';
import type { Logger } from '../../base/logger.ts';
import { stateOf } from '../request-state.ts';
import { beginLogin, causesOf, type OidcLogins, takeLogin } from '../users/oidc-login.ts';
import { BACKCHANNEL_LOGOUT_PATH, CALLBACK_PATH } from '../users/oidc-options.ts';
import { keyOf, oidcOptionsOf } from '../users/oidc-session.ts';
import { NO_SESSION_NOW, type Sessions } from '../users/sessions/sessions.ts';
import { marksOf } from '../users/sessions/stored-session.ts';
import { withLimiters } from '../users/user-limiter.ts';
import type { LoginAttempts } from '../users/wrong-tokens.ts';
import { showPage } from './error-page.tsx';
import { readForm } from './form.ts';
import { LoggedInPage } from './login.tsx';
import { returnPath, seeOther } from './page.ts';

interface OidcParts {
  readonly sessions: Sessions;
  readonly attempts: LoginAttempts;
  readonly logins: OidcLogins;
  readonly logger: Logger;
  readonly refuse: (ctx: Context, status: number, next: string, message: string) => void;
}

const NOT_NOW = 'not now' as const;
const TOO_LATE = 'The login took too long, or was started in another browser. Please log in again.';
/** In bytes, encoded. */
const LOGOUT_LIMIT = 16_384;
/** Concurrent and queued logouts of the issuer: logouts from strangers must not delay logins. */
const MAX_LOGOUTS = 4;
const MAX_LOGOUTS_WAITING = 64;
const EXPECTED_LOGOUT = 'expected a new logout token of the issuer for this client';

export function addOidcRoutes(
  router: Router,
  { sessions, attempts, logins, logger, refuse }: OidcParts,
): void {
  const logouts = new ConcurrencyLimiter(MAX_LOGOUTS, MAX_LOGOUTS_WAITING);
  const isOff = (ctx: Context) => oidcOptionsOf(ctx).issuer === undefined;
  const unlessOff: Middleware = async (ctx, next) => (isOff(ctx) ? seeOther(ctx, '/') : next());

  router.get('/login/oidc', unlessOff, async (ctx) => {
    const next = returnPath(new URLSearchParams(ctx.querystring).get('next'));
    const begun = beginLogin(ctx, next);
    const answer = await attempts.inLine(ctx, () => logins.begin(ctx, begun));
    if ('message' in answer) {
      return refuse(ctx, 503, next, 'The identity provider does not answer now. Please try again later.');
    }
    seeOther(ctx, answer.url);
  });
  router.get(CALLBACK_PATH, unlessOff, async (ctx) => {
    const begun = await takeLogin(ctx, sessions).catch(() => NOT_NOW);
    if (begun === NOT_NOW) {
      return refuse(ctx, 503, '/', NO_SESSION_NOW);
    }
    if (begun === undefined) {
      return refuse(ctx, 401, '/', TOO_LATE);
    }
    // Not counted as a guess: a state of ours leaves nothing to guess, and behind a proxy all share one
    // address.
    const outcome = await attempts.inLine(ctx, () => logins.finish(ctx, begun));
    if ('message' in outcome) {
      stateOf(ctx).refusedFor = 'expected a user whom the identity provider confirms';
      return refuse(ctx, outcome.status, begun.next, outcome.message);
    }
    const problem = await sessions.open(ctx, outcome.proof);
    if (problem !== undefined) {
      return refuse(ctx, 503, begun.next, problem);
    }
    const next = returnPath(begun.next);
    // Not a redirect: browsers would treat it as cross-site, and not send the session cookie.
    ctx.set('Refresh', `0; url=${next}`);
    showPage(ctx, 200, <LoggedInPage next={next} />);
  });
  // Called by the issuer, not by a browser: only the signed content counts.
  router.post(BACKCHANNEL_LOGOUT_PATH, async (ctx) => {
    const form = await readForm(ctx, LOGOUT_LIMIT);
    const tokens = form?.getAll('logout_token') ?? [];
    const [token = ''] = tokens;
    try {
      if (isOff(ctx) || tokens.length !== 1) {
        throw new Error('expected [oidc], and one logout_token');
      }
      const { deadline: seconds } = stateOf(ctx).generation.options;
      const logout = await withinDeadline(seconds, (deadline) =>
        withLimiters([logouts], deadline, () => logins.issuerLogout(ctx, token)),
      );
      const marks = marksOf(keyOf(oidcOptionsOf(ctx)), logout);
      const ended = await sessions.endMarked(ctx, marks).catch((thrown: unknown) => {
        logout.giveBack();
        throw thrown;
      });
      const facts = { request_id: stateOf(ctx).requestId, sessions: ended };
      logger.info(facts, 'the identity provider has logged a user out');
      ctx.body = '';
    } catch (thrown) {
      if (thrown instanceof OverloadedError || (thrown instanceof HttpError && thrown.status === 503)) {
        throw thrown;
      }
      stateOf(ctx).refusedFor = `a logout token was refused: ${whyRefused(thrown)}`;
      ctx.status = 400;
      ctx.body = { error: 'invalid_request', error_description: EXPECTED_LOGOUT };
    }
  });
}

/** Omits texts from strangers: messages of signature errors may repeat parts of the token. */
function whyRefused(thrown: unknown): string {
  return thrown instanceof Error && 'code' in thrown ? String(thrown.code) : causesOf(thrown);
}
