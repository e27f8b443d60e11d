/** Authenticates requests by token and certificate, for each protocol; reloads their files when they change. */
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import createError from 'http-errors';
import { errorText } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { type Configuration, sectionOf } from '../../enforcement/configuration.ts';
import { kubernetesSection } from '../../kubernetes/options.ts';
import type { Generation } from '../configuration/generation.ts';
import type { ServiceOptions } from '../configuration/options.ts';
import { readProtocolTokens, tokenOptionsOf } from '../configuration/sections.ts';
import type { Listener } from '../listener/socket.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { KUBERNETES_PATHS } from '../own-paths.ts';
import { FixedTokens } from '../users/fixed-tokens.ts';
import { WrongTokens } from '../users/wrong-tokens.ts';
import { expiryOf, readValidTls, type TlsOptions } from './credentials.ts';
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

interface CredentialUsers {
  readonly authenticators: Authenticators;
  readonly listeners: readonly Listener[];
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** Reloads the files, except those with a mistake, whose old content stays. Returns whether all are valid. */
export function rereadCredentials(
  configuration: Configuration,
  tlsOptions: TlsOptions,
  { authenticators, listeners, logger, metrics }: CredentialUsers,
): boolean {
  const mistakes = [
    ...mistakeOf(() => replaceTokens(authenticators, readProtocolTokens(configuration))),
    ...mistakeOf(() => {
      const tls = readValidTls(tlsOptions);
      if (tls !== undefined) {
        metrics.certificateExpiry = expiryOf(tls);
        for (const listener of listeners) {
          listener.replaceTls(tls);
        }
      }
    }),
  ];
  for (const error of mistakes) {
    logger.error({ error }, 'token and certificate files not read again: the previous ones stay in use');
  }
  if (mistakes.length === 0) {
    logger.info('token and certificate files read again');
  }
  metrics.credentialReloads.inc({ outcome: mistakes.length === 0 ? 'applied' : 'refused' });
  return mistakes.length === 0;
}

function mistakeOf(read: () => void): string[] {
  try {
    read();
    return [];
  } catch (thrown) {
    return [errorText(thrown)];
  }
}

/** The files to watch. A reload may set other token files; paths of certificates are fixed at the start. */
export function credentialFiles(
  now: Configuration,
  { tls_cert_file, tls_key_file, client_ca_file }: TlsOptions,
): string[] {
  const options = tokenOptionsOf(now);
  const tokenFiles = Object.values(options).map(({ tokens_file }) => tokens_file);
  const { operator_tokens_file, reader_tokens_file, metrics_tokens_file } = options.blazar;
  const ofUsers = [operator_tokens_file, reader_tokens_file, metrics_tokens_file];
  const ofTls = [tls_cert_file, tls_key_file, client_ca_file];
  return [...tokenFiles, ...ofUsers, ...ofTls].filter((file) => file !== undefined);
}

/** The authorities for all clients, or those for API servers; setting both is refused at the start. */
export function tlsOptionsOf(configuration: Configuration, service: ServiceOptions): TlsOptions {
  const { client_ca_file: ofKubernetes } = sectionOf(configuration, kubernetesSection);
  return { ...service, client_ca_file: service.client_ca_file ?? ofKubernetes };
}
