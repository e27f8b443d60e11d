/** Login by token, by password of a Keystone user or with OpenID Connect; switching the project; logout. */
import Router from '@koa/router';
import { type Context, HttpError, type Middleware } from 'koa';
import { ConcurrencyLimiter, OverloadedError } from '../../base/concurrency-limiter.ts';
import { withinDeadline } from '../../base/deadline.ts';
import type { Logger } from '../../base/logger.ts';
import { EXACT } from '../own-paths.ts';
import { stateOf } from '../request-state.ts';
import type { Caller } from '../users/caller.ts';
import type { FixedTokens } from '../users/fixed-tokens.ts';
import {
  type LoginOutcome,
  loginByPassword,
  loginByToken,
  NO_TOKEN,
  refused,
  scopesOf,
  switchScope,
} from '../users/keystone-login.ts';
import { beginLogin, causesOf, type OidcLogins, takeLogin } from '../users/oidc-login.ts';
import { BACKCHANNEL_LOGOUT_PATH, CALLBACK_PATH } from '../users/oidc-options.ts';
import { keyOf, oidcOptionsOf } from '../users/oidc-session.ts';
import { isCsrf, NO_SESSION_NOW, type Sessions } from '../users/sessions/sessions.ts';
import { marksOf, type StoredKeystone, type StoredProof } from '../users/sessions/stored-session.ts';
import type { UserAuthenticator } from '../users/user-authenticator.ts';
import { withLimiters } from '../users/user-limiter.ts';
import { LoginAttempts, type WrongTokens } from '../users/wrong-tokens.ts';
import { showPage } from './error-page.tsx';
import { readForm } from './form.ts';
import { PAGE_HEADERS } from './layout.tsx';
import {
  LoggedInPage,
  LoggedOutPage,
  LoginPage,
  type LoginWays,
  type Refused,
  SwitchPage,
} from './login.tsx';
import { returnPath, seeOther } from './page.ts';

interface LoginParts {
  readonly users: UserAuthenticator;
  readonly tokens: FixedTokens;
  readonly wrong: WrongTokens;
  readonly sessions: Sessions;
  readonly logins: OidcLogins;
  readonly logger: Logger;
}

/** Responds with 401 and the login page, which leads back to the request. `error`: a message for the user. */
export type ShowLogin = (ctx: Context, error?: string) => void;

/** In bytes, encoded: a Keystone token, or a password, with a path. */
const FORM_LIMIT = 16_384;
/** Keystone's limit for names is 255 characters. */
const MAX_FIELD = 255;
/** The system scope, instead of a project. Project ids have no colon. */
const SYSTEM = 'system:all';

export function loginRoutes(parts: LoginParts): { router: Router; showLogin: ShowLogin } {
  const { users, tokens, wrong, sessions, logins, logger } = parts;
  const attempts = new LoginAttempts(sessions);

  const show = (ctx: Context, status: number, next: string, refused?: Refused) =>
    showPage(ctx, status, <LoginPage ways={waysOf(ctx, tokens)} next={next} refused={refused} />);
  const enter = async (ctx: Context, proof: StoredProof, next: string, way: Refused['way']) => {
    const message = await sessions.open(ctx, proof);
    if (message === undefined) {
      seeOther(ctx, next);
    } else {
      show(ctx, 503, next, { way, message });
    }
  };
  const wait = (ctx: Context, seconds: number, next: string, refused: Omit<Refused, 'message'>) => {
    ctx.set('Retry-After', String(seconds));
    const what = refused.way === 'token' ? 'wrong tokens from this address' : 'failed logins';
    const message = `There were too many ${what}. Please try again in ${seconds} seconds.`;
    show(ctx, 429, next, { ...refused, message });
  };
  const tokenLogin = async (ctx: Context, token: string): Promise<LoginOutcome> => {
    const fixed = tokens.ownerOf(token);
    if (fixed !== undefined) {
      return { proof: { kind: 'token', identity: fixed.caller.identity, key: fixed.key } };
    }
    return tokens.isOfUsers(token) ? refused(NO_TOKEN, { isWrong: true }) : loginByToken(ctx, token, logger);
  };
  /** The session of the request, if it can switch to another project. */
  const switchable = async (ctx: Context) => {
    const caller = await sessions.callerOf(ctx);
    const proof = await sessions.proofOf(ctx);
    return caller !== undefined && proof?.kind === 'keystone' && proof.unscoped !== undefined
      ? { caller, proof }
      : undefined;
  };
  const showScopes = async (
    ctx: Context,
    { caller, proof }: { readonly caller: Caller; readonly proof: StoredKeystone },
    status = 200,
    error?: string,
  ) => {
    const scopes = await attempts.inLine(ctx, () => scopesOf(ctx, proof, logger));
    const props = { csrf: sessions.csrfOf(ctx), current: caller.memberships[0]?.projectId };
    if ('message' in scopes) {
      const page = <SwitchPage {...props} projects={[]} error={error ?? scopes.message} />;
      showPage(ctx, scopes.status, page);
    } else {
      const system = scopes.hasSystem ? SYSTEM : undefined;
      showPage(
        ctx,
        status,
        <SwitchPage {...props} projects={scopes.projects} system={system} error={error} />,
      );
    }
  };

  const router = new Router(EXACT);
  router.use((ctx, next) => {
    ctx.set(PAGE_HEADERS);
    return next();
  });
  router.post('/login', async (ctx) => {
    const form = await readForm(ctx, FORM_LIMIT);
    const next = returnPath(form.get('next'));
    if (users.anonymous !== undefined) {
      return seeOther(ctx, next);
    }
    const outcome = await tokenLogin(ctx, form.get('token') ?? '');
    if ('proof' in outcome) {
      return enter(ctx, outcome.proof, next, 'token');
    }
    stateOf(ctx).refusedFor = 'expected a valid token to log in to the console';
    const seconds = outcome.isWrong ? wrong.count(ctx.ip) : 0;
    if (seconds > 0) {
      return wait(ctx, seconds, next, { way: 'token' });
    }
    show(ctx, outcome.status, next, { way: 'token', message: outcome.message });
  });
  router.post('/login/keystone', async (ctx) => {
    const form = await readForm(ctx, FORM_LIMIT);
    const field = (name: string) => form.get(name)?.slice(0, MAX_FIELD) ?? '';
    const username = field('username');
    const domain = field('domain');
    const project = field('project');
    const next = returnPath(form.get('next'));
    const shown = { way: 'password', username, domain, project } as const;
    const password = form.get('password') ?? '';
    if (!waysOf(ctx, tokens).password || username === '' || password === '') {
      const message = 'Expected a user name and a password of a user of Keystone.';
      return show(ctx, 400, next, { ...shown, message });
    }
    const asked = { name: username, domain: domain === '' ? 'Default' : domain, password, project };
    const account = JSON.stringify([asked.domain, username]);
    const outcome = await attempts.byPassword(ctx, account, () => loginByPassword(ctx, asked, logger));
    if ('seconds' in outcome) {
      return wait(ctx, outcome.seconds, next, shown);
    }
    if ('proof' in outcome) {
      return enter(ctx, outcome.proof, next, 'password');
    }
    stateOf(ctx).refusedFor = 'expected a user of Keystone with a role to log in to the console';
    show(ctx, outcome.status, next, { ...shown, message: outcome.message });
  });
  router.get('/login/project', async (ctx) => {
    const session = await switchable(ctx);
    if (session === undefined) {
      return seeOther(ctx, '/');
    }
    await showScopes(ctx, session);
  });
  router.post('/login/project', async (ctx) => {
    const form = await readForm(ctx, FORM_LIMIT);
    const session = await switchable(ctx);
    if (session === undefined) {
      return show(ctx, 401, '/login/project');
    }
    if (!isCsrf(sessions.csrfOf(ctx), form.get('csrf'))) {
      ctx.throw(403, 'expected a form of this session');
    }
    const project = form.get('project') ?? '';
    const scope = project === SYSTEM ? 'system' : { projectId: project };
    const outcome = await attempts.inLine(ctx, () => switchScope(ctx, session.proof, scope, logger));
    if ('proof' in outcome) {
      await enter(ctx, outcome.proof, '/', 'password');
    } else {
      await showScopes(ctx, session, outcome.status, outcome.message);
    }
  });
  addOidcRoutes(router, {
    sessions,
    attempts,
    logins,
    logger,
    refuse: (ctx, status, next, message) => show(ctx, status, next, { way: 'provider', message }),
  });
  // After a wrong token these paths are in the address bar, so a browser may request them.
  for (const path of ['/login', '/login/keystone']) {
    router.get(path, (ctx) => seeOther(ctx, '/'));
  }
  // Without the CSRF token: another site could only end the session, and its forms are rejected anyway.
  router.post('/logout', async (ctx) => {
    await readForm(ctx, FORM_LIMIT);
    const url = (await sessions.proofOf(ctx))?.kind === 'oidc' ? await logins.logoutUrl(ctx) : undefined;
    await sessions.end(ctx);
    if (url === undefined) {
      seeOther(ctx, '/');
    } else {
      showPage(ctx, 200, <LoggedOutPage title={oidcOptionsOf(ctx).title} url={url} />);
    }
  });
  return {
    router,
    showLogin: (ctx, error) => {
      const next = returnPath(ctx.method === 'GET' ? ctx.url : ctx.path);
      show(ctx, 401, next, error === undefined ? undefined : { way: undefined, message: error });
    },
  };
}

function waysOf(ctx: Context, tokens: FixedTokens): LoginWays {
  const { keystone } = stateOf(ctx).generation;
  const { issuer, title } = oidcOptionsOf(ctx);
  return {
    token: !tokens.isEmpty || keystone !== undefined,
    password: keystone !== undefined,
    provider: issuer === undefined ? undefined : title,
  };
}

interface OidcParts {
  readonly sessions: Sessions;
  readonly attempts: LoginAttempts;
  readonly logins: OidcLogins;
  readonly logger: Logger;
  readonly refuse: (ctx: Context, status: number, next: string, message: string) => void;
}

const NOT_NOW = 'not now' as const;
const TOO_LATE = 'The login took too long, or was started in another browser. Please log in again.';
/** Concurrent and queued logouts of the issuer: logouts from strangers must not delay logins. */
const MAX_LOGOUTS = 4;
const MAX_LOGOUTS_WAITING = 64;
const EXPECTED_LOGOUT = 'expected a new logout token of the issuer for this client';

function addOidcRoutes(router: Router, { sessions, attempts, logins, logger, refuse }: OidcParts): void {
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
    const form = await readForm(ctx, FORM_LIMIT);
    const tokens = form.getAll('logout_token');
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
