/** What proves who is who: the tokens of callers, and certificates. All of it may stand in files that change while the service runs. */
import { createHash, createHmac, timingSafeEqual, X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { whyWritable } from '../config/file-modes.ts';
import { readTextFile } from '../config/read-file.ts';
import { errorText } from '../errors.ts';

/** A file that can't be used as what it is meant for. `message` says nothing of its content. */
export class CredentialError extends Error {
  override readonly name = 'CredentialError';
  readonly option: 'tokens_file' | 'tls_cert_file' | 'tls_key_file' | 'client_ca_file';

  constructor(option: CredentialError['option'], message: string) {
    super(message);
    this.option = option;
  }
}

/** The options of a protocol that say which tokens it accepts. */
export interface TokenOptions {
  readonly tokens: readonly string[];
  readonly tokens_file?: string | undefined;
}

/** The tokens of `tokens` and `tokens_file` together. @throws CredentialError */
export function readTokens({ tokens, tokens_file }: TokenOptions): string[] {
  if (tokens_file === undefined) {
    return [...tokens];
  }
  const further = readFile('tokens_file', tokens_file)
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

/** What the service shows, and whose certificates it believes. */
export interface TlsOptions {
  readonly tls_cert_file?: string | undefined;
  readonly tls_key_file?: string | undefined;
  readonly client_ca_file?: string | undefined;
}

/** Certificate, key and authorities, `undefined` for http. @throws CredentialError, also for a key of another certificate. */
export function readTls(options: TlsOptions): SecureContextOptions | undefined {
  const { tls_cert_file: certFile, tls_key_file: keyFile, client_ca_file: caFile } = options;
  if (certFile === undefined || keyFile === undefined) {
    return undefined;
  }
  // As bytes: an empty text would count as none given.
  const cert = Buffer.from(readFile('tls_cert_file', certFile));
  const key = Buffer.from(readFile('tls_key_file', keyFile));
  try {
    createSecureContext({ cert, key });
  } catch (thrown) {
    throw new CredentialError(
      'tls_cert_file',
      `${certFile} and ${keyFile} are no certificate with its key, in PEM: ${errorText(thrown)}`,
    );
  }
  return caFile === undefined ? { cert, key } : { cert, key, ca: readAuthorities(caFile) };
}

/** All of them are looked at: OpenSSL passes over in silence what it can't read, such as the end of a file that was cut off. */
export function readAuthorities(file: string): string {
  const ca = readFile('client_ca_file', file);
  const certificates = ca.split(/^(?=-----BEGIN )/m).filter((part) => part.startsWith('-----BEGIN '));
  if (certificates.length === 0) {
    throw new CredentialError('client_ca_file', `${file} holds no certificate in PEM`);
  }
  for (const [index, certificate] of certificates.entries()) {
    try {
      new X509Certificate(certificate);
    } catch (thrown) {
      throw new CredentialError(
        'client_ca_file',
        `${file}: number ${index + 1} is no certificate in PEM: ${errorText(thrown)}`,
      );
    }
  }
  return ca;
}

function readFile(option: CredentialError['option'], file: string): string {
  const reason = whyWritable(file);
  if (reason !== undefined) {
    throw new CredentialError(option, `${file}: ${reason}`);
  }
  try {
    return readTextFile(file);
  } catch (thrown) {
    throw new CredentialError(option, `${file} could not be read: ${errorText(thrown)}`);
  }
}

/** What is wrong with the files, as `config validate` says it. */
export function credentialProblems(options: TokenOptions & TlsOptions): CredentialError[] {
  return mistakesOf(
    () => readTokens(options),
    () => readTls(options),
  );
}

/** The same for what reads such files. */
export function mistakesOf(...reading: readonly (() => unknown)[]): CredentialError[] {
  return reading.flatMap((read) => {
    try {
      read();
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
    return !this.required || this.#accepted(token) !== undefined;
  }

  /** What a session keeps of the token with which it ends; `undefined` when it is not one of them. */
  sessionKeyOf(token: string): string | undefined {
    const accepted = this.#accepted(token);
    return accepted && sessionKey(accepted);
  }

  /** Every session that has not ended keeps one of them. */
  sessionKeys(): string[] {
    return this.#digests.map(sessionKey);
  }

  #accepted(token: string): Buffer | undefined {
    const sent = digest(token);
    return this.#digests.filter((accepted) => timingSafeEqual(accepted, sent))[0];
  }
}

/** Derived, so that it is of use for nothing else. */
function sessionKey(accepted: Buffer): string {
  return createHmac('sha256', accepted).update('blazar-enforcement session').digest('base64');
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
