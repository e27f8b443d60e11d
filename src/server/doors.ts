/**
 * The doors of the service: for each protocol, how clients prove who they are. The endpoints, the banner, /openapi.json and the check
 * before the start read the same table.
 */
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { TLSSocket } from 'node:tls';
import createError from 'http-errors';
import { AcceptedTokens, type PeopleTokens } from './credentials.ts';
import type { KeystoneGate, Refuse } from './keystone-gate.ts';
import { kubernetesPathOf, pathOf, queryOf } from './own-paths.ts';
import { FixedTokens } from './people/fixed-tokens.ts';
import { WrongTokens } from './people/wrong-tokens.ts';

/** How a token is sent. */
interface Way {
  /** The token of a request; `undefined`, or a text that no token equals, if there is none. */
  readonly read: (request: IncomingMessage) => string | undefined;
  /** For people. */
  readonly words: string;
  /** For programs, in OpenAPI's form, which has no tokens in paths. */
  readonly scheme?: Readonly<Record<string, string>>;
}

const WAYS = {
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
  /** A parameter that is given twice is not a token. */
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

/** The name of a protocol, and what it asks for. */
interface DoorEntry {
  readonly title: string;
  /** The section of its `tokens` and `tokens_file`. */
  readonly section: string;
  /** The ways to send a token; one is enough. */
  readonly ways: readonly WayName[];
  /** Whether its section has a `client_ca_file` of its own. */
  readonly ownCertificates: boolean;
  /** The message of a 401. */
  readonly expected: string;
  /** What everyone could do if it asked for nothing. */
  readonly openTo: string;
}

/** The table. */
export const DOORS = {
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
} as const satisfies Readonly<Record<string, DoorEntry>>;

export type DoorName = keyof typeof DOORS;
export const DOOR_NAMES = Object.keys(DOORS) as readonly DoorName[];

/** The tokens that are accepted at each door, and those of people, which open none. */
export type DoorTokens = Readonly<Record<DoorName, readonly string[]>> & { readonly people: PeopleTokens };

/** Which clients need a certificate: all of them, or API servers only. Read at the start, like everything about the socket. */
export interface CertificateRules {
  readonly everybody: boolean;
  readonly kubernetes: boolean;
}

export const EXPECTED_CERTIFICATE =
  'expected a client certificate of the authorities in [kubernetes] client_ca_file';

/** Whether a door always needs a certificate. */
export function asksForCertificate(name: DoorName, { everybody, kubernetes }: CertificateRules): boolean {
  return everybody || (kubernetes && DOORS[name].ownCertificates);
}

/** One door: who may pass. */
export class Door {
  readonly tokens: AcceptedTokens;
  readonly #entry: DoorEntry;
  readonly #certificates: CertificateRules;
  readonly #wrong: WrongTokens;
  #keystone: KeystoneGate | undefined;
  /** Whether a token is one of people, which does not pass, and which Keystone is not told. Default: none is. */
  isOfPeople: (token: string) => boolean = () => false;

  constructor(name: DoorName, tokens: readonly string[], certificates: CertificateRules, wrong: WrongTokens) {
    this.#entry = DOORS[name];
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
    const sent = this.#entry.ways.map((way) => WAYS[way].read(request));
    if (!this.tokens.required || sent.some((token) => this.#accepts(token))) {
      return undefined;
    }
    const token = WAYS['X-Auth-Token'].read(request) ?? '';
    if (this.isOfPeople(token)) {
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

/** The security schemes of a door for OpenAPI, by name. */
export function securitySchemesOf(name: DoorName): Readonly<Record<string, object>> {
  const { ways, ownCertificates }: DoorEntry = DOORS[name];
  const schemes = ways.flatMap((way) => {
    const { scheme }: Way = WAYS[way];
    return scheme === undefined ? [] : [[way, scheme] as const];
  });
  return { ...Object.fromEntries(schemes), ...(ownCertificates && CERTIFICATE_SCHEME) };
}

export type Doors = Readonly<Record<DoorName, Door>> & {
  /** The tokens that stand for people. */
  readonly people: FixedTokens;
  /** For all doors, and for people. */
  readonly wrong: WrongTokens;
};

/** `keystone` is for Blazar alone. */
export function createDoors(
  tokens: DoorTokens,
  certificates: CertificateRules,
  keystone?: KeystoneGate,
): Doors {
  const wrong = new WrongTokens();
  const door = (name: DoorName) => new Door(name, tokens[name], certificates, wrong);
  const blazar = door('blazar');
  const people = new FixedTokens(blazar.tokens, tokens.people);
  blazar.keystone = keystone;
  blazar.isOfPeople = (token) => people.isOfPeople(token);
  return { blazar, skypilot: door('skypilot'), kubernetes: door('kubernetes'), people, wrong };
}

export function replaceTokens(doors: Doors, tokens: DoorTokens): void {
  for (const name of DOOR_NAMES) {
    doors[name].tokens.replace(tokens[name]);
  }
  doors.people.replace(tokens.people);
}

/**
 * Whether the client has shown a certificate from one of our authorities. `authorized` alone is not enough: Node also sets it for a
 * resumed TLS 1.3 session that began without a certificate.
 */
function showsCertificate(socket: unknown): boolean {
  return socket instanceof TLSSocket && socket.authorized && socket.getPeerX509Certificate() !== undefined;
}

/** The password of `Basic` authorization, whatever the user name. */
function passwordOf(authorization: string): string | undefined {
  const encoded = /^Basic +([A-Za-z0-9+/]+={0,2})$/i.exec(authorization)?.[1];
  const pair = encoded === undefined ? '' : Buffer.from(encoded, 'base64').toString('latin1');
  const colon = pair.indexOf(':');
  return colon < 0 ? undefined : pair.slice(colon + 1);
}

/** Whether only this machine can reach an address. A name other than `localhost` may stand for any address. */
export function isLoopback(host: string): boolean {
  const plain = host.replace(/^::ffff:(?=\d+\.)/i, '');
  return host === 'localhost' || host === '::1' || (isIP(plain) === 4 && plain.startsWith('127.'));
}
