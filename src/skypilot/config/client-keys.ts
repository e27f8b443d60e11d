import type { Problem } from '../../errors.ts';
import { formatPath, valueAt } from '../../yaml/tree.ts';
import { CLIENT_KEYS } from './config-schema.ts';
import type { Source } from './levels.ts';
import { formatKeys } from './permitted-keys.ts';

/** Warnings about keys in the configuration of a server that only clients use: they do not reach the clients. */
export function clientKeyProblems({ level, tree, originOf }: Source): Problem[] {
  return level !== 'server'
    ? []
    : CLIENT_KEYS.filter((key) => (valueAt(tree, key) ?? null) !== null).map((key) => ({
        severity: 'warning',
        origin: originOf(key),
        message: `${formatPath(key)}: clients do not get it from a server; only a client may set ${formatKeys(CLIENT_KEYS)}`,
      }));
}
