/** Options that name another service, in the form that the sample configuration and mistakes show them. */
import { z } from 'zod';

/** Needs a host, as in Blazar. No credentials: the URL is shown in logs and messages. */
const endpoint = z
  .url({ protocol: /^https?$/ })
  .regex(/^https?:\/\/[^/?#@\s]+(?:[/?#][^\s]*)?$/i)
  .optional();
/** Only characters that are valid in a header. */
const token = z
  .string()
  .regex(/^[\x20-\x7e]*$/)
  .default('');
const file = z.string().optional();

/** The http or https URL of a service, with a host and without credentials. Not for clients. Optional. */
export function endpointOption(description: string): typeof endpoint {
  const expected = 'an http or https URL with a host and without credentials';
  return endpoint.meta({ serverOnly: true, description, expected });
}

/** A secret for a header: ASCII text without line breaks. Not for clients. Default: empty. */
export function tokenOption(description: string): typeof token {
  const expected = 'ASCII text without line breaks';
  return token.meta({ serverOnly: true, description, secret: true, expected });
}

/** The path of a file in PEM. `secretFile`: nobody else may read it. Not for clients. Optional. */
export function pemFileOption(description: string, secretFile = false): typeof file {
  const expected = 'the path of a file';
  return file.meta({
    serverOnly: true,
    description,
    file: true,
    ...(secretFile ? { secretFile } : {}),
    expected,
  });
}

/** Appends to the path of an endpoint, whether or not it ends in a slash. */
export function endpointBelow(base: string | undefined, name: string): string | undefined {
  if (base === undefined) {
    return undefined;
  }
  const url = new URL(base);
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/${name}`;
  return url.href;
}

/** The headers for the values of two `tokenOption`s. Empty = the header is not sent. */
export function tokenHeaders(token: string, bearer: string): Record<string, string> {
  return {
    ...(token === '' ? {} : { 'X-Auth-Token': token }),
    ...(bearer === '' ? {} : { Authorization: `Bearer ${bearer}` }),
  };
}
