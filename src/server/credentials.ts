/** What proves who is who: the tokens of callers, and certificates. All of it may stand in files that change while the service runs. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { readTextFile, systemErrorText } from '../config/read-file.ts';
import { errorText } from '../errors.ts';
import type { ServiceOptions } from './options.ts';

/** A file that can't be used as what it is meant for. `message` says nothing of its content. */
export class CredentialError extends Error {
  override readonly name = 'CredentialError';
  readonly option: 'tokens_file' | 'tls_cert_file' | 'client_ca_file';

  constructor(option: CredentialError['option'], message: string) {
    super(message);
    this.option = option;
  }
}

/** The tokens of `tokens` and `tokens_file` together. @throws CredentialError */
export function readTokens({ tokens, tokens_file }: ServiceOptions): string[] {
  if (tokens_file === undefined) {
    return tokens;
  }
  let text: string;
  try {
    text = readTextFile(tokens_file);
  } catch (thrown) {
    throw new CredentialError('tokens_file', `${tokens_file} could not be read: ${systemErrorText(thrown)}`);
  }
  const further = text
    .split(/\r?\n/)
    .map((line, index) => ({ token: line.trim(), line: index + 1 }))
    .filter(({ token }) => token !== '' && !token.startsWith('#'));
  const wrong = further.find(({ token }) => !/^[\x21-\x7e]+$/.test(token));
  if (wrong !== undefined) {
    throw new CredentialError(
      'tokens_file',
      `${tokens_file}:${wrong.line}: expected one token a line, an ASCII text without spaces`,
    );
  }
  if (further.length === 0) {
    // Cut off while it was written, most likely. Without tokens everyone could ask.
    throw new CredentialError('tokens_file', `${tokens_file}: expected at least one token, got none`);
  }
  return [...tokens, ...further.map(({ token }) => token)];
}

/** Certificate, key and authorities, `undefined` for http. @throws CredentialError, also for a key of another certificate. */
export function readTls(options: ServiceOptions): SecureContextOptions | undefined {
  const { tls_cert_file: certFile, tls_key_file: keyFile, client_ca_file: caFile } = options;
  if (certFile === undefined || keyFile === undefined) {
    return undefined;
  }
  try {
    const material = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
    createSecureContext(material);
    if (caFile === undefined) {
      return material;
    }
    return { ...material, ca: readAuthorities(caFile) };
  } catch (thrown) {
    if (thrown instanceof CredentialError) {
      throw thrown;
    }
    throw new CredentialError(
      'tls_cert_file',
      `${certFile} and ${keyFile} are no certificate with its key, in PEM: ${systemErrorText(thrown)}`,
    );
  }
}

/** A file without any certificate makes a context that trusts Node's own authorities: everyone who has any certificate. */
function readAuthorities(file: string): Buffer {
  const ca = readFileSync(file);
  if (!ca.includes('-----BEGIN CERTIFICATE-----')) {
    throw new CredentialError('client_ca_file', `${file} holds no certificate in PEM`);
  }
  try {
    createSecureContext({ ca });
  } catch (thrown) {
    throw new CredentialError('client_ca_file', `${file} is no certificate in PEM: ${errorText(thrown)}`);
  }
  return ca;
}

/** What is wrong with the files, as `config validate` says it. */
export function credentialProblems(options: ServiceOptions): CredentialError[] {
  return [readTokens, readTls].flatMap((read) => {
    try {
      read(options);
      return [];
    } catch (thrown) {
      if (thrown instanceof CredentialError) {
        return thrown;
      }
      throw thrown;
    }
  });
}

/**
 * The tokens that are accepted now. Digests of equal length are compared, all of them every time: how long it takes says
 * nothing about a token.
 */
export class AcceptedTokens {
  #digests: readonly Buffer[] = [];

  constructor(tokens: readonly string[]) {
    this.replace(tokens);
  }

  replace(tokens: readonly string[]): void {
    this.#digests = tokens.map(digest);
  }

  /** Whether callers must send a token at all. */
  get required(): boolean {
    return this.#digests.length > 0;
  }

  accept(token: string): boolean {
    if (!this.required) {
      return true;
    }
    const sent = digest(token);
    return this.#digests.filter((accepted) => timingSafeEqual(accepted, sent)).length > 0;
  }

  /** What can be signed with so that it is valid for as long as one of the tokens is. */
  keys(): string[] {
    return this.#digests.map((accepted) => accepted.toString('base64'));
  }
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
