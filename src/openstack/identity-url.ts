/** Tokens of Keystone are issued below this path of its version 3. */
export const TOKENS_PATH = '/auth/tokens';

/**
 * The root of Keystone's version 3, without a slash at its end: `/v3` is appended unless `auth_url` ends in it. Throws an `Error`
 * that says what is wrong with the address.
 */
export function identityUrl(authUrl: string): string {
  const url = URL.canParse(authUrl) ? new URL(authUrl) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new Error('expected an http or https URL, such as https://keystone.example.org:5000/v3');
  }
  if (url.username !== '' || url.password !== '') {
    throw new Error('expected an address without a user name and a password: these are options of their own');
  }
  if (url.search !== '' || url.hash !== '') {
    throw new Error('expected an address without "?" and "#"');
  }
  const path = url.pathname.replace(/\/+$/, '');
  if (/\/v2(\.\d+)?$/.test(path)) {
    throw new Error(`expected the address of version 3, got ${path}: version 2 of Keystone is not supported`);
  }
  if (path.endsWith(TOKENS_PATH)) {
    throw new Error(`expected the address without ${TOKENS_PATH}`);
  }
  return `${url.origin}${path}${path.endsWith('/v3') ? '' : '/v3'}`;
}
