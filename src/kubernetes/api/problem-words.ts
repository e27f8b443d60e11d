/** Why objects cannot be followed, for `/readyz` and the log. Without names of accounts, which not everybody may read. */
import { errorText } from '../../errors.ts';
import { ApiError } from './contract.ts';

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
