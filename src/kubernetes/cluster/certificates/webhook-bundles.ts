/** The authorities that API servers trust when they call webhooks: `caBundle` of webhook configurations. */
import type { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { errorText } from '../../../base/errors.ts';
import { type ApiClient, ApiError } from '../api/contract.ts';
import { certificatesIn, isValid, MAX_AUTHORITIES } from './held-certificate.ts';

const configurationSchema = z.object({
  metadata: z.object({ resourceVersion: z.string().min(1) }),
  webhooks: z.array(z.object({ clientConfig: z.object({ caBundle: z.string().nullish() }) })).nullish(),
});

const FOLDER = '/apis/admissionregistration.k8s.io/v1';
const KINDS = ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'];
/** Others write these objects too. */
const TRIES = 4;

export interface BundleOutcome {
  /** Whether every webhook of these configurations now trusts all authorities. Those that are absent trust nobody and refuse nothing. */
  readonly trusted: boolean;
  /** Why not, or which are absent. */
  readonly problems: readonly string[];
}

/** Adds authorities to the webhook configurations of these names. Others in them stay until they expire. Never throws. */
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
        trusted = trusted && thrown instanceof ApiError && thrown.status === 404;
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
    const parsed = configurationSchema.safeParse(await client.request({ method: 'GET', path }));
    if (!parsed.success) {
      throw new Error('the API server answered with something that is not a webhook configuration');
    }
    const { metadata, webhooks } = parsed.data;
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
    // The numbers of webhooks hold for this version alone.
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

/** In base64. `undefined` = nothing is missing. */
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
