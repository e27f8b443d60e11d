/**
 * The protocols of the service, each with the ways to authenticate. The endpoints, the banner, /openapi.json
 * and the start checks read the same table.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { pathOf, queryOf } from '../listener/connections.ts';
import { kubernetesPathOf } from '../own-paths.ts';
import type { UserTokens } from './credentials.ts';

interface Way {
  /** The token of a request; without one, `undefined` or a text that equals no token. */
  readonly read: (request: IncomingMessage) => string | undefined;
  readonly words: string;
  /** In the format of OpenAPI, which has no tokens in paths. */
  readonly scheme?: Readonly<Record<string, string>>;
}

export const WAYS = {
  'X-Auth-Token': {
    read: ({ headers }) => headers['x-auth-token'] as string | undefined,
    words: 'in the header X-Auth-Token',
    scheme: {
      type: 'apiKey',
      in: 'header',
      name: 'X-Auth-Token',
      description:
        'One of the tokens of the service or, with `keystone_auth`, a token of Keystone. Not needed if the service has neither.',
    },
  },
  bearer: {
    read: ({ headers }) => /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1],
    words: 'as Authorization: Bearer',
    scheme: {
      type: 'http',
      scheme: 'bearer',
      description: 'One of the tokens for Kubernetes. Not needed if there are none.',
    },
  },
  password: {
    read: ({ headers }) => passwordOf(headers.authorization ?? ''),
    words: 'as the password in the URL or in .netrc',
    scheme: {
      type: 'http',
      scheme: 'basic',
      description:
        'Any user name, and one of the tokens for SkyPilot as the password. Not needed if there are none.',
    },
  },
  /** A repeated parameter is not a token. */
  token: {
    read: (request) => {
      const tokens = queryOf(request).getAll('token');
      return tokens.length === 1 ? tokens[0] : undefined;
    },
    words: 'as ?token= in the URL',
    scheme: {
      type: 'apiKey',
      in: 'query',
      name: 'token',
      description: 'One of the tokens for SkyPilot. Not needed if there are none.',
    },
  },
  path: {
    read: (request) => kubernetesPathOf(pathOf(request))?.token,
    words: 'as the last part of the path',
  },
} as const satisfies Readonly<Record<string, Way>>;

type WayName = keyof typeof WAYS;

/** For `[kubernetes] client_ca_file`. */
const CERTIFICATE_SCHEME = {
  clientCertificate: {
    type: 'mutualTLS',
    description:
      'A certificate from the authorities for API servers, in addition to a token if both are configured. Not needed if there are no authorities.',
  },
};

export interface Protocol {
  readonly title: string;
  /** The section of its `tokens` and `tokens_file`. */
  readonly section: string;
  /** The ways to send a token; one is enough. */
  readonly ways: readonly WayName[];
  /** Whether its section has its own `client_ca_file`. */
  readonly ownCertificates: boolean;
  /** The message of a 401. */
  readonly expected: string;
  /** What unauthenticated clients could do. */
  readonly openTo: string;
}

export const PROTOCOLS = {
  blazar: {
    title: 'Blazar',
    section: 'service',
    ways: ['X-Auth-Token'],
    ownCertificates: false,
    expected: 'expected a valid token in the header X-Auth-Token',
    openTo: 'ask for leases, end them and look into the console',
  },
  skypilot: {
    title: 'SkyPilot',
    section: 'skypilot',
    ways: ['password', 'token'],
    ownCertificates: false,
    expected: 'expected a valid token as the password, or as the query parameter token',
    openTo: 'ask as SkyPilot',
  },
  kubernetes: {
    title: 'Kubernetes',
    section: 'kubernetes',
    ways: ['bearer', 'path'],
    ownCertificates: true,
    expected: 'expected a valid token as Authorization: Bearer, or as the last part of the path',
    openTo: 'ask as an API server of Kubernetes',
  },
} as const satisfies Readonly<Record<string, Protocol>>;

export type ProtocolName = keyof typeof PROTOCOLS;
export const PROTOCOL_NAMES = Object.keys(PROTOCOLS) as readonly ProtocolName[];

/** The tokens that each protocol accepts, and those of users, which no protocol accepts. */
export type ProtocolTokens = Readonly<Record<ProtocolName, readonly string[]>> & {
  readonly users: UserTokens;
};

/** Which clients need a certificate: all, or only API servers. Read at the start, like the socket. */
export interface CertificateRules {
  readonly everybody: boolean;
  readonly kubernetes: boolean;
}

export const EXPECTED_CERTIFICATE =
  'expected a client certificate of the authorities in [kubernetes] client_ca_file';

export function asksForCertificate(name: ProtocolName, { everybody, kubernetes }: CertificateRules): boolean {
  return everybody || (kubernetes && PROTOCOLS[name].ownCertificates);
}

export function securitySchemesOf(name: ProtocolName): Readonly<Record<string, object>> {
  const { ways, ownCertificates }: Protocol = PROTOCOLS[name];
  const schemes = ways.flatMap((way) => {
    const { scheme }: Way = WAYS[way];
    return scheme === undefined ? [] : [[way, scheme] as const];
  });
  return { ...Object.fromEntries(schemes), ...(ownCertificates && CERTIFICATE_SCHEME) };
}

/** The password of `Basic` authorization. The user name is ignored. */
function passwordOf(authorization: string): string | undefined {
  const encoded = /^Basic +([A-Za-z0-9+/]+={0,2})$/i.exec(authorization)?.[1];
  const pair = encoded === undefined ? '' : Buffer.from(encoded, 'base64').toString('latin1');
  const colon = pair.indexOf(':');
  return colon < 0 ? undefined : pair.slice(colon + 1);
}

/**
 * The tokens that are accepted now. Every comparison covers digests of equal length, and all of them, so that
 * its time reveals nothing about a token.
 */
export class AcceptedTokens {
  #digests: readonly Buffer[] = [];
  /** Whether clients need a token even if this list is empty: tokens from elsewhere are accepted. */
  requiredAnyway = false;

  constructor(tokens: readonly string[]) {
    this.replace(tokens);
  }

  replace(tokens: readonly string[]): void {
    this.#digests = tokens.map(digest);
  }

  get required(): boolean {
    return this.requiredAnyway || !this.isEmpty;
  }

  get isEmpty(): boolean {
    return this.#digests.length === 0;
  }

  accept(token: string): boolean {
    return !this.required || this.#accepted(token) !== undefined;
  }

  /** Identifies the token of a session, which ends with the token; `undefined` for a token that is not accepted. */
  sessionKeyOf(token: string): string | undefined {
    const accepted = this.#accepted(token);
    return accepted && sessionKey(accepted);
  }

  /** The keys of the sessions that are still valid. */
  sessionKeys(): string[] {
    return this.#digests.map(sessionKey);
  }

  #accepted(token: string): Buffer | undefined {
    const sent = digest(token);
    return this.#digests.filter((accepted) => timingSafeEqual(accepted, sent))[0];
  }
}

/** Derived from the digest, so that it cannot be used as a token. */
function sessionKey(accepted: Buffer): string {
  return createHmac('sha256', accepted).update('blazar-enforcement session').digest('base64');
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
