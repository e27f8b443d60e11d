/** Keystone, with our own account, and the services in its catalog. */
import { z } from 'zod';
import { isMapping } from '../base/yaml/tree.ts';
import { withKeystoneToken } from '../filter/service-calls.ts';
import type { SharedServices } from '../filter/services.ts';
import type { HttpAnswer, HttpCallOptions, HttpClient } from '../http/contract.ts';
import { type Keystone, KeystoneError, unusableAnswer, type ValidToken } from './contract.ts';
import { clientOptions, effectiveOptions, identityUrl, TOKENS_PATH } from './effective-options.ts';
import type { KeystoneOptions } from './keystone-options.ts';
import {
  type Catalog,
  isKeystoneError,
  isToken,
  OwnTokens,
  type TokenContent,
  TokenIssuer,
  tokenContent,
  unusable,
} from './own-token.ts';

/** Catalogs of large clouds are close to 1 MiB. */
const MAX_IDENTITY_BYTES = 2 * 1024 * 1024;
/** Blazar's list of 10,000 leases is some 20 MiB, and most versions send it in one answer. */
const MAX_SERVICE_BYTES = 64 * 1024 * 1024;

/** Of an answer about a token, without the catalog: some 1 KiB. Reading a longer one would take too long. */
const MAX_TOKEN_CHARACTERS = 256 * 1024;

/** Maximum clock difference of two servers of one Keystone: one issued a token, the other validates it. */
const MOST_APART_MS = 300_000;

type Signal = Pick<HttpCallOptions, 'signal'>;

/** Opens and sends nothing before its first use. The options must be valid. */
export function createKeystone(options: KeystoneOptions, services: SharedServices): Keystone {
  return new RealKeystone(options, services);
}

/** Unchanged until it is closed, even if `clouds.yaml` changes. */
interface Opened {
  /** The root of version 3. */
  readonly url: string;
  readonly choice: EndpointChoice;
  readonly identity: HttpClient;
  readonly services: HttpClient;
}

class RealKeystone implements Keystone {
  readonly #options: KeystoneOptions;
  readonly #shared: SharedServices;
  readonly #tokens: OwnTokens;
  readonly #issuer: TokenIssuer;
  #opened: Promise<Opened> | undefined;
  #closed = false;

  constructor(options: KeystoneOptions, shared: SharedServices) {
    this.#options = options;
    this.#shared = shared;
    this.#issuer = new TokenIssuer(shared.clock);
    this.#tokens = new OwnTokens(() => this.#issue(), shared);
  }

  async token({ signal }: Signal = {}): Promise<string> {
    return (await this.#tokens.current(signal)).value;
  }

  refused(token: string): void {
    this.#tokens.refused(token);
  }

  async endpoint(serviceType: string, { signal }: Signal = {}): Promise<string> {
    const { catalog } = await this.#tokens.current(signal);
    return endpointOf(catalog, serviceType, (await this.#open()).choice);
  }

  async get(url: string, call?: HttpCallOptions): Promise<HttpAnswer> {
    const { services } = await this.#open();
    return withKeystoneToken(services, this).get(url, call);
  }

  async getIdentity(path: string, call?: HttpCallOptions): Promise<HttpAnswer> {
    const { identity, url } = await this.#open();
    return withKeystoneToken(identity, this).get(`${url}${path}`, call);
  }

  async validate(token: string, { signal }: Signal = {}): Promise<ValidToken | undefined> {
    if (!isToken(token)) {
      return undefined;
    }
    const called = `GET ${(await this.#open()).url}${TOKENS_PATH}`;
    const answer = await this.getIdentity(`${TOKENS_PATH}?nocatalog`, {
      signal,
      headers: { 'x-subject-token': token },
      answerHeaders: ['x-subject-token', 'date'],
    });
    if (answer.status === 404 && isKeystoneError(answer)) {
      return undefined;
    }
    if (answer.status !== 200) {
      throw unusable(answer, called);
    }
    if (answer.body.length > MAX_TOKEN_CHARACTERS) {
      throw unusableAnswer(`${called}: the answer is too long for one token`);
    }
    const content = tokenContent(answer, called);
    if ((answer.headers?.['x-subject-token'] ?? token) !== token) {
      // From a cache that ignores request headers.
      throw unusableAnswer(`${called}: the answer is about another token`);
    }
    const now = this.#shared.clock.now().getTime();
    const keystoneClock = Date.parse(answer.headers?.date ?? '');
    if (keystoneClock < content.issued_at - MOST_APART_MS) {
      // With such a clock, the token would be valid for that much longer.
      throw unusableAnswer(`${called}: the answer is older than the token, by its Date`);
    }
    const ahead = Number.isNaN(keystoneClock) ? 0 : keystoneClock - now;
    const expiresAt = content.expires_at - ahead;
    return expiresAt <= now ? undefined : { ...identityOf(content), expiresAt };
  }

  async close(): Promise<void> {
    this.#closed = true;
    const opened = await this.#opened?.catch(() => undefined);
    await Promise.all([opened?.identity.close(), opened?.services.close()]);
  }

  async #issue() {
    const { identity, url } = await this.#open();
    const { options } = await effectiveOptions(this.#options);
    return this.#issuer.issue(identity, url, options);
  }

  #open(): Promise<Opened> {
    if (this.#closed) {
      throw new KeystoneError('configuration', 'the client of Keystone was closed');
    }
    this.#opened ??= this.#openAll().catch((thrown: unknown) => {
      this.#opened = undefined;
      throw thrown;
    });
    return this.#opened;
  }

  async #openAll(): Promise<Opened> {
    const { http, logger } = this.#shared;
    const { options, source } = await effectiveOptions(this.#options);
    const { auth_url: authUrl = '', region_name: region } = options;
    const url = identityUrl(authUrl);
    if (source !== undefined) {
      logger.info({ keystone: url, source }, 'the account for Keystone is not in [keystone] alone');
    }
    const common = clientOptions(options);
    return {
      url,
      choice: { region, interface: options.interface ?? 'public' },
      identity: http.createClient({ ...common, maxAnswerBytes: MAX_IDENTITY_BYTES }),
      services: http.createClient({ ...common, maxAnswerBytes: MAX_SERVICE_BYTES }),
    };
  }
}

function identityOf(content: TokenContent): Omit<ValidToken, 'expiresAt'> {
  const { user, project, system } = content;
  const roles = (content.roles ?? []).map(({ name }) => name);
  const named = ({ id, name, domain }: TokenContent['user']) => ({ id, name, domain: domain?.name ?? '' });
  return {
    user: named(user),
    project: project ? named(project) : undefined,
    // Roles in a domain or the system do not apply to a project.
    roles: project ? roles : [],
    ...(!project && system?.all === true && { systemRoles: roles }),
    ...(project && content.is_admin_project === false && { isAdminElsewhere: true }),
  };
}

const service = z.object({
  endpoints: z.array(
    z.object({
      interface: z.string(),
      region: z.string().nullish(),
      region_id: z.string().nullish(),
      url: z.string(),
    }),
  ),
});

const MAX_NAMED = 20;

interface EndpointChoice {
  readonly region: KeystoneOptions['region_name'];
  readonly interface: string;
}

/**
 * The URL of a service type, without a slash at its end; Keystone's always ends in `/v3`. A URL that depends
 * on a region is an error if none is set: the leases would be requested from another region.
 *
 * @throws KeystoneError
 */
export function endpointOf(catalog: Catalog, type: string, choice: EndpointChoice): string {
  const ofType = catalog.filter((entry) => typeOf(entry) === type);
  const endpoints = ofType.flatMap((entry) => service.safeParse(entry).data?.endpoints ?? []);
  const matching = endpoints.filter(
    (one) =>
      one.interface === choice.interface &&
      (choice.region === undefined || [one.region, one.region_id].includes(choice.region)),
  );
  const addresses = [...new Set(matching.map(({ url }) => addressOf(url, type)))];
  const [address] = addresses;
  if (address === undefined) {
    const found = endpoints.map((one) => `${one.interface} in ${one.region_id ?? one.region}`);
    const types = catalog.flatMap((entry) => typeOf(entry) ?? []);
    const instead = ofType.length === 0 ? named(types, 'services') : named(found, 'endpoints');
    throw noEndpoint(`the catalog has no ${wanted(type, choice)}; it has ${instead}`);
  }
  if (addresses.length > 1) {
    const regions = matching.map((one) => String(one.region_id ?? one.region));
    throw noEndpoint(
      choice.region === undefined
        ? `the catalog has the service "${type}" in several regions: set [keystone] region_name to one of ${named(regions)}`
        : `the catalog has more than one ${wanted(type, choice)}`,
    );
  }
  return address;
}

function wanted(type: string, { region, interface: which }: EndpointChoice): string {
  return `${which} endpoint of the service "${type}"${region === undefined ? '' : ` in the region ${region}`}`;
}

function addressOf(text: string, type: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    throw noEndpoint(`the address of the service "${type}" in the catalog is not an http or https URL`);
  }
  const address = `${url.origin}${url.pathname}`.replace(/\/+$/, '');
  return type === 'identity' ? `${address.replace(/\/v(2\.0|3)$/, '')}/v3` : address;
}

function typeOf(entry: unknown): string | undefined {
  const type = isMapping(entry) ? entry.type : undefined;
  return typeof type === 'string' ? type : undefined;
}

function named(texts: readonly string[], nothing = 'nothing'): string {
  const different = [...new Set(texts)].sort();
  const shown = different.slice(0, MAX_NAMED).map((text) => text.slice(0, 100));
  return different.length === 0
    ? `no ${nothing}`
    : `${shown.join(', ')}${different.length > MAX_NAMED ? ', …' : ''}`;
}

function noEndpoint(message: string): KeystoneError {
  return new KeystoneError('no-endpoint', message);
}
