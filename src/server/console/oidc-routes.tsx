/** Logging in with OpenID Connect. */
import type Router from '@koa/router';
import type { Context } from 'koa';
import type { VNode } from 'preact';
import type { LoginAttempts } from '../people/login-attempts.ts';
import { type OidcLogins, oidcOptionsOf } from '../people/oidc-login.ts';
import { CALLBACK_PATH } from '../people/oidc-options.ts';
import { PreSessions } from '../people/pre-session.ts';
import { type Sessions, TOO_MANY_SESSIONS } from '../people/sessions.ts';
import { stateOf } from '../request-state.ts';
import { Document } from './document.tsx';
import { returnPath } from './return-path.ts';

interface OidcParts {
  readonly sessions: Sessions;
  readonly attempts: LoginAttempts;
  readonly logins: OidcLogins;
  readonly refuse: (ctx: Context, status: number, next: string, message: string) => void;
  readonly render: (ctx: Context, status: number, page: VNode) => void;
}

export function addOidcRoutes(
  router: Router,
  { sessions, attempts, logins, refuse, render }: OidcParts,
): void {
  const preSessions = new PreSessions();
  const isOff = (ctx: Context) => oidcOptionsOf(ctx).issuer === undefined;
  const home = (ctx: Context) => {
    ctx.redirect('/');
    ctx.status = 303;
  };

  router.get('/login/oidc', async (ctx) => {
    if (isOff(ctx)) {
      home(ctx);
      return;
    }
    const next = returnPath(new URLSearchParams(ctx.querystring).get('next'));
    const begun = preSessions.begin(ctx, next);
    const answer = await attempts.inLine(ctx, () => logins.begin(ctx, begun));
    if ('message' in answer) {
      refuse(ctx, 503, next, 'The identity provider does not answer now. Please try again later.');
      return;
    }
    ctx.redirect(answer.url);
    ctx.status = 303;
  });
  router.get(CALLBACK_PATH, async (ctx) => {
    if (isOff(ctx)) {
      home(ctx);
      return;
    }
    const begun = preSessions.take(ctx);
    if (begun === undefined) {
      refuse(ctx, 401, '/', 'The login took too long, or was begun elsewhere. Please log in again.');
      return;
    }
    // Not counted as a guess: there is nothing to guess behind a state of ours, and behind a proxy all share one address.
    const outcome = await attempts.inLine(ctx, () => logins.finish(ctx, begun));
    if ('message' in outcome) {
      stateOf(ctx).refusedFor = 'expected somebody whom the identity provider confirms';
      refuse(ctx, outcome.status, begun.next, outcome.message);
      return;
    }
    if (!sessions.open(ctx, outcome.proof)) {
      refuse(ctx, 503, begun.next, TOO_MANY_SESSIONS);
      return;
    }
    // Not a redirect: browsers would take it for one of the other site, and not send the cookie of the session.
    ctx.set('Refresh', `0; url=${begun.next}`);
    render(ctx, 200, <LoggedInPage next={begun.next} />);
  });
}

function LoggedInPage({ next }: { readonly next: string }) {
  return (
    <Document title="Logged in">
      <main class="login">
        <h1>Policy service</h1>
        <p>
          You are logged in. <a href={next}>Go on</a>
        </p>
      </main>
    </Document>
  );
}

/** After the logout: the session at the issuer goes on until somebody ends it there. */
export function LoggedOutPage({ title, url }: { readonly title: string; readonly url: string }) {
  return (
    <Document title="Logged out">
      <main class="login">
        <h1>Policy service</h1>
        <p>You are logged out here, and still logged in at {title}.</p>
        <p>
          <a href={url}>Log out there, too</a>
        </p>
        <p>
          <a href="/">Log in again</a>
        </p>
      </main>
    </Document>
  );
}
