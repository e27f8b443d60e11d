/** Login with OpenID Connect: redirect to the issuer, callback, and later renewals. */

import type { Context } from 'koa';
import { z } from 'zod';
import { inTime, withinDeadline } from '../../base/deadline.ts';
import { errorText } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { readTextFile } from '../../config/read-file.ts';
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
import { isSecure, readCookie, type Sessions, writeCookie } from './sessions/sessions.ts';
import { randomText, type StoredProof, seal, sealingKey, unseal } from './sessions/stored-session.ts';

/** The proof for a new session, or a message for the caller. */
type OidcOutcome = { readonly proof: StoredProof } | { readonly status: 401 | 403; readonly message: string };

export class OidcLogins {
  readonly #logger: Logger;
  /** By refresh token, which may be single-use: after a clock is set forward, two requests use one. */
  readonly #asked = new Map<string, Promise<Renewal>>();
  #client:
    | { readonly generation: number; readonly key: string; readonly client: Promise<OidcClient> }
    | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** The URL to redirect to; a message if the issuer does not answer. */
  begin(ctx: Context, begun: PreSession): Promise<{ readonly url: string } | { readonly message: string }> {
    return this.#within(ctx, async (client, redirectUrl) => ({
      url: await client.authorizationUrl(begun, redirectUrl),
    }));
  }

  /** The user of the callback. Anything that does not match is rejected. */
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

  /** The URL of the logout at the issuer; `undefined` = none. */
  async logoutUrl(ctx: Context): Promise<string | undefined> {
    const answer = await this.#within(ctx, async (client, redirectUrl) => ({
      url: await client.logoutUrl(new URL('/', redirectUrl).href),
    }));
    return 'url' in answer ? answer.url : undefined;
  }

  /** The content of a logout token. Rejects if it is invalid, or if it cannot be verified now. */
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
      const facts = { request_id: stateOf(ctx).requestId, error: causesOf(thrown) };
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
      // The error may contain text of the issuer, but no code, token or secret.
      const facts = { request_id: stateOf(ctx).requestId, error: causesOf(thrown) };
      this.#logger.warn(facts, 'a login with OpenID Connect failed');
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
        this.#clientFor(ctx, options).then((client) => work(client, redirectUrlOf(ctx, options))),
        deadline,
      ),
    );
  }

  #clientFor(ctx: Context, options: OidcOptions): Promise<OidcClient> {
    const { number: generation } = stateOf(ctx).generation;
    const before = this.#client;
    if (before?.generation === generation) {
      return before.client;
    }
    const { cafile } = options;
    // The content of `cafile` may have changed alone.
    const key = keyOf({ ...options, cafile: cafile && readTextFile(cafile) });
    const isSame = before?.key === key;
    if (!isSame) {
      before?.client.then((client) => client.close()).catch(() => undefined);
    }
    const client = isSame
      ? before.client
      : import('./oidc-client.ts').then(({ OidcClient: Client }) => new Client(options));
    this.#client = { generation, key, client };
    return client;
  }
}

/** The issuer redirects only to registered URLs, so a forged Host has no effect. */
function redirectUrlOf(ctx: Context, { redirect_url }: OidcOptions): string {
  return redirect_url ?? `${isSecure(ctx) ? 'https' : 'http'}://${ctx.host}${CALLBACK_PATH}`;
}

const MAX_CAUSES = 3;

export function causesOf(thrown: unknown): string {
  const texts = [errorText(thrown).slice(0, 300)];
  // A cause that is not an error is the query of the callback, with its code.
  for (let one = thrown; one instanceof Error && one.cause instanceof Error && texts.length < MAX_CAUSES; ) {
    one = one.cause;
    texts.push(errorText(one).slice(0, 300));
  }
  return texts.join(': ');
}

const COOKIE = 'blazar-enforcement-login';
const LIFETIME_MS = 600_000;
/** Maximum difference of the clocks of two replicas. */
const CLOCK_TOLERANCE_MS = 60_000;

const preSession = z.object({
  state: z.string(),
  nonce: z.string(),
  /** Of PKCE. */
  verifier: z.string(),
  /** The path after the login. */
  next: z.string(),
  /** In milliseconds of the epoch. */
  since: z.number(),
});

type PreSession = z.infer<typeof preSession>;

/** Begins a login. Only the browser stores it, so that strangers cannot fill a store. */
export function beginLogin(ctx: Context, next: string): PreSession {
  const [state, nonce, verifier] = [randomText(), randomText(), randomText()] as const;
  const begun = { state, nonce, verifier, next, since: Date.now() };
  writeCookie(ctx, COOKIE, seal(begun, loginKey(ctx)), SETTINGS);
  return begun;
}

/**
 * The login of a browser after its callback, once, at any replica; `undefined` = none, or too old. Throws an
 * HTTP error 503 if the store cannot be reached.
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

/** The same at every replica: derived from the configuration, which includes the client secret. */
function loginKey(ctx: Context): Buffer {
  return sealingKey(keyOf(oidcOptionsOf(ctx)), 'login');
}

/** `lax`: must be sent when the browser returns from another site. */
const SETTINGS = { maxAge: LIFETIME_MS, sameSite: 'lax' } as const;
