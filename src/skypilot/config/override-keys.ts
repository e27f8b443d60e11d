/** Which keys an override of a SkyPilot configuration may set. */
import { type Key, keysOutside } from '../../config/permissions.ts';
import { formatPath, isMapping, type Mapping, type Path, valueAt } from '../../yaml/tree.ts';

/** Keys as paths: `['kubernetes', 'pod_config']` is that key and everything below it. */
export interface OverrideKeys {
  /** Only these, if set. An empty list allows nothing. */
  readonly allowedOverrideKeys?: readonly (readonly string[])[] | null | undefined;
  /** None of these. */
  readonly disallowedOverrideKeys?: readonly (readonly string[])[] | null | undefined;
}

/** An override sets a key that it may not set. `path` is that key. */
export class OverrideKeyError extends Error {
  override readonly name = 'OverrideKeyError';
  readonly path: Path;

  constructor(path: Path, expectation: string) {
    super(`${formatPath(path)}: ${expectation}`);
    this.path = path;
  }
}

/**
 * Checks each leaf of an override, whatever the base has. SkyPilot checks as deep as the base has mappings, and accepts a text in
 * place of a mapping around a key.
 *
 * @throws OverrideKeyError for the first key that the override may not set
 */
export function checkOverrideKeys(
  base: Mapping,
  overrides: Mapping,
  { allowedOverrideKeys: allowed, disallowedOverrideKeys: disallowed }: OverrideKeys,
): void {
  for (const keys of [allowed, disallowed]) {
    // A text would be read as its letters: everything would pass as not disallowed.
    if (keys?.some((key) => !Array.isArray(key) || key.length === 0)) {
      throw new TypeError("expected override keys such as [['kubernetes', 'pod_config']]");
    }
  }
  const [outside] = allowed === null || allowed === undefined ? [] : keysOutside(overrides, allowed);
  if (outside !== undefined) {
    const shown = allowed?.map(formatPath).join(', ') || 'none';
    throw new OverrideKeyError(outside, `not in the allowed override keys: ${shown}`);
  }
  for (const key of disallowed ?? []) {
    const touched = touching(base, overrides, key);
    if (touched !== undefined) {
      const shown = disallowed?.map(formatPath).join(', ');
      throw new OverrideKeyError(touched, `in the disallowed override keys: ${shown}`);
    }
  }
}

/** The key if the override sets it, or what it has in place of a mapping of the base around the key. */
function touching(base: Mapping, overrides: Mapping, key: Key): Key | undefined {
  if (valueAt(overrides, key) !== undefined) {
    return key;
  }
  const holder = key.slice(1).map((_, index) => key.slice(0, index + 1));
  const replaced = holder.find((path) => {
    const value = valueAt(overrides, path);
    return value !== undefined && !isMapping(value);
  });
  return replaced !== undefined && valueAt(base, key) !== undefined ? replaced : undefined;
}
