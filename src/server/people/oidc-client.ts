/**
 * An issuer of OpenID Connect: authorization code with PKCE. `openid-client` checks state, nonce, issuer, audience, times and signatures; here
 * are the bounds of what an issuer may cost.
 */

import { readFileSync } from 'node:fs';
import type * as Oidc from 'openid-client';
import type { Dispatcher } from 'undici';
import { GrowingBuffer } from '../../growing-buffer.ts';
import { tracedCall } from '../../traced-call.ts';
import { isTrusted, type OidcOptions, secretOf } from './oidc-options.ts';
import type { Claims } from './oidc-person.ts';
import type { PreSession } from './pre-session.ts';

/** In bytes. The keys of issuers have a few kilobytes. */
const MAX_ANSWER = 1_048_576;
/** In seconds: how far clocks may differ. */
const CLOCK_TOLERANCE = 60;
/** What an issuer says about itself is asked again after so long, and after a failure. */
const KEPT_MS = 3_600_000;
const FAILURE_MS = 5000;

export class OidcClient {
  readonly #options: OidcOptions;
  #discovered: { readonly at: number; readonly issuer: Promise<Issuer> } | undefined;
  #dispatcher: Dispatcher | undefined;

  /** Asks nothing before it is used. `issuer` and `client_id` must be set. */
  constructor(options: OidcOptions) {
    this.#options = options;
  }

  /** Where the browser goes. */
  async authorizationUrl({ state, nonce, verifier }: PreSession, redirectUrl: string): Promise<string> {
    const { oidc, config } = await this.#issuer();
    return oidc.buildAuthorizationUrl(config, {
      redirect_uri: redirectUrl,
      scope: this.#options.scopes.join(' '),
      ...{ state, nonce },
      code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }).href;
  }

  /** The claims of who comes back, by everything that the issuer has signed. Throws for anything that does not fit. */
  async claims(query: string, { state, nonce, verifier }: PreSession, redirectUrl: string): Promise<Claims> {
    const { oidc, config } = await this.#issuer();
    const current = new URL(redirectUrl);
    current.search = query;
    const tokens = await oidc.authorizationCodeGrant(config, current, {
      ...{ expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier },
      idTokenExpected: true,
    });
    const claims = tokens.claims();
    if (claims === undefined) {
      throw new Error('the issuer has sent no ID token');
    }
    const more = this.#options.userinfo
      ? await oidc.fetchUserInfo(config, tokens.access_token, claims.sub)
      : {};
    return { ...more, ...claims };
  }

  /** Where somebody logs out at the issuer; `undefined` = it offers no such page. */
  async logoutUrl(returnUrl: string): Promise<string | undefined> {
    const { oidc, config } = await this.#issuer();
    return config.serverMetadata().end_session_endpoint === undefined
      ? undefined
      : // Without the ID token, which would stand in the history of the browser: the issuer asks for a confirmation instead.
        oidc.buildEndSessionUrl(config, { post_logout_redirect_uri: returnUrl }).href;
  }

  async close(): Promise<void> {
    await this.#dispatcher?.close();
  }

  /** One request for any number of logins. */
  #issuer(): Promise<Issuer> {
    const now = Date.now();
    const { at = 0, issuer } = this.#discovered ?? {};
    if (issuer !== undefined && now >= at && now < at + KEPT_MS) {
      return issuer;
    }
    const asked = this.#discover();
    const discovered = { at: now, issuer: asked };
    this.#discovered = discovered;
    asked.catch(() => {
      // Whoever comes soon after a failure gets the same one.
      setTimeout(() => {
        if (this.#discovered === discovered) {
          this.#discovered = undefined;
        }
      }, FAILURE_MS).unref();
    });
    return asked;
  }

  async #discover(): Promise<Issuer> {
    const { issuer = '', client_id = '', timeout } = this.#options;
    const oidc = await import('openid-client');
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
          // The signature is checked too, and not only that the token has come from the issuer.
          oidc.enableNonRepudiationChecks,
          ...(isTrusted(issuer) && issuer.startsWith('http:') ? [oidc.allowInsecureRequests] : []),
        ],
      },
    );
    return { oidc, config };
  }

  /** Follows no redirects, and reads no endless answers. */
  async #fetch(): Promise<Oidc.CustomFetch> {
    const { Agent, fetch } = await import('undici');
    const { cafile } = this.#options;
    this.#dispatcher ??= new Agent({
      ...(cafile !== undefined && { connect: { ca: readFileSync(cafile) } }),
    });
    const dispatcher = this.#dispatcher;
    const bounded = async (
      url: string,
      init: Oidc.CustomFetchOptions,
      more: Readonly<Record<string, string>>,
    ) => {
      const answer = await fetch(url, {
        ...(init as object),
        headers: { ...init.headers, ...more },
        redirect: 'manual',
        dispatcher,
      });
      const body = new GrowingBuffer();
      for await (const chunk of answer.body ?? []) {
        if (body.length + chunk.byteLength > MAX_ANSWER) {
          throw new Error('the answer of the issuer is too long');
        }
        body.push(chunk);
      }
      const hasBody = answer.status >= 200 && ![204, 205, 304].includes(answer.status);
      return new Response(hasBody ? new Uint8Array(body.bytes) : null, {
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
