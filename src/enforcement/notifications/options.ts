import { z } from 'zod';
import { errorText, type Problem } from '../../base/errors.ts';
import type { FurtherSection, SectionProblem } from '../../config/option-groups.ts';
import { mistakeInAuthorities } from '../../config/pem.ts';
import { readTextFile } from '../../config/read-file.ts';
import {
  hiddenEndpointOption,
  maxAgeOption,
  pemFileOption,
  requireCertificateWithKey,
  timeoutOption,
  tokenOption,
} from '../../filter/service-options.ts';

/** The kinds of events, as in `events`. In messages their types begin with `io.blazar-enforcement.`. */
export const EVENTS = [
  'budget.threshold',
  'budget.request',
  'lease.refused',
  'ledger.corrected',
  'skypilot.bypassed',
] as const;
export type EventKind = (typeof EVENTS)[number];

const secretFile = (description: string) =>
  z.string().min(1).optional().meta({
    description,
    file: true,
    secretFile: true,
    watched: true,
    expected: 'the path of a file',
  });

/** For SASL: no controls; NUL separates its parts. */
const credential = z.string().regex(/^\P{Cc}*$/u);
/** ASCII only, without a display name: needs no encoding or quoting. */
const address = z.email({ pattern: z.regexes.html5Email }).max(254);
const EXPECTED_ADDRESS = 'an address such as blazar@example.org';

const mailOptions = {
  smtp_url: z
    .url({ protocol: /^smtps?$/ })
    .regex(/^smtps?:\/\/(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?\/?$/i)
    .optional()
    .meta({
      serverOnly: true,
      url: true,
      description:
        'The mail server: smtp://HOST:PORT (default port 587), which must offer STARTTLS unless the host is a loopback address, or smtps://HOST:PORT (default port 465). Not set = no mail is sent.',
      expected: 'smtp://HOST:PORT or smtps://HOST:PORT, without credentials',
    }),
  smtp_username: credential.default('').meta({
    serverOnly: true,
    description: 'The user name for the mail server. Empty = the service does not log in.',
    expected: 'text without control characters',
  }),
  smtp_password: credential.default('').meta({
    serverOnly: true,
    description: 'The password of that user.',
    secret: true,
    expected: 'text without control characters',
  }),
  smtp_password_file: secretFile('A file with that password, instead of smtp_password.'),
  smtp_timeout: timeoutOption(
    'Maximum duration of sending one mail, from connecting to the last answer of the mail server.',
  ),
  smtp_ca_file: pemFileOption(
    'CA certificates that the certificate of the mail server is verified with, in PEM. Not set = the ones that Node.js trusts.',
  ),
  mail_from: address.optional().meta({
    serverOnly: true,
    description: 'The sender of mails.',
    expected: EXPECTED_ADDRESS,
  }),
  mail_to: z.array(address).max(50).default([]).meta({
    serverOnly: true,
    description: 'Who gets a mail for each event about budgets: budget.threshold and budget.request.',
    expected: 'a list of up to 50 addresses, with commas between them',
  }),
  mail_max_age: maxAgeOption(
    'How long the delivery of a mail is tried. After that it is dead: it stays in the outbox, until an operator retries or discards it.',
  ),
} as const;

/** `[notifications]`: receivers of events about budget limits, refusals and corrections. */
export const notificationsOptions = z
  .object({
    webhook_url: hiddenEndpointOption(
      'The URL that events are posted to, as CloudEvents in JSON. Without a query: put secrets into webhook_token or webhook_secret. Not set = nothing is posted.',
    ),
    webhook_token: tokenOption(
      'Sent in the header Authorization, as a bearer token. Empty = the header is not sent.',
    ),
    webhook_token_file: secretFile('A file with that token, instead of webhook_token.'),
    webhook_secret: tokenOption(
      'The secret of the signature that each message has in the header webhook-signature: whsec_ and 24 to 64 random bytes in base64. Empty = messages are not signed.',
    ),
    webhook_secret_file: secretFile(
      'A file with that secret, instead of webhook_secret. With several, one per line, messages have a signature by each, so that you can replace one without a gap.',
    ),
    webhook_timeout: timeoutOption(
      'Maximum duration of a call of webhook_url, from connecting to the last byte of the answer.',
    ),
    webhook_max_age: maxAgeOption(
      'How long the delivery of an event is tried. After that it is dead: it stays in the outbox, until an operator retries or discards it.',
    ),
    webhook_ca_file: pemFileOption(
      'CA certificates that the certificate of webhook_url is verified with, in PEM. Not set = the ones that Node.js trusts.',
    ),
    webhook_client_cert_file: pemFileOption('The client certificate to present to webhook_url, in PEM.'),
    webhook_client_key_file: pemFileOption('The key of the client certificate, in PEM.', true),
    ...mailOptions,
    events: z
      .array(z.enum(EVENTS))
      .default([...EVENTS])
      .meta({
        description:
          'The events to send. budget.threshold: leases have taken a share of a budget. budget.request: each step of a request for more budget. lease.refused: at most one for each project, user, filter and minute, with a count. ledger.corrected: the reconciliation with Blazar has changed the ledger. skypilot.bypassed: the reconciliation with SkyPilot has found clusters that bypassed the admin policies.',
        expected: `a list of ${EVENTS.join(', ')}`,
      }),
    budget_thresholds: z.array(z.int().min(1).max(100)).max(10).default([80, 95]).meta({
      description:
        'The shares of a budget, in percent, that are announced when leases have taken them. Empty = none.',
      expected: 'a list of up to 10 whole numbers from 1 to 100, with commas between them',
    }),
    source: z
      .string()
      .regex(/^[A-Za-z0-9\-._~:/?#@!$&'()*+,;=%]{1,255}$/)
      .default('/blazar-enforcement')
      .meta({
        description:
          'The attribute source of each event: a URI of this installation, which tells it from others that send to the same receiver.',
        expected: 'a URI of up to 255 characters',
      }),
  })
  .superRefine((values, check) => requireCertificateWithKey(values, 'webhook', check));

export type NotificationsOptions = z.infer<typeof notificationsOptions>;

export const notificationsSection = {
  section: 'notifications',
  schema: notificationsOptions,
  check: (options: NotificationsOptions): (SectionProblem | Problem)[] => [
    ...secretsInTwoPlaces(options),
    ...mistakesInMail(options),
    ...[tokenOf, secretsOf, passwordOf].flatMap((read) => mistakeOf(() => read(options))),
    ...withoutEffect(options),
  ],
} as const satisfies FurtherSection;

/** Whether there is any receiver. */
export function hasReceiver({
  webhook_url,
  smtp_url,
}: Pick<NotificationsOptions, 'webhook_url' | 'smtp_url'>): boolean {
  return (webhook_url ?? smtp_url) !== undefined;
}

function withoutEffect(options: NotificationsOptions): Problem[] {
  const { webhook_url: url, webhook_token: token, webhook_secret: secret } = options;
  const { webhook_token_file: tokenFile, webhook_secret_file: secretsFile } = options;
  const isMeant = token !== '' || secret !== '' || (tokenFile ?? secretsFile) !== undefined;
  const warning = (option: string, message: string): Problem => ({
    severity: 'warning',
    section: 'notifications',
    option,
    message,
  });
  return [
    ...(url === undefined && isMeant
      ? [warning('webhook_url', 'nothing is sent: webhook_url is not set')]
      : []),
    ...(options.smtp_url !== undefined && !options.events.some((event) => event.startsWith('budget.'))
      ? [warning('events', 'no mail is sent: events names neither budget.threshold nor budget.request')]
      : []),
  ];
}

function secretsInTwoPlaces(options: NotificationsOptions): SectionProblem[] {
  const secrets = ['webhook_token', 'webhook_secret', 'smtp_password'] as const;
  return secrets
    .filter((name) => options[name] !== '' && options[`${name}_file`] !== undefined)
    .map((name) => ({ option: `${name}_file`, message: `expected ${name} or ${name}_file, got both` }));
}

/**
 * Mistakes in combinations of valid values. Messages about `smtp_password` are at another option: at a secret
 * they are hidden.
 */
function mistakesInMail(options: NotificationsOptions): SectionProblem[] {
  const { smtp_url, smtp_username, smtp_password, smtp_password_file, mail_from, mail_to } = options;
  const isGiven = {
    mail_to: mail_to.length > 0,
    mail_from: mail_from !== undefined,
    smtp_username: smtp_username !== '',
    smtp_password_file: smtp_password_file !== undefined,
    smtp_ca_file: options.smtp_ca_file !== undefined,
  };
  const found: SectionProblem[] = [];
  const expect = (isRight: boolean, option: string, message: string) => {
    if (!isRight) {
      found.push({ option, message });
    }
  };
  if (smtp_url === undefined) {
    for (const [option, given] of Object.entries(isGiven)) {
      expect(!given, option, 'expected smtp_url, too: without it, no mail is sent');
    }
  } else {
    expect(isGiven.mail_to, 'smtp_url', 'expected mail_to, too: who gets the mails');
    const { smtp_ca_file: ca } = options;
    const mistake = ca === undefined ? undefined : mistakeInAuthorities(readTextFile(ca), ca);
    expect(mistake === undefined, 'smtp_ca_file', mistake ?? '');
    expect(isGiven.mail_from, 'smtp_url', 'expected mail_from, too: the sender of the mails');
  }
  const inFile = isGiven.smtp_password_file;
  const hasPassword = smtp_password !== '' || inFile;
  expect(hasPassword || !isGiven.smtp_username, 'smtp_username', 'expected smtp_password, too');
  const place = inFile ? 'smtp_password_file' : smtp_url === undefined ? 'smtp_username' : 'smtp_url';
  expect(isGiven.smtp_username || !hasPassword, place, 'expected smtp_username, too: a password is set');
  return found;
}

/** A secret cannot be used. `message` never contains it. */
class SecretError extends Error {
  readonly option: keyof NotificationsOptions;

  constructor(option: keyof NotificationsOptions, message: string) {
    super(message);
    this.option = option;
  }
}

/** For `config validate`. */
function mistakeOf(read: () => unknown): SectionProblem[] {
  try {
    read();
    return [];
  } catch (thrown) {
    if (thrown instanceof SecretError) {
      return [{ option: thrown.option, message: thrown.message }];
    }
    throw thrown;
  }
}

/** Source: Standard Webhooks, "Signature scheme". */
const PREFIX = 'whsec_';
const LEAST = 24;
const MOST = 64;
const EXPECTED_SECRET = `${PREFIX} and ${LEAST} to ${MOST} bytes in base64`;
/** More would make each message more expensive for no use. */
const MOST_SECRETS = 4;

/** Empty = none. @throws if the file cannot be used */
export function tokenOf({
  webhook_token: token,
  webhook_token_file: file,
}: Pick<NotificationsOptions, 'webhook_token' | 'webhook_token_file'>): string {
  if (file === undefined) {
    return token;
  }
  const [first, second] = linesOf('webhook_token_file', file);
  if (first === undefined || second !== undefined || !/^[\x20-\x7e]+$/.test(first)) {
    throw new SecretError('webhook_token_file', `${file}: expected one line of ASCII text`);
  }
  return first;
}

/** The signature keys; empty = messages are not signed. @throws if one is invalid */
export function secretsOf({
  webhook_secret: secret,
  webhook_secret_file: file,
}: Pick<NotificationsOptions, 'webhook_secret' | 'webhook_secret_file'>): readonly Buffer[] {
  if (file === undefined) {
    return secret === '' ? [] : [keyOf('webhook_secret', secret)];
  }
  const lines = linesOf('webhook_secret_file', file);
  if (lines.length === 0 || lines.length > MOST_SECRETS) {
    const message = `${file}: expected one to ${MOST_SECRETS} secrets, one per line, got ${lines.length}`;
    throw new SecretError('webhook_secret_file', message);
  }
  return lines.map((line) => keyOf('webhook_secret_file', line, `${file}: `));
}

const MAX_PASSWORD_BYTES = 4096;

/** Empty = none. A line break at the end of a file is ignored. @throws if the file cannot be used */
export function passwordOf({
  smtp_password: password,
  smtp_password_file: file,
}: Pick<NotificationsOptions, 'smtp_password' | 'smtp_password_file'>): string {
  if (file === undefined) {
    return password;
  }
  const text = contentOf('smtp_password_file', file, MAX_PASSWORD_BYTES).replace(/\r?\n$/, '');
  if (text === '' || !credential.safeParse(text).success) {
    throw new SecretError('smtp_password_file', `${file}: expected one line of text`);
  }
  return text;
}

function keyOf(option: keyof NotificationsOptions, secret: string, place = ''): Buffer {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : '';
  const key = Buffer.from(text, 'base64');
  const isBase64 = key.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '');
  if (!isBase64 || key.length < LEAST || key.length > MOST) {
    throw new SecretError(option, `${place}expected ${EXPECTED_SECRET}`);
  }
  return key;
}

function linesOf(option: keyof NotificationsOptions, file: string): string[] {
  return contentOf(option, file)
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
}

function contentOf(option: keyof NotificationsOptions, file: string, maxBytes?: number): string {
  try {
    return readTextFile(file, maxBytes);
  } catch (thrown) {
    throw new SecretError(option, `${file} could not be read: ${errorText(thrown)}`);
  }
}
