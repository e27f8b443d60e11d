/** Our account at Keystone: from the options to what is sent for a token. */

import { errorText } from '../base/errors.ts';
import { readTextFile } from '../config/read-file.ts';
import { KeystoneError } from './keystone-error.ts';
import type { KeystoneOptions } from './keystone-options.ts';

const MAX_SECRET_BYTES = 16_384;

/**
 * The body of the request for a token. Reads secret files again, so that a changed password counts from the next token.
 *
 * @throws KeystoneError
 */
export function tokenRequest(options: KeystoneOptions): string {
  const { application_credential_id: id } = options;
  if (id !== undefined) {
    const secret = secretOf(options, 'application_credential_secret');
    return JSON.stringify({
      auth: {
        identity: { methods: ['application_credential'], application_credential: { id, secret } },
      },
    });
  }
  const password = secretOf(options, 'password');
  const user = { name: options.username, domain: domainOf(options, 'user'), password };
  const project =
    options.project_id === undefined
      ? { name: options.project_name, domain: domainOf(options, 'project') }
      : { id: options.project_id };
  return JSON.stringify({
    auth: { identity: { methods: ['password'], password: { user } }, scope: { project } },
  });
}

function domainOf(options: KeystoneOptions, whose: 'user' | 'project'): { id: string } | { name: string } {
  const id = options[`${whose}_domain_id`];
  return id === undefined ? { name: options[`${whose}_domain_name`] ?? 'Default' } : { id };
}

/** The text of a secret, without the line break at the end of its file. @throws KeystoneError */
export function secretOf(
  options: KeystoneOptions,
  name: 'password' | 'application_credential_secret',
): string {
  const file = options[`${name}_file`];
  if (file === undefined) {
    return options[name] ?? '';
  }
  let text: string;
  try {
    text = readTextFile(file, MAX_SECRET_BYTES).replace(/\r?\n$/, '');
  } catch (thrown) {
    throw new KeystoneError('configuration', `[keystone] ${name}_file ${file}: ${errorText(thrown)}`);
  }
  if (text === '' || /[\r\n]/.test(text)) {
    // An empty one is most likely being written at this moment.
    throw new KeystoneError(
      'configuration',
      `[keystone] ${name}_file ${file}: expected one line with the secret`,
    );
  }
  return text;
}
