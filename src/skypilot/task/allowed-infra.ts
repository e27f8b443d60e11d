/** Which places are allowed, and what is left of a demand that names less than one of them. */

import { formatInfra, type Infra, isCaseSensitive, mayHaveZone, parseInfra } from './infra.ts';
import { matchesPattern } from './patterns.ts';

const PARTS = ['region', 'zone'] as const;

/** A list of allowed places, such as `aws/us-east-1`, `k8s/gpu-*` or `slurm/cluster/partition`. */
export class AllowedInfra {
  readonly #allowed: readonly Infra[];

  /** `*` in the name of a region or zone stands for any characters. @throws PolicyRejected for an unreadable entry */
  constructor(allowed: readonly string[]) {
    this.#allowed = allowed.map(parseInfra);
  }

  /** The entries as `infra` has them, for texts. */
  get text(): string {
    return this.#allowed.map(formatInfra).join(', ') || 'none';
  }

  /** Whether everything that `asked` may become is allowed. */
  covers(asked: Infra): boolean {
    return this.#allowed.some(
      (allowed) =>
        (allowed.cloud === null || allowed.cloud === asked.cloud) &&
        PARTS.every((part) => {
          const [pattern, name] = [allowed[part], asked[part]];
          return pattern === null || (name !== null && isMatch(asked.cloud, pattern, name));
        }),
    );
  }

  /** Whether something that `asked` may become is allowed. */
  mayBecome(asked: Infra): boolean {
    return this.#allowed.some((allowed) => joined(allowed, asked) !== undefined);
  }

  /**
   * What is left of `asked`: each allowed place that it may become. Empty if there is none, or if SkyPilot cannot be
   * told, because the name of an allowed place is a pattern.
   */
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
    const [pattern, name] = [allowed[part], asked[part]];
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
