/** Authenticates requests by token and certificate, for each protocol. */
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import createError from 'http-errors';
import type { Generation } from '../configuration/generation.ts';
import { KUBERNETES_PATHS } from '../own-paths.ts';
import { FixedTokens } from '../users/fixed-tokens.ts';
import { WrongTokens } from '../users/wrong-tokens.ts';
import type { KeystoneAuthenticator, Refuse } from './keystone-authenticators.ts';
import {
  AcceptedTokens,
  type CertificateRules,
  EXPECTED_CERTIFICATE,
  PROTOCOL_NAMES,
  PROTOCOLS,
  type Protocol,
  type ProtocolName,
  type ProtocolTokens,
  WAYS,
} from './protocols.ts';

export class Authenticator {
  readonly tokens: AcceptedTokens;
  readonly #entry: Protocol;
  readonly #certificates: CertificateRules;
  readonly #wrong: WrongTokens;
  #keystone: KeystoneAuthenticator | undefined;
  /** Whether a token belongs to a user: it is rejected, and not sent to Keystone. Default: never. */
  isOfUsers: (token: string) => boolean = () => false;

  constructor(
    name: ProtocolName,
    tokens: readonly string[],
    certificates: CertificateRules,
    wrong: WrongTokens,
  ) {
    this.#entry = PROTOCOLS[name];
    this.#wrong = wrong;
    this.#certificates = certificates;
    this.tokens = new AcceptedTokens(tokens);
  }

  /** Also accepts Keystone tokens. `undefined` = no Keystone tokens. */
  set keystone(authenticator: KeystoneAuthenticator | undefined) {
    this.#keystone = authenticator;
    this.tokens.requiredAnyway = authenticator !== undefined;
  }

  /** Everything that clients must show, in words. Never a token itself. */
  get asks(): string[] {
    const { section, ways } = this.#entry;
    const kinds = [
      ...(this.tokens.isEmpty ? [] : [`one of [${section}] tokens`]),
      ...(this.#keystone === undefined ? [] : [this.#keystone.asks]),
    ];
    const howSent = ways.map((way) => WAYS[way].words).join(', or ');
    return [
      ...(this.#certificates.everybody ? ['a client certificate ([service] client_ca_file)'] : []),
      ...(this.#asksForCertificate ? [`a client certificate ([${section}] client_ca_file)`] : []),
      ...(this.tokens.required ? [`${kinds.join(' or ')}, ${howSent}`] : []),
    ];
  }

  /**
   * Throws an HTTP error unless the request carries everything that is required: 401, 429 after many wrong
   * tokens from the address, and for Keystone tokens also 403 or 503. Returns a promise, which may reject
   * with such an error, only if Keystone must be called. `address`: of the client.
   */
  requireProof(request: IncomingMessage, address: string | undefined): Promise<void> | undefined {
    if (this.#asksForCertificate && !showsCertificate(request.socket)) {
      throw createError(401, EXPECTED_CERTIFICATE);
    }
    if (!this.tokens.required) {
      return undefined;
    }
    const sent = this.#entry.ways.map((way) => WAYS[way].read(request));
    if (sent.some((token) => this.#accepts(token))) {
      return undefined;
    }
    const token = WAYS['X-Auth-Token'].read(request) ?? '';
    if (this.isOfUsers(token)) {
      // Not counted as a guess: the token is valid elsewhere.
      throw createError(401, this.#entry.expected);
    }
    const refuse: Refuse = (headers) => {
      const { expected } = this.#entry;
      throw sent.some((one) => one)
        ? this.#wrong.error(address, expected, headers)
        : createError(401, expected, { headers });
    };
    return this.#keystone === undefined ? refuse({}) : this.#keystone.requireProof(token, refuse, address);
  }

  #accepts(token: string | undefined): boolean {
    return token !== undefined && this.tokens.accept(token);
  }

  get #asksForCertificate(): boolean {
    return this.#entry.ownCertificates && this.#certificates.kubernetes;
  }
}

export type Authenticators = Readonly<Record<ProtocolName, Authenticator>> & {
  readonly users: FixedTokens;
  /** Shared by all protocols and by users. */
  readonly wrong: WrongTokens;
};

/** `keystone` is only for Blazar. */
export function createAuthenticators(
  tokens: ProtocolTokens,
  certificates: CertificateRules,
  keystone?: KeystoneAuthenticator,
): Authenticators {
  const wrong = new WrongTokens();
  const authenticator = (name: ProtocolName) => new Authenticator(name, tokens[name], certificates, wrong);
  const blazar = authenticator('blazar');
  const users = new FixedTokens(blazar.tokens, tokens.users);
  blazar.keystone = keystone;
  blazar.isOfUsers = (token) => users.isOfUsers(token);
  return {
    blazar,
    skypilot: authenticator('skypilot'),
    kubernetes: authenticator('kubernetes'),
    users,
    wrong,
  };
}

export function replaceTokens(authenticators: Authenticators, tokens: ProtocolTokens): void {
  for (const name of PROTOCOL_NAMES) {
    authenticators[name].tokens.replace(tokens[name]);
  }
  authenticators.users.replace(tokens.users);
}

/** A protocol that is served, as the banner of `serve` shows it. */
export interface ServedProtocol {
  readonly name: ProtocolName;
  /** `Blazar` */
  readonly title: string;
  readonly urls: readonly string[];
  /** Everything that clients must show. Empty = nothing. */
  readonly asks: readonly string[];
}

export function servedProtocols(
  authenticators: Authenticators,
  { skypilot, kubernetes }: Generation,
  serviceUrl: string,
): ServedProtocol[] {
  const paths = {
    blazar: ['/v1/'],
    skypilot: skypilot.policies.isEmpty ? [] : [skypilot.options.path],
    kubernetes: kubernetes === undefined ? [] : Object.values(KUBERNETES_PATHS),
  };
  return PROTOCOL_NAMES.filter((name) => paths[name].length > 0).map((name) => ({
    name,
    title: PROTOCOLS[name].title,
    urls: paths[name].map((path) => serviceUrl + path),
    asks: authenticators[name].asks,
  }));
}

/**
 * Whether the client has shown a certificate from one of our authorities. `authorized` is not sufficient:
 * Node also sets it for a resumed TLS 1.3 session that began without a certificate.
 */
function showsCertificate(socket: unknown): boolean {
  return socket instanceof TLSSocket && socket.authorized && socket.getPeerX509Certificate() !== undefined;
}
