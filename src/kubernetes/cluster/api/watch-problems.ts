/** What it means when a list or a watch fails. */
import { errorText } from '../../../base/errors.ts';
import { ApiError, type RestartReason } from './contract.ts';
import { isExpired } from './list.ts';

/** Why objects cannot be followed, for `/readyz` and the log. Without names of accounts, which not everybody may read. */
export function problemWords(
  thrown: unknown,
  path: string,
  server: string,
  hints: { readonly notFound?: string; readonly forbidden?: string },
): string {
  const resource = path.split('/').at(-1) ?? path;
  if (!(thrown instanceof ApiError)) {
    return errorText(thrown);
  }
  switch (thrown.status) {
    case 401:
      return `${server} does not accept the credentials (401)`;
    case 403:
      return `${server}: the account may not list and watch ${resource}${hint(hints.forbidden)}`;
    case 404:
      return `${server} does not know ${resource}${hint(hints.notFound)}`;
    default:
      return `${server} refuses to list or watch ${resource}: ${thrown.status} ${thrown.reason}`;
  }
}

function hint(words: string | undefined): string {
  return words === undefined ? '' : `: ${words}`;
}

/** A watch is overdue. */
export class SilentError extends Error {}

export function reasonOf(thrown: unknown): RestartReason {
  return thrown instanceof SilentError ? 'silent' : isExpired(thrown) ? 'expired' : 'failed';
}

/** Versions are numbers of etcd, or else no two can be compared. */
export function isOlder(one: string, other: string): boolean {
  return /^\d{1,20}$/.test(one) && /^\d{1,20}$/.test(other) && BigInt(one) < BigInt(other);
}
