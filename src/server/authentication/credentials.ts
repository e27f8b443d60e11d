/** Tokens and certificates. Their files may change while the service runs. */
import { X509Certificate } from 'node:crypto';
import type { SecureContextOptions } from 'node:tls';
import { errorText } from '../../base/errors.ts';
import { mistakeInAuthorities, mistakeInPair, mistakeInTime } from '../../config/pem.ts';
import { readTextFile, whyWritable } from '../../config/read-file.ts';
import { MIN_TOKEN_LENGTH, TOKEN_FORM } from '../../config/secret.ts';

const USERS = ['operator', 'reader', 'metrics'] as const;
type UserKind = (typeof USERS)[number];
/** The options that hold tokens. Each has a companion option for a file with more tokens. */
type TokenList = 'tokens' | `${UserKind}_tokens`;

/** A token or certificate file that cannot be used. `message` never holds its content. */
class CredentialError extends Error {
  override readonly name = 'CredentialError';
  readonly option: TokenList | `${TokenList}_file` | 'tls_cert_file' | 'tls_key_file' | 'client_ca_file';

  constructor(option: CredentialError['option'], message: string) {
    super(message);
    this.option = option;
  }
}

export interface TokenOptions {
  readonly tokens: readonly string[];
  readonly tokens_file?: string | undefined;
}

/** The tokens from `tokens` and `tokens_file`, or from the pair of options `list`. @throws CredentialError */
export function readTokens({ tokens, tokens_file }: TokenOptions, list: TokenList = 'tokens'): string[] {
  if (tokens_file === undefined) {
    return [...tokens];
  }
  const option = `${list}_file` as const;
  const further = readFile(option, tokens_file)
    .split(/\r?\n/)
    .map((line, index) => ({ token: line.trim(), line: index + 1 }))
    .filter(({ token }) => token !== '' && !token.startsWith('#'));
  const wrong = further.find(({ token }) => !TOKEN_FORM.test(token));
  if (wrong !== undefined) {
    throw new CredentialError(
      option,
      `${tokens_file}:${wrong.line}: expected one token on each line, an ASCII text of at least ${MIN_TOKEN_LENGTH} characters without spaces`,
    );
  }
  if (further.length === 0) {
    // Most likely the file was truncated while it was written. Without tokens every client would be accepted.
    throw new CredentialError(option, `${tokens_file}: expected at least one token, got none`);
  }
  return [...tokens, ...further.map(({ token }) => token)];
}

/** `[service]`: the tokens for Blazar, for users and for metrics. */
export type ServiceTokenOptions = TokenOptions &
  Readonly<Record<`${UserKind}_tokens`, readonly string[]>> &
  Readonly<Partial<Record<`${UserKind}_tokens_file`, string | undefined>>>;

export type UserTokens = Readonly<Record<UserKind, readonly string[]>>;

/** @throws CredentialError also for a token in two of the lists: its rights would be ambiguous */
export function readUserTokens(options: ServiceTokenOptions): UserTokens {
  const read = (list: `${UserKind}_tokens`) =>
    readTokens({ tokens: options[list], tokens_file: options[`${list}_file`] }, list);
  const users = {
    operator: read('operator_tokens'),
    reader: read('reader_tokens'),
    metrics: read('metrics_tokens'),
  };
  if (Object.values(users).some((tokens) => tokens.length > 0)) {
    refuseShared(options, users, { tokens: readTokens(options) });
  }
  return users;
}

/** `others`: further lists by their names. @throws CredentialError that names the lists, never the token */
export function refuseShared(
  options: ServiceTokenOptions,
  users: UserTokens,
  others: Readonly<Record<string, readonly string[]>>,
): void {
  const beside = new Map(Object.entries(others));
  for (const kind of USERS) {
    const option = `${kind}_tokens` as const;
    const [name] = [...beside].find(([, other]) => users[kind].some((one) => other.includes(one))) ?? [];
    if (name !== undefined) {
      throw new CredentialError(
        options[option].length > 0 ? option : `${option}_file`,
        `expected tokens that are in no other list, got one that is in ${name} too`,
      );
    }
    beside.set(option, users[kind]);
  }
}

export interface TlsOptions {
  readonly tls_cert_file?: string | undefined;
  readonly tls_key_file?: string | undefined;
  readonly client_ca_file?: string | undefined;
}

interface Tls extends SecureContextOptions {
  readonly cert: Buffer;
}

/** Certificate, key and authorities; `undefined` for http. @throws CredentialError also if key and certificate do not match */
export function readTls(options: TlsOptions): Tls | undefined {
  const { tls_cert_file: certFile, tls_key_file: keyFile, client_ca_file: caFile } = options;
  if (certFile === undefined || keyFile === undefined) {
    return undefined;
  }
  const cert = Buffer.from(readFile('tls_cert_file', certFile));
  const key = Buffer.from(readFile('tls_key_file', keyFile));
  refuse('tls_cert_file', mistakeInPair(cert, key, [certFile, keyFile]));
  return caFile === undefined ? { cert, key } : { cert, key, ca: readAuthorities(caFile) };
}

/** When clients begin to refuse the certificate, in seconds since 1970. */
export function expiryOf({ cert }: Tls): number {
  return Date.parse(new X509Certificate(cert).validTo) / 1000;
}

/** As `readTls`. @throws CredentialError also for a certificate that clients refuse now */
export function readValidTls(options: TlsOptions): Tls | undefined {
  const tls = readTls(options);
  refuse('tls_cert_file', tls && mistakeInTime(tls.cert, options.tls_cert_file ?? ''));
  return tls;
}

/** @throws CredentialError */
export function readAuthorities(file: string): string {
  const ca = readFile('client_ca_file', file);
  refuse('client_ca_file', mistakeInAuthorities(ca, file));
  return ca;
}

function refuse(option: CredentialError['option'], mistake: string | undefined): void {
  if (mistake !== undefined) {
    throw new CredentialError(option, mistake);
  }
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

export function credentialProblems(options: ServiceTokenOptions & TlsOptions) {
  const ofBlazar = mistakesOf(() => readTokens(options));
  const ofTls = mistakesOf(() => readTls(options));
  return [
    ...ofBlazar,
    // These are compared with the tokens for Blazar, whose mistake would be reported twice.
    ...(ofBlazar.length > 0 ? [] : mistakesOf(() => readUserTokens(options)).map(asProblem)),
    ...ofTls,
    // The service starts: some clients may not verify it.
    ...(ofTls.length > 0 ? [] : mistakesOf(() => readValidTls(options))).map(
      (mistake) => ({ ...asProblem(mistake), severity: 'warning' }) as const,
    ),
  ];
}

/** A problem of `[service]`. Its message holds no secret, although the option does. */
export function asProblem({ option, message }: CredentialError) {
  return { severity: 'error', section: 'service', option, message } as const;
}

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
