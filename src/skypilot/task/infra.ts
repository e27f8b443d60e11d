/**
 * Reads where a task may run: `infra`, or the older `cloud`, `region` and `zone`. Source: SkyPilot 0.13, its
 * infra strings and its registry of clouds.
 */
import type { Mapping } from '../../base/yaml/tree.ts';
import { PolicyRejected } from '../admin-policy.ts';
import type { Resources } from './resources.ts';

/** A place. `null` = any. */
export interface Infra {
  /** In lower case and without aliases: `kubernetes`, never `k8s`. */
  readonly cloud: string | null;
  /** A region, a Kubernetes context, an SSH node pool, or a Slurm cluster. */
  readonly region: string | null;
  /** A zone, or a Slurm partition. */
  readonly zone: string | null;
}

const ALIASES: Readonly<Record<string, string>> = { k8s: 'kubernetes', digitalocean: 'do' };
/** Clusters of the operator: their names are case-sensitive, and SkyPilot has no catalog of their machines. */
export const OWN_CLUSTERS = new Set<string | null>(['kubernetes', 'ssh', 'slurm']);
/** Invisible characters and blanks other than a space, which two readers may trim differently. */
const UNREADABLE = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u;
/** SkyPilot's prefix for the Kubernetes contexts of SSH node pools. */
const POOL_PREFIX = 'ssh-';

/**
 * Reads `aws`, `aws/us-east-1/us-east-1a`, `k8s/my/context`, `ssh/pool`, `slurm/cluster/partition`; `*` =
 * any.
 *
 * @throws PolicyRejected for a form that SkyPilot does not accept
 */
export function parseInfra(text: string): Infra {
  return pooled(splitInfra(text));
}

function splitInfra(text: string): Infra {
  if (text.trim() === '') {
    return { cloud: null, region: null, zone: null };
  }
  const trimmed = withoutSlashes(text.trim());
  const [first = '', ...rest] = trimmed.split('/').map((part) => part.trim());
  const cloud = canonicalCloud(first);
  const isContext = !mayHaveZone(cloud);
  if (UNREADABLE.test(text) || [first, ...rest].includes('') || (!isContext && rest.length > 2)) {
    throw unreadable('infra');
  }
  return isContext ? anyOf(cloud, rest.join('/')) : anyOf(cloud, rest[0], rest[1]);
}

/**
 * The place where one alternative may run.
 *
 * @throws PolicyRejected for a form that SkyPilot does not accept, such as `infra` beside `cloud`
 */
export function infraOf(resources: Resources): Infra {
  const place = writtenInfra(resources);
  const { region } = place;
  // The older spelling includes the prefix of SSH node pools, the new one does not.
  const isPrefixed = (resources.infra ?? null) === null && place.cloud === 'ssh';
  return isPrefixed && region?.startsWith(POOL_PREFIX)
    ? anyOf(place.cloud, region.slice(POOL_PREFIX.length), place.zone)
    : pooled(place);
}

/** The same, with the names of contexts and pools as written. @throws PolicyRejected as `infraOf` */
export function writtenInfra({ infra, cloud, region, zone }: Resources): Infra {
  const older = [cloud, region, zone].map((value, index) => {
    if (value !== undefined && value !== null && (typeof value !== 'string' || UNREADABLE.test(value))) {
      throw unreadable(['cloud', 'region', 'zone'][index] ?? '');
    }
    return typeof value === 'string' ? value : null;
  });
  if (infra !== undefined && infra !== null) {
    if (typeof infra !== 'string' || older.some((value) => value !== null)) {
      throw unreadable('infra');
    }
    return splitInfra(infra);
  }
  const [given = null, where, within] = older;
  const place = anyOf(given === null ? null : canonicalCloud(given), where, within);
  // SkyPilot would write them as one name, and read it as another context.
  if (!mayHaveZone(place.cloud) && place.zone !== null) {
    throw unreadable('zone');
  }
  return place;
}

/** Formats a place as in `infra`; `*` = any place. */
export function formatInfra({ cloud, region, zone }: Infra): string {
  const parts = [cloud, region, zone].map((part) => part ?? '*');
  // Part by part: the name of a context may end in `/*`.
  while (parts.length > 1 && parts.at(-1) === '*') {
    parts.pop();
  }
  return parts.join('/');
}

/** Whether names in a cloud are case-sensitive: those of contexts, pools, clusters and partitions are. */
export function isCaseSensitive(cloud: string | null): boolean {
  return cloud === null || OWN_CLUSTERS.has(cloud);
}

/** The names of contexts and pools may contain slashes, so all further parts belong to the name. */
function mayHaveZone(cloud: string | null): boolean {
  return cloud !== 'kubernetes' && cloud !== 'ssh';
}

/** Without slashes at its ends. No pattern: it would take quadratic time for many slashes. */
function withoutSlashes(text: string): string {
  let start = 0;
  let end = text.length;
  while (text[start] === '/') {
    start += 1;
  }
  while (end > start && text[end - 1] === '/') {
    end -= 1;
  }
  return text.slice(start, end);
}

/** In lower case and without aliases. */
export function canonicalCloud(name: string): string {
  const lower = name.trim().toLowerCase();
  return (Object.hasOwn(ALIASES, lower) ? ALIASES[lower] : lower) ?? lower;
}

/** Clouds of `allowed_clouds` that have no machines. */
const STORES = new Set(['cloudflare', 'coreweave', 'vastdata', 'huggingface']);

/** Those of `allowed_clouds`, which SkyPilot reads only from its server. `null` = it chooses from all clouds. */
export function cloudsOf(allowed: unknown): readonly string[] | null {
  return Array.isArray(allowed) && allowed.length > 0 && allowed.every((one) => typeof one === 'string')
    ? [...new Set(allowed.map((one) => canonicalCloud(one)).filter((one) => one !== '' && !STORES.has(one)))]
    : null;
}

function anyOf(cloud: string | null, region: string | null = null, zone: string | null = null): Infra {
  const any = (name: string | null) => (name === '' || name === '*' ? null : name);
  return { cloud: any(cloud), region: any(region), zone: any(zone) };
}

/** A pool is a context: both spellings have the same result. */
function pooled(place: Infra): Infra {
  return place.cloud === 'kubernetes' && place.region?.startsWith(POOL_PREFIX)
    ? { ...place, cloud: 'ssh', region: place.region.slice(POOL_PREFIX.length) }
    : place;
}

function unreadable(name: string): PolicyRejected {
  return new PolicyRejected(
    `resources.${name}: expected where to run as infra alone, such as aws/us-east-1, k8s/my-context or slurm/cluster/partition.`,
  );
}

const PARTS = ['region', 'zone'] as const;

/** A list of allowed places, such as `aws/us-east-1`, `k8s/gpu-*` or `slurm/cluster/partition`. */
export class AllowedInfra {
  readonly #allowed: readonly Infra[];

  /** `*` in a region or zone stands for any characters. @throws PolicyRejected for an unreadable entry */
  constructor(allowed: readonly string[]) {
    this.#allowed = allowed.map(parseInfra);
  }

  /** The entries in the form of `infra`, for messages. */
  get text(): string {
    return this.#allowed.map(formatInfra).join(', ') || 'none';
  }

  /** Whether every place that `asked` may become is allowed. */
  covers(asked: Infra): boolean {
    return this.#allowed.some(
      (allowed) =>
        (allowed.cloud === null || allowed.cloud === asked.cloud) &&
        PARTS.every((part) => {
          const pattern = allowed[part];
          const name = asked[part];
          return pattern === null || (name !== null && isMatch(asked.cloud, pattern, name));
        }),
    );
  }

  /**
   * The changes of an alternative's resources that restrict it to allowed places; an empty one if it can run
   * nowhere else. `narrows`: each allowed place becomes an alternative. Default: yes.
   *
   * @throws PolicyRejected if no place is left; `unnamed`: the reason, if `asked` might be allowed
   */
  changesFor(
    asked: Infra,
    { isExec, narrows = true, unnamed }: { isExec: boolean; narrows?: boolean; unnamed: string },
  ): Mapping[] {
    if (!this.mayBecome(asked)) {
      throw this.rejection(`Tasks may not run on ${formatInfra(asked)} here.`);
    }
    // `exec` starts nothing: the task runs on the existing cluster.
    if (isExec || this.covers(asked)) {
      return [{}];
    }
    const places = narrows ? this.narrowed(asked) : [];
    if (places.length === 0) {
      throw this.rejection(unnamed);
    }
    return places.map((place) => ({
      infra: formatInfra(place),
      cloud: undefined,
      region: undefined,
      zone: undefined,
    }));
  }

  /** A rejection that names the allowed places. */
  rejection(reason: string): PolicyRejected {
    return new PolicyRejected(`${reason} Set infra to one of: ${this.text}.`);
  }

  /** Whether any place that `asked` may become is allowed. */
  mayBecome(asked: Infra): boolean {
    return this.#allowed.some((allowed) => joined(allowed, asked) !== undefined);
  }

  /** The number of clouds to which `asked` can be limited. */
  cloudsFor(asked: Infra): number {
    return new Set(this.narrowed(asked).map(({ cloud }) => cloud)).size;
  }

  /** The allowed places that `asked` may become, except patterns, which cannot be passed to SkyPilot. */
  narrowed(asked: Infra): Infra[] {
    const places = this.#allowed.flatMap((allowed) => {
      const place = joined(allowed, asked);
      return place === undefined || hasPattern(place) ? [] : [place];
    });
    return [...new Map(places.map((place) => [formatInfra(place), place])).values()];
  }
}

function joined(allowed: Infra, asked: Infra): Infra | undefined {
  if (allowed.cloud !== null && asked.cloud !== null && allowed.cloud !== asked.cloud) {
    return undefined;
  }
  const cloud = asked.cloud ?? allowed.cloud;
  const names = PARTS.map((part) => {
    const pattern = allowed[part];
    const name = asked[part];
    return pattern !== null && name !== null && !isMatch(cloud, pattern, name)
      ? undefined
      : (name ?? pattern);
  });
  const [region, zone] = names;
  if (region === undefined || zone === undefined || (zone !== null && !mayHaveZone(cloud))) {
    return undefined;
  }
  return { cloud, region, zone };
}

function hasPattern({ region, zone }: Infra): boolean {
  return [region, zone].some((name) => name?.includes('*'));
}

function isMatch(cloud: string | null, pattern: string, name: string): boolean {
  return isCaseSensitive(cloud)
    ? matchesPattern(pattern, name)
    : matchesPattern(pattern.toLowerCase(), name.toLowerCase());
}

/**
 * Whether a text matches a pattern in which `*` stands for any characters, also none. The time depends only
 * on the lengths, not on the pattern. Case-sensitive.
 */
export function matchesPattern(pattern: string, text: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) {
    return pattern === text;
  }
  const end = text.length - last.length;
  if (end < first.length || !text.startsWith(first) || !text.endsWith(last)) {
    return false;
  }
  let at = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found < 0 || found + part.length > end) {
      return false;
    }
    at = found + part.length;
  }
  return true;
}
