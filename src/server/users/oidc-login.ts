/** Logging in with OpenID Connect: out to the issuer, and back with its word; later on, its word again. */

import type { Context } from 'koa';
import { z } from 'zod';
import { inTime, withinDeadline } from '../../base/deadline.ts';
import { errorText } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { stateOf } from '../request-state.ts';
import type { OidcClient } from './oidc-client.ts';
import { CALLBACK_PATH, type OidcOptions } from './oidc-options.ts';
import {
  type IssuerLogout,
  keyOf,
  oidcCaller,
  oidcOptionsOf,
  oidcSession,
  type Renew,
  type Renewal,
} from './oidc-session.ts';
import { randomText, seal, sealingKey, unseal } from './sessions/sealed.ts';
import { isSecure, readCookie, type Sessions, writeCookie } from './sessions/sessions.ts';
import type { StoredProof } from './sessions/stored-session.ts';

/** A refusal is a sentence for the caller. */
type OidcOutcome = { readonly proof: StoredProof } | { readonly status: 401 | 403; readonly message: string };

export class OidcLogins {
  readonly #logger: Logger;
  /** By refresh token, which may count only once: when a clock is set forward, two requests ask with the same one. */
  readonly #asked = new Map<string, Promise<Renewal>>();
  #client: { readonly key: string; readonly client: Promise<OidcClient> } | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Where the browser goes; a sentence if the issuer does not answer. */
  begin(ctx: Context, begun: PreSession): Promise<{ readonly url: string } | { readonly message: string }> {
    return this.#within(ctx, async (client, redirectUrl) => ({
      url: await client.authorizationUrl(begun, redirectUrl),
    }));
  }

  /** Whom the issuer has sent back. Whatever does not fit lets nobody in. */
  finish(ctx: Context, begun: PreSession): Promise<OidcOutcome> {
    const options = oidcOptionsOf(ctx);
    return this.#within(ctx, async (client, redirectUrl): Promise<OidcOutcome> => {
      const confirmed = await client.claims(ctx.querystring, begun, redirectUrl);
      const caller = oidcCaller(confirmed.claims, options);
      return caller === undefined
        ? { status: 403, message: 'Your account has neither a role nor a project here.' }
        : { proof: oidcSession(caller, confirmed, options) };
    });
  }

  /** Where somebody logs out at the issuer, too; `undefined` = nowhere. */
  async logoutUrl(ctx: Context): Promise<string | undefined> {
    const answer = await this.#within(ctx, async (client, redirectUrl) => ({
      url: await client.logoutUrl(new URL('/', redirectUrl).href),
    }));
    return 'url' in answer ? answer.url : undefined;
  }

  /** What a logout token of the issuer says. Rejects if it is not one, or if nobody can tell now. */
  issuerLogout(ctx: Context, token: string): Promise<IssuerLogout> {
    return this.#ask(ctx, (client) => client.issuerLogout(token));
  }

  readonly renew: Renew = (ctx, refreshToken) => {
    const asked =
      this.#asked.get(refreshToken) ??
      this.#renewed(ctx, refreshToken).finally(() => this.#asked.delete(refreshToken));
    this.#asked.set(refreshToken, asked);
    return asked;
  };

  async #renewed(ctx: Context, refreshToken: string): Promise<Renewal> {
    try {
      return await this.#ask(ctx, (client) => client.renewed(refreshToken));
    } catch (thrown) {
      const { requestId } = stateOf(ctx);
      const facts = { request_id: requestId, error: causesOf(thrown) };
      this.#logger.warn(facts, 'the identity provider could not be asked whether a session may go on');
      return 'away';
    }
  }

  async #within<Result>(
    ctx: Context,
    work: (client: OidcClient, redirectUrl: string) => Promise<Result>,
  ): Promise<Result | { status: 401; message: string }> {
    try {
      return await this.#ask(ctx, work);
    } catch (thrown) {
      // The text of an error may hold what the issuer has written, but no code, token or secret.
      this.#logger.warn(
        { request_id: stateOf(ctx).requestId, error: causesOf(thrown) },
        'a login with OpenID Connect failed',
      );
      const message = 'The identity provider did not confirm who you are. Please try again.';
      return { status: 401, message };
    }
  }

  #ask<Result>(
    ctx: Context,
    work: (client: OidcClient, redirectUrl: string) => Promise<Result>,
  ): Promise<Result> {
    const options = oidcOptionsOf(ctx);
    return withinDeadline(stateOf(ctx).generation.options.deadline, (deadline) =>
      inTime(
        this.#clientFor(options).then((client) => work(client, redirectUrlOf(ctx, options))),
        deadline,
      ),
    );
  }

  #clientFor(options: OidcOptions): Promise<OidcClient> {
    const key = keyOf(options);
    if (this.#client?.key !== key) {
      const before = this.#client?.client;
      before?.then((client) => client.close()).catch(() => undefined);
      const client = import('./oidc-client.ts').then(({ OidcClient: Client }) => new Client(options));
      this.#client = { key, client };
    }
    return this.#client.client;
  }
}

/** The issuer leads back only to addresses that are registered there, so a forged Host leads nowhere. */
function redirectUrlOf(ctx: Context, { redirect_url }: OidcOptions): string {
  return redirect_url ?? `${isSecure(ctx) ? 'https' : 'http'}://${ctx.host}${CALLBACK_PATH}`;
}

const MAX_CAUSES = 3;

export function causesOf(thrown: unknown): string {
  const texts: string[] = [];
  texts.push(errorText(thrown).slice(0, 300));
  // A cause that is no error is the query of the callback, with its code.
  for (let one = thrown; one instanceof Error && one.cause instanceof Error && texts.length < MAX_CAUSES; ) {
    one = one.cause;
    texts.push(errorText(one).slice(0, 300));
  }
  return texts.join(': ');
}

const COOKIE = 'blazar-enforcement-login';
const LIFETIME_MS = 600_000;
/** How far the clocks of two replicas may differ. */
const CLOCK_TOLERANCE_MS = 60_000;

const preSession = z.object({
  state: z.string(),
  nonce: z.string(),
  /** Of PKCE. */
  verifier: z.string(),
  /** The path that the login leads to. */
  next: z.string(),
  /** In milliseconds of the epoch. */
  since: z.number(),
});

type PreSession = z.infer<typeof preSession>;

/** Begins a login. It is kept by the browser alone, so that strangers who begin many leave nothing behind. */
export function beginLogin(ctx: Context, next: string): PreSession {
  const [state, nonce, verifier] = [randomText(), randomText(), randomText()] as const;
  const begun = { state, nonce, verifier, next, since: Date.now() };
  writeCookie(ctx, COOKIE, seal(begun, loginKey(ctx)), SETTINGS);
  return begun;
}

/**
 * The login of a browser that comes back, once, to whichever replica; `undefined` = there is none, or it is too old. Throws an HTTP error 503 if
 * nobody can tell whether it has come back before.
 */
export async function takeLogin(ctx: Context, sessions: Sessions): Promise<PreSession | undefined> {
  const { data: begun } = preSession.safeParse(unseal(readCookie(ctx, COOKIE) ?? '', loginKey(ctx)));
  writeCookie(ctx, COOKIE, null, SETTINGS);
  const now = Date.now();
  if (
    begun === undefined ||
    now < begun.since - CLOCK_TOLERANCE_MS ||
    now >= begun.since + LIFETIME_MS ||
    !(await sessions.takeOnce(ctx, begun.state, LIFETIME_MS + 2 * CLOCK_TOLERANCE_MS))
  ) {
    return undefined;
  }
  return begun;
}

/** The same at every replica: they have the same configuration, of which the client secret is a part. */
function loginKey(ctx: Context): Buffer {
  return sealingKey(keyOf(oidcOptionsOf(ctx)), 'login');
}

/** It must come with the browser back from another site. */
const SETTINGS = { maxAge: LIFETIME_MS, sameSite: 'lax' } as const;
