/** The token and the secrets for the receiver, from options or from files. */

import { errorText } from '../base/errors.ts';
import { readTextFile } from '../config/read-file.ts';

interface SecretOptions {
  readonly webhook_token: string;
  readonly webhook_token_file?: string | undefined;
  readonly webhook_secret: string;
  readonly webhook_secret_file?: string | undefined;
}

type Option = 'webhook_token' | 'webhook_token_file' | 'webhook_secret' | 'webhook_secret_file';

/** `message` never holds the content. */
class SecretError extends Error {
  readonly option: Option;

  constructor(option: Option, message: string) {
    super(message);
    this.option = option;
  }
}

/** Source: Standard Webhooks, "Signature scheme". */
const PREFIX = 'whsec_';
const LEAST = 24;
const MOST = 64;
const EXPECTED_SECRET = `${PREFIX} and ${LEAST} to ${MOST} bytes in base64`;
/** More would make each message dearer for no use. */
const MOST_SECRETS = 4;

/** Empty = there is none. @throws if the file cannot be used */
export function tokenOf({ webhook_token: token, webhook_token_file: file }: SecretOptions): string {
  if (file === undefined) {
    return token;
  }
  const [first, second] = linesOf('webhook_token_file', file);
  if (first === undefined || second !== undefined || !/^[\x20-\x7e]+$/.test(first)) {
    throw new SecretError('webhook_token_file', `${file}: expected one line of ASCII text`);
  }
  return first;
}

/** The keys of the signatures; empty = messages are not signed. @throws if one of them is none */
export function secretsOf({
  webhook_secret: secret,
  webhook_secret_file: file,
}: SecretOptions): readonly Buffer[] {
  if (file === undefined) {
    return secret === '' ? [] : [keyOf('webhook_secret', secret)];
  }
  const lines = linesOf('webhook_secret_file', file);
  if (lines.length === 0 || lines.length > MOST_SECRETS) {
    const message = `${file}: expected one to ${MOST_SECRETS} secrets, one on each line, got ${lines.length}`;
    throw new SecretError('webhook_secret_file', message);
  }
  return lines.map((line) => keyOf('webhook_secret_file', line, `${file}: `));
}

/** For `config validate`. */
export function mistakeInSecrets(options: SecretOptions): { option: string; message: string }[] {
  return [tokenOf, secretsOf].flatMap((read) => {
    try {
      read(options);
      return [];
    } catch (thrown) {
      if (thrown instanceof SecretError) {
        return { option: thrown.option, message: thrown.message };
      }
      throw thrown;
    }
  });
}

function keyOf(option: Option, secret: string, place = ''): Buffer {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : '';
  const key = Buffer.from(text, 'base64');
  const isBase64 = key.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '');
  if (!isBase64 || key.length < LEAST || key.length > MOST) {
    throw new SecretError(option, `${place}expected ${EXPECTED_SECRET}`);
  }
  return key;
}

function linesOf(option: Option, file: string): string[] {
  try {
    return readTextFile(file)
      .split(/\r?\n/)
      .map((line) => line.trim())
      .filter((line) => line !== '' && !line.startsWith('#'));
  } catch (thrown) {
    throw new SecretError(option, `${file} could not be read: ${errorText(thrown)}`);
  }
}
