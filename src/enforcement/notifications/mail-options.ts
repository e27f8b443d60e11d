/** Options of `[notifications]` for mail. */
import { z } from 'zod';
import { errorText } from '../../base/errors.ts';
import type { SectionProblem } from '../../config/option-groups.ts';
import { readTextFile } from '../../config/read-file.ts';
import { maxAgeOption, pemFileOption, timeoutOption } from '../../filter/service-options.ts';

/** Of SASL: no controls, of which NUL separates its parts. */
const credential = z.string().regex(/^\P{Cc}*$/u);
/** ASCII only, and without a display name: nothing needs to be encoded or quoted. */
const address = z.email({ pattern: z.regexes.html5Email }).max(254);
const EXPECTED_ADDRESS = 'an address such as blazar@example.org';

export const mailOptions = {
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
  smtp_password_file: z.string().min(1).optional().meta({
    description: 'A file with that password, instead of smtp_password.',
    file: true,
    secretFile: true,
    watched: true,
    expected: 'the path of a file',
  }),
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

type MailOptions = z.infer<z.ZodObject<typeof mailOptions>>;

/** Of values that are right each for itself. Messages about `smtp_password` stand elsewhere: at a secret they are hidden. */
export function mistakesInMail(options: MailOptions): SectionProblem[] {
  const { smtp_url, smtp_username, smtp_password, smtp_password_file, mail_from, mail_to } = options;
  const isGiven = {
    ...{ mail_to: mail_to.length > 0, mail_from: mail_from !== undefined },
    ...{ smtp_username: smtp_username !== '', smtp_password_file: smtp_password_file !== undefined },
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
    expect(isGiven.mail_from, 'smtp_url', 'expected mail_from, too: the sender of the mails');
  }
  const [inOption, inFile] = [smtp_password !== '', isGiven.smtp_password_file];
  const hasPassword = inOption || inFile;
  expect(
    !(inOption && inFile),
    'smtp_password_file',
    'expected smtp_password or smtp_password_file, got both',
  );
  expect(hasPassword || !isGiven.smtp_username, 'smtp_username', 'expected smtp_password, too');
  const place = inFile ? 'smtp_password_file' : smtp_url === undefined ? 'smtp_username' : 'smtp_url';
  expect(isGiven.smtp_username || !hasPassword, place, 'expected smtp_username, too: a password is set');
  try {
    passwordOf(options);
  } catch (thrown) {
    found.push({ option: 'smtp_password_file', message: errorText(thrown) });
  }
  return found;
}

const MAX_PASSWORD_BYTES = 4096;

/** Empty = there is none. A line break at the end of a file does not count. @throws if the file cannot be used; the message never holds its content */
export function passwordOf({
  smtp_password: password,
  smtp_password_file: file,
}: Pick<MailOptions, 'smtp_password' | 'smtp_password_file'>): string {
  if (file === undefined) {
    return password;
  }
  let text: string;
  try {
    text = readTextFile(file, MAX_PASSWORD_BYTES).replace(/\r?\n$/, '');
  } catch (thrown) {
    throw new Error(`${file} could not be read: ${errorText(thrown)}`);
  }
  if (text === '' || !credential.safeParse(text).success) {
    throw new Error(`${file}: expected one line of text`);
  }
  return text;
}
