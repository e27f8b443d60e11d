/** Logging in with OpenID Connect: out to the issuer, and back with its word; later on, its word again. */

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { Context } from 'koa';
import { LRUCache } from 'lru-cache';
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
  OidcProof,
  oidcCaller,
  oidcOptionsOf,
  type Renewal,
} from './oidc-proof.ts';
import { isSecure, readCookie, writeCookie } from './sessions.ts';

/** A refusal is a sentence for the caller. */
type OidcOutcome = { readonly proof: OidcProof } | { readonly status: 401 | 403; readonly message: string };

export class OidcLogins {
  readonly #logger: Logger;
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
        : { proof: new OidcProof(caller, confirmed, options, (at, token) => this.#renew(at, token)) };
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

  async #renew(ctx: Context, refreshToken: string): Promise<Renewal> {
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
/** Of logins that have come back: none comes back twice. */
const MAX_USED = 10_000;
const IV_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = 'aes-256-gcm';

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

export type PreSession = z.infer<typeof preSession>;

export class PreSessions {
  /** Of this process alone, as the sessions are. */
  readonly #key = randomBytes(32);
  readonly #used = new LRUCache<string, true>({ max: MAX_USED });

  begin(ctx: Context, next: string): PreSession {
    const [state, nonce, verifier] = [random(), random(), random()] as const;
    const begun = { state, nonce, verifier, next, since: Date.now() };
    writeCookie(ctx, COOKIE, this.#seal(JSON.stringify(begun)), SETTINGS);
    return begun;
  }

  /** The one of a browser that comes back, once; `undefined` = there is none, or it is too old. */
  take(ctx: Context): PreSession | undefined {
    const begun = this.#open(readCookie(ctx, COOKIE) ?? '');
    writeCookie(ctx, COOKIE, null, SETTINGS);
    const now = Date.now();
    if (
      begun === undefined ||
      now < begun.since ||
      now >= begun.since + LIFETIME_MS ||
      this.#used.has(begun.state)
    ) {
      return undefined;
    }
    this.#used.set(begun.state, true);
    return begun;
  }

  #seal(text: string): string {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key, iv);
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url');
  }

  #open(sealed: string): PreSession | undefined {
    const bytes = Buffer.from(sealed, 'base64url');
    if (bytes.length <= IV_BYTES + TAG_BYTES) {
      return undefined;
    }
    try {
      const decipher = createDecipheriv(CIPHER, this.#key, bytes.subarray(0, IV_BYTES), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
      const opened = [decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()];
      return preSession.parse(JSON.parse(Buffer.concat(opened).toString()));
    } catch {
      return undefined;
    }
  }
}

/** It must come with the browser back from another site. */
const SETTINGS = { maxAge: LIFETIME_MS, sameSite: 'lax' } as const;

function random(): string {
  return randomBytes(32).toString('base64url');
}
