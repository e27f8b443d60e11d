/** Whether a request may be answered: its token and its certificate, for each protocol. */
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import createError from 'http-errors';
import type { Generation } from '../configuration/generation.ts';
import { KUBERNETES_PATHS } from '../own-paths.ts';
import { FixedTokens } from '../users/fixed-tokens.ts';
import { WrongTokens } from '../users/wrong-tokens.ts';
import type { KeystoneGate, Refuse } from './keystone-gates.ts';
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

/** Who may use one protocol. */
export class Authenticator {
  readonly tokens: AcceptedTokens;
  readonly #entry: Protocol;
  readonly #certificates: CertificateRules;
  readonly #wrong: WrongTokens;
  #keystone: KeystoneGate | undefined;
  /** Whether a token is one of people, which does not pass, and which Keystone is not told. Default: none is. */
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

  /** Who else may pass: owners of tokens of Keystone. `undefined` = nobody. */
  set keystone(gate: KeystoneGate | undefined) {
    this.#keystone = gate;
    this.tokens.requiredAnyway = gate !== undefined;
  }

  /** Whether everyone passes who reaches the port. */
  get isOpen(): boolean {
    return this.asks.length === 0;
  }

  /** What clients must show, all of it, in words. Never a token itself. */
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
   * Throws an HTTP error unless the request carries everything that is asked for: with status 401, after many wrong tokens from the address
   * 429, and for a token of Keystone also 403 or 503. Returns a promise, which may reject with such an error, only if Keystone must be asked. `address`: the
   * client's.
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
      // No guess: it is right elsewhere.
      throw createError(401, this.#entry.expected);
    }
    const refuse: Refuse = (headers) => {
      const { expected } = this.#entry;
      throw sent.some((one) => one)
        ? this.#wrong.error(address, expected, headers)
        : createError(401, expected, { headers });
    };
    return this.#keystone === undefined ? refuse({}) : this.#keystone.requireProof(token, refuse);
  }

  #accepts(token: string | undefined): boolean {
    return token !== undefined && this.tokens.accept(token);
  }

  get #asksForCertificate(): boolean {
    return this.#entry.ownCertificates && this.#certificates.kubernetes;
  }
}

export type Authenticators = Readonly<Record<ProtocolName, Authenticator>> & {
  /** The tokens that stand for people. */
  readonly people: FixedTokens;
  /** For all protocols, and for people. */
  readonly wrong: WrongTokens;
};

/** `keystone` is for Blazar alone. */
export function createAuthenticators(
  tokens: ProtocolTokens,
  certificates: CertificateRules,
  keystone?: KeystoneGate,
): Authenticators {
  const wrong = new WrongTokens();
  const authenticator = (name: ProtocolName) => new Authenticator(name, tokens[name], certificates, wrong);
  const blazar = authenticator('blazar');
  const people = new FixedTokens(blazar.tokens, tokens.people);
  blazar.keystone = keystone;
  blazar.isOfUsers = (token) => people.isOfUsers(token);
  return {
    blazar,
    skypilot: authenticator('skypilot'),
    kubernetes: authenticator('kubernetes'),
    people,
    wrong,
  };
}

export function replaceTokens(authenticators: Authenticators, tokens: ProtocolTokens): void {
  for (const name of PROTOCOL_NAMES) {
    authenticators[name].tokens.replace(tokens[name]);
  }
  authenticators.people.replace(tokens.people);
}

/** A protocol that is served, as the banner of `serve` shows it. */
export interface ServedProtocol {
  readonly name: ProtocolName;
  /** `Blazar` */
  readonly title: string;
  readonly urls: readonly string[];
  /** What clients must show, all of it. Empty = nothing. */
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
 * Whether the client has shown a certificate from one of our authorities. `authorized` alone is not enough: Node also sets it for a
 * resumed TLS 1.3 session that began without a certificate.
 */
function showsCertificate(socket: unknown): boolean {
  return socket instanceof TLSSocket && socket.authorized && socket.getPeerX509Certificate() !== undefined;
}
