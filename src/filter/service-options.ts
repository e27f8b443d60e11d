/** Options for other services, in the form shown in the sample configuration and in error messages. */
import { z } from 'zod';
import { mistakeInAuthorities, mistakeInPair } from '../config/pem.ts';
import { readTextFile } from '../config/read-file.ts';
import type { HttpClientTls } from '../http/contract.ts';

/** A host is required, as in Blazar. No credentials: the URL is shown in logs and messages. */
const endpoint = z
  .url({ protocol: /^https?$/ })
  .regex(/^https?:\/\/[^/?#@\s]+(?:[/?#][^\s]*)?$/i)
  .optional();
/** As `endpoint`, without a query and a fragment. */
const bareEndpoint = endpoint
  .unwrap()
  .regex(/^[^?#]+$/)
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
  return endpoint.meta({ serverOnly: true, url: true, description, expected });
}

/** As `endpointOption`, for a URL that is never shown, without a query, where others would log a secret. Optional. */
export function hiddenEndpointOption(description: string): typeof bareEndpoint {
  const expected = 'an http or https URL with a host, and without credentials, query and fragment';
  return bareEndpoint.meta({ serverOnly: true, description, secret: true, expected });
}

/** How long a call may take, in seconds. Not for clients. Default: 10. */
export function timeoutOption(description: string) {
  return z.int().min(1).max(3600).default(10).meta({ serverOnly: true, description, unit: 'seconds' });
}

/** How long a message of the outbox is retried, in seconds. Not for clients. Default: a week. */
export function maxAgeOption(description: string) {
  const most = 31_536_000;
  return z.int().min(60).max(most).default(604_800).meta({ serverOnly: true, description, unit: 'seconds' });
}

/**
 * For `superRefine`: a client certificate and its key are set together and match, and `_ca_file` has certificates.
 * `prefix`: of the option names.
 */
export function requireCertificateWithKey(
  values: Readonly<Record<string, unknown>>,
  prefix: string,
  check: { addIssue(issue: { code: 'custom'; path: string[]; message: string }): void },
): void {
  const cert = `${prefix}_client_cert_file`;
  const key = `${prefix}_client_key_file`;
  if ((values[cert] === undefined) !== (values[key] === undefined)) {
    const message = `expected ${cert} and ${key} together, got one of them`;
    check.addIssue({ code: 'custom', path: [values[cert] === undefined ? key : cert], message });
    return;
  }
  const file = (name: string) => {
    const path = values[name];
    return { path: String(path), text: typeof path === 'string' ? readable(path) : undefined };
  };
  const [authorities, own, ownKey] = [file(`${prefix}_ca_file`), file(cert), file(key)];
  // A call would fail, and be allowed with an option like external_service_allow_on_error.
  const mistakes = {
    [`${prefix}_ca_file`]:
      authorities.text && mistakeInAuthorities(authorities.text.toString(), authorities.path),
    [cert]: own.text && ownKey.text && mistakeInPair(own.text, ownKey.text, [own.path, ownKey.path]),
  };
  for (const [option, message] of Object.entries(mistakes)) {
    if (message !== undefined) {
      check.addIssue({ code: 'custom', path: [option], message });
    }
  }
}

/** `undefined` = it is reported as unreadable. */
function readable(file: string): Buffer | undefined {
  try {
    return contents(file);
  } catch {
    return undefined;
  }
}

/** The certificates for an HTTP client, from the files named in options. */
export function tlsFrom(
  ca: string | undefined,
  cert: string | undefined,
  key: string | undefined,
): HttpClientTls {
  return { ca: contents(ca), cert: contents(cert), key: contents(key) };
}

function contents(file: string | undefined): Buffer | undefined {
  return file === undefined ? undefined : Buffer.from(readTextFile(file));
}

/** A secret for a header: ASCII text without line breaks. Not for clients. Default: empty. */
export function tokenOption(description: string): typeof token {
  const expected = 'ASCII text without line breaks';
  return token.meta({ serverOnly: true, description, secret: true, expected });
}

/** The path of a PEM file. `secretFile`: it must not be world-readable. Not for clients. Optional. */
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

/** Appends to the path of an endpoint, with or without a slash at its end. */
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
