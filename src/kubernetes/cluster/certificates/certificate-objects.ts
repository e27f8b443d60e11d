/**
 * The certificate's objects in a cluster: the Secret of all replicas, and the authorities that API servers
 * trust when they call webhooks, in `caBundle` of webhook configurations. The first writer of the Secret
 * wins: the API server refuses the others (409).
 */
import type { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { errorText } from '../../../base/errors.ts';
import { type ApiClient, ApiError, parsedAs, unlessMissing } from '../api/contract.ts';
import {
  certificatesIn,
  type HeldCertificate,
  holdCertificate,
  type IssuedCertificate,
  isValid,
  MAX_AUTHORITIES,
} from './certificate.ts';

const secretSchema = z.looseObject({
  metadata: z.looseObject({ resourceVersion: z.string().min(1) }),
  data: z.record(z.string(), z.string()).nullish(),
});

export interface SecretState {
  /** Members that are not about certificates are written back unchanged. */
  readonly object: z.infer<typeof secretSchema>;
  /** The certificate that replicas use, or why it is unusable. */
  readonly current: HeldCertificate | string;
  /** The next certificate, used when API servers trust it. `undefined` = no change is in progress. */
  readonly next: HeldCertificate | undefined;
  readonly authorities: string;
  readonly isEmpty: boolean;
}

const KEYS = {
  authorities: 'ca.crt',
  certificate: 'tls.crt',
  key: 'tls.key',
  nextCertificate: 'next.crt',
  nextKey: 'next.key',
} as const;

export class CertificateSecret {
  readonly #client: ApiClient;
  readonly #folder: string;
  readonly #name: string;
  readonly #names: readonly string[];

  /** `names`: DNS names that the certificate must have. */
  constructor(client: ApiClient, name: string, names: readonly string[]) {
    this.#client = client;
    this.#folder = `/api/v1/namespaces/${encodeURIComponent(client.namespace ?? 'default')}/secrets`;
    this.#name = name;
    this.#names = names;
  }

  /** @throws ApiError, ApiUnreachableError, Error if the answer is no Secret */
  async read(now: number): Promise<SecretState> {
    return this.#state(await this.#get(), now);
  }

  /** Updates the Secret that `state` was read from. @throws ApiError 409 if another replica was faster */
  async write(
    { object }: SecretState,
    {
      current,
      next,
      authorities,
    }: {
      readonly current: HeldCertificate | IssuedCertificate;
      readonly next?: HeldCertificate | IssuedCertificate | undefined;
      readonly authorities: readonly string[];
    },
    now: number,
  ): Promise<SecretState> {
    const written: Record<string, string> = {
      // The latest: as many as are read of it, and of a bundle besides those of others.
      [KEYS.authorities]: authorities.slice(-MAX_AUTHORITIES / 2).join(''),
      [KEYS.certificate]: current.certificate,
      [KEYS.key]: current.key,
      ...(next && { [KEYS.nextCertificate]: next.certificate, [KEYS.nextKey]: next.key }),
    };
    const own: readonly string[] = Object.values(KEYS);
    const kept = Object.entries(object.data ?? {}).filter(([key]) => !own.includes(key));
    const encoded = Object.entries(written).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
    const body = { ...object, data: Object.fromEntries([...kept, ...encoded]) };
    const path = `${this.#folder}/${encodeURIComponent(this.#name)}`;
    return this.#state(await this.#client.request({ method: 'PUT', path, body }), now);
  }

  /** If no chart has created it, the right to create Secrets is needed. */
  async #get(): Promise<unknown> {
    const path = `${this.#folder}/${encodeURIComponent(this.#name)}`;
    const found = await this.#client.request({ method: 'GET', path }).catch(unlessMissing);
    if (found !== undefined) {
      return found;
    }
    const body = { apiVersion: 'v1', kind: 'Secret', metadata: { name: this.#name }, type: 'Opaque' };
    try {
      return await this.#client.request({ method: 'POST', path: this.#folder, body });
    } catch (thrown) {
      if (!(thrown instanceof ApiError && thrown.status === 403)) {
        throw thrown;
      }
      // Otherwise nobody would look for a Secret that was deleted.
      throw new Error(`the Secret ${this.#name} is missing, and may not be created: ${thrown.message}`);
    }
  }

  #state(answer: unknown, now: number): SecretState {
    const object = parsedAs('Secret', secretSchema, answer);
    const text = (key: string) => Buffer.from(object.data?.[key] ?? '', 'base64').toString();
    const authorities = text(KEYS.authorities);
    const hold = (certificate: string, key: string) =>
      holdCertificate({ certificate: text(certificate), key: text(key), authorities }, this.#names, now);
    const next = hold(KEYS.nextCertificate, KEYS.nextKey);
    return {
      object,
      current: hold(KEYS.certificate, KEYS.key),
      next: typeof next === 'string' ? undefined : next,
      authorities,
      isEmpty: text(KEYS.certificate) === '' && text(KEYS.key) === '',
    };
  }
}

const configurationSchema = z.object({
  metadata: z.object({ resourceVersion: z.string().min(1) }),
  webhooks: z.array(z.object({ clientConfig: z.object({ caBundle: z.string().nullish() }) })).nullish(),
});

const FOLDER = '/apis/admissionregistration.k8s.io/v1';
const KINDS = ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'];
/** Other clients write these objects too. */
const TRIES = 4;

interface BundleOutcome {
  /**
   * Whether all webhooks of these configurations now trust all authorities. Missing ones trust none and
   * refuse nothing.
   */
  readonly trusted: boolean;
  /** Why not. */
  readonly problems: readonly string[];
}

/**
 * Adds authorities to the webhook configurations with these names. Others in them stay until they expire.
 * Never throws.
 */
export async function trustAuthorities(
  client: ApiClient,
  names: readonly string[],
  authorities: readonly X509Certificate[],
  now: number,
): Promise<BundleOutcome> {
  const problems: string[] = [];
  let trusted = true;
  for (const kind of KINDS) {
    for (const name of names) {
      try {
        await addTo(client, `${FOLDER}/${kind}/${encodeURIComponent(name)}`, authorities, now);
      } catch (thrown) {
        problems.push(`${kind} ${name}: ${errorText(thrown)}`);
        trusted &&= thrown instanceof ApiError && thrown.status === 404;
      }
    }
  }
  return { trusted, problems };
}

async function addTo(
  client: ApiClient,
  path: string,
  authorities: readonly X509Certificate[],
  now: number,
): Promise<void> {
  for (let left = TRIES; ; left -= 1) {
    const answer = await client.request({ method: 'GET', path });
    const { metadata, webhooks } = parsedAs('webhook configuration', configurationSchema, answer);
    const changes = (webhooks ?? []).flatMap(({ clientConfig }, index) => {
      const before = certificatesIn(Buffer.from(clientConfig.caBundle ?? '', 'base64').toString());
      const value = bundleOf(before, authorities, now);
      return value === undefined
        ? []
        : [{ op: 'add', path: `/webhooks/${index}/clientConfig/caBundle`, value }];
    });
    if (changes.length === 0) {
      return;
    }
    // The indexes of webhooks are valid only for this version.
    const test = { op: 'test', path: '/metadata/resourceVersion', value: metadata.resourceVersion };
    try {
      const contentType = 'application/json-patch+json';
      await client.request({ method: 'PATCH', path, contentType, body: [test, ...changes] });
      return;
    } catch (thrown) {
      const wasChanged = thrown instanceof ApiError && (thrown.status === 409 || thrown.status === 422);
      if (!wasChanged || left === 1) {
        throw thrown;
      }
    }
  }
}

/** In base64. `undefined` = nothing to add. */
function bundleOf(
  before: readonly X509Certificate[],
  authorities: readonly X509Certificate[],
  now: number,
): string | undefined {
  const has = (list: readonly X509Certificate[], one: X509Certificate) =>
    list.some(({ fingerprint256 }) => fingerprint256 === one.fingerprint256);
  if (authorities.every((one) => has(before, one))) {
    return undefined;
  }
  const others = before.filter((one) => !has(authorities, one) && isValid(one, now));
  const kept = others.slice(-Math.max(0, MAX_AUTHORITIES - authorities.length));
  return Buffer.from([...kept, ...authorities].map(String).join('')).toString('base64');
}
