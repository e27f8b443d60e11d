/**
 * An issuer of OpenID Connect: authorization code with PKCE. `openid-client` checks state, nonce, issuer,
 * audience, times and signatures; this file limits what an issuer may cost.
 */

import type * as Jose from 'jose';
import { LRUCache } from 'lru-cache';
import type * as Oidc from 'openid-client';
import type { Dispatcher } from 'undici';
import { z } from 'zod';
import { wholeOf } from '../../base/growing-buffer.ts';
import { tracedCall } from '../../base/trace-context.ts';
import { readTextFile } from '../../config/read-file.ts';
import { Cached } from '../metrics/cached.ts';
import { isTrusted, type OidcOptions, secretOf } from './oidc-options.ts';
import type { Claims, Confirmed, IssuerLogout, Renewal } from './oidc-session.ts';

/** In bytes. The keys of issuers have a few kilobytes. */
const MAX_ANSWER = 1_048_576;
/** In seconds: maximum difference of clocks. */
const CLOCK_TOLERANCE = 60;
/** How long the metadata of the issuer is cached, and a failure to read it. */
const KEPT_MS = 3_600_000;
const FAILURE_MS = 5000;
/** Asymmetric algorithms: a verifier cannot forge signatures. */
const ASYMMETRIC = /^((RS|PS|ES)\d{3}|EdDSA|Ed25519)$/;

interface BegunLogin {
  readonly state: string;
  readonly nonce: string;
  /** Of PKCE. */
  readonly verifier: string;
}

export class OidcClient {
  readonly #options: OidcOptions;
  readonly #issuer = new Cached(KEPT_MS, () => this.#discover(), undefined, FAILURE_MS);
  #dispatcher: Dispatcher | undefined;
  /** Logout tokens that have come: each counts once. */
  readonly #seen = new LRUCache<string, true>({ max: MAX_SEEN });

  /** Sends no request before it is used. `issuer` and `client_id` must be set. */
  constructor(options: OidcOptions) {
    this.#options = options;
  }

  async authorizationUrl({ state, nonce, verifier }: BegunLogin, redirectUrl: string): Promise<string> {
    const { oidc, config } = await this.#issuer.read();
    return oidc.buildAuthorizationUrl(config, {
      redirect_uri: redirectUrl,
      scope: this.#options.scopes.join(' '),
      state,
      nonce,
      code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }).href;
  }

  /** The claims of the user, from content that the issuer has signed. Throws if anything does not match. */
  async claims(
    query: string,
    { state, nonce, verifier }: BegunLogin,
    redirectUrl: string,
  ): Promise<Confirmed> {
    const { oidc, config } = await this.#issuer.read();
    const current = new URL(redirectUrl);
    current.search = query;
    const tokens = await oidc.authorizationCodeGrant(config, current, {
      expectedState: state,
      expectedNonce: nonce,
      pkceCodeVerifier: verifier,
      idTokenExpected: true,
    });
    const claims = tokens.claims();
    if (claims === undefined) {
      throw new Error('the issuer has sent no ID token');
    }
    return this.#confirmed(tokens, claims);
  }

  /** The current claims. Throws if the issuer cannot be called. */
  async renewed(refreshToken: string): Promise<Renewal> {
    const { oidc, config } = await this.#issuer.read();
    try {
      const tokens = await oidc.refreshTokenGrant(config, refreshToken);
      const claims = tokens.claims();
      return claims === undefined ? 'unknown' : await this.#confirmed(tokens, claims);
    } catch (thrown) {
      if (thrown instanceof oidc.ResponseBodyError && thrown.error === 'invalid_grant') {
        return 'refused';
      }
      throw thrown;
    }
  }

  /** The sessions that a logout token of the issuer ends, once. Throws an `Error` that may be logged. */
  async issuerLogout(token: string): Promise<IssuerLogout> {
    const { config, jose, keys } = await this.#issuer.read();
    const { issuer, id_token_signing_alg_values_supported: algorithms = ['RS256'] } = config.serverMetadata();
    const { payload, protectedHeader } = await jose.jwtVerify(token, keys, {
      issuer,
      audience: this.#options.client_id ?? '',
      algorithms: algorithms.filter((algorithm) => ASYMMETRIC.test(algorithm)),
      clockTolerance: CLOCK_TOLERANCE,
      maxTokenAge: MAX_TOKEN_AGE,
    });
    if (!TYPES.includes(protectedHeader.typ?.toLowerCase())) {
      throw new Error('expected typ to be logout+jwt');
    }
    const { data, error } = logoutClaims.safeParse(payload);
    if (data === undefined) {
      const [issue] = error.issues;
      throw new Error(`${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`);
    }
    const { jti, sid, sub } = data;
    if (this.#seen.has(jti)) {
      throw new Error('expected a token that was not used before');
    }
    this.#seen.set(jti, true);
    return { sid, sub, giveBack: () => this.#seen.delete(jti) };
  }

  async #confirmed(tokens: Oidc.TokenEndpointResponse, claims: Oidc.IDToken): Promise<Confirmed> {
    const { oidc, config } = await this.#issuer.read();
    const more: Claims = this.#options.userinfo
      ? await oidc.fetchUserInfo(config, tokens.access_token, claims.sub)
      : {};
    return { claims: { ...more, ...claims }, refreshToken: tokens.refresh_token };
  }

  /** The URL of the logout at the issuer; `undefined` = it has none. */
  async logoutUrl(returnUrl: string): Promise<string | undefined> {
    const { oidc, config } = await this.#issuer.read();
    return config.serverMetadata().end_session_endpoint === undefined
      ? undefined
      : // Without the ID token, which the browser's history would keep: the issuer asks for confirmation.
        oidc.buildEndSessionUrl(config, { post_logout_redirect_uri: returnUrl }).href;
  }

  async close(): Promise<void> {
    await this.#dispatcher?.close();
  }

  /** One request for any number of logins. */
  async #discover(): Promise<Issuer> {
    const { issuer = '', client_id = '', timeout } = this.#options;
    const [oidc, jose] = await Promise.all([import('openid-client'), import('jose')]);
    const customFetch = await this.#fetch();
    const config = await oidc.discovery(
      new URL(issuer),
      client_id,
      { [oidc.clockTolerance]: CLOCK_TOLERANCE },
      authentication(oidc, this.#options),
      {
        timeout,
        [oidc.customFetch]: customFetch,
        execute: [
          // Checks the signature, too, not only the connection to the issuer.
          oidc.enableNonRepudiationChecks,
          ...(isTrusted(issuer) && issuer.startsWith('http:') ? [oidc.allowInsecureRequests] : []),
        ],
      },
    );
    const { jwks_uri: keysUrl = '' } = config.serverMetadata();
    const keys: Jose.JWTVerifyGetKey =
      URL.canParse(keysUrl) && isTrusted(keysUrl)
        ? jose.createRemoteJWKSet(new URL(keysUrl), {
            timeoutDuration: timeout * 1000,
            [jose.customFetch]: (url, init) =>
              customFetch(url, { ...init, body: undefined, headers: Object.fromEntries(init.headers) }),
          })
        : () => Promise.reject(new Error('expected an address with https: for jwks_uri'));
    return { oidc, config, jose, keys };
  }

  /** Follows no redirects, and limits the size of responses. */
  async #fetch(): Promise<Oidc.CustomFetch> {
    const { Agent, fetch } = await import('undici');
    const { cafile } = this.#options;
    this.#dispatcher ??= new Agent(cafile === undefined ? {} : { connect: { ca: readTextFile(cafile) } });
    const dispatcher = this.#dispatcher;
    const bounded = async (url: string, init: Oidc.CustomFetchOptions, more: Record<string, string>) => {
      const answer = await fetch(url, {
        ...(init as object),
        headers: { ...init.headers, ...more },
        redirect: 'manual',
        dispatcher,
      });
      const tooLong = () => new Error('the answer of the issuer is too long');
      const body = answer.body && (await wholeOf(answer.body, MAX_ANSWER, tooLong));
      const hasBody = answer.status >= 200 && ![204, 205, 304].includes(answer.status);
      return new Response(hasBody ? new Uint8Array(body ?? []) : null, {
        status: answer.status,
        headers: [...answer.headers],
      });
    };
    return (url, init) =>
      tracedCall(
        { method: init.method, address: url },
        (more) => bounded(url, init, more),
        ({ status }) => status,
      );
  }
}

interface Issuer {
  readonly oidc: typeof Oidc;
  readonly config: Oidc.Configuration;
  readonly jose: typeof Jose;
  /** For logout tokens. */
  readonly keys: Jose.JWTVerifyGetKey;
}

/** In the header, as the standard prefers, unless the issuer wants it in the body. */
function authentication(oidc: typeof Oidc, options: OidcOptions): Oidc.ClientAuth {
  return (server, client, body, headers) => {
    const secret = secretOf(options);
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const authenticate =
      secret === undefined
        ? oidc.None()
        : methods.includes('client_secret_basic')
          ? oidc.ClientSecretBasic(secret)
          : oidc.ClientSecretPost(secret);
    authenticate(server, client, body, headers);
  };
}

/** In seconds: maximum age of a logout token. */
const MAX_TOKEN_AGE = 300;
/** Of logout tokens: no issuer sends more before they expire. */
const MAX_SEEN = 10_000;
const EVENT = 'http://schemas.openid.net/event/backchannel-logout';

const text = z.string().min(1).max(1024);

const logoutClaims = z
  .object({
    jti: text,
    sid: text.optional(),
    sub: text.optional(),
    events: z.object({ [EVENT]: z.record(z.string(), z.unknown()) }),
    // ID tokens have it: they must not be accepted as logout tokens.
    nonce: z.undefined('expected none').optional(),
  })
  .refine(({ sid, sub }) => sid !== undefined || sub !== undefined, 'expected sid or sub');

/** Issuers that predate the standard send `JWT`, or nothing. */
const TYPES: readonly unknown[] = [undefined, 'jwt', 'logout+jwt', 'application/logout+jwt'];
