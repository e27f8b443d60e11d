/** Sends messages of the outbox by mail. */
import { isIP } from 'node:net';
import type { NodemailerError, SendMailOptions, SMTPTransportOptions } from 'nodemailer';
import { z } from 'zod';
import { isLoopback } from '../../base/addresses.ts';
import { NoAnswerError } from '../../base/deadline.ts';
import { errorText } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { cut, onOneLine, withoutSecrets } from '../../base/visible-text.ts';
import { readTextFile } from '../../config/read-file.ts';
import type { Delivery, OutboxMessage, OutboxSender } from '../../filter/outbox.ts';
import { MAIL_NOTICES } from '../../ledger/outbox/messages.ts';
import { PREFIX } from './events.ts';
import { type NotificationsOptions, passwordOf } from './options.ts';

/** How long the server may take to close an unused connection, in milliseconds. */
const CLOSE_WITHIN = 1000;
const LONGEST_ERROR = 500;

export class Mail implements OutboxSender {
  readonly name = MAIL_NOTICES;
  readonly maxAge: number;
  readonly #logger: Logger;
  /** In seconds. */
  readonly #timeout: number;
  readonly #envelope: { readonly from: string; readonly to: readonly string[] };
  /** Of `Message-ID`. */
  readonly #domain: string;
  /** Forms of the password that a server could echo. */
  readonly #secrets: readonly string[];
  readonly #connection: SMTPTransportOptions;

  /** The options must be valid. */
  constructor(url: string, options: NotificationsOptions, logger: Logger) {
    const { smtp_username: user, smtp_ca_file: ca, mail_from: from = '', mail_to: to } = options;
    const password = passwordOf(options);
    const { protocol, hostname, port } = new URL(url);
    const host = hostname.replace(/^\[|\]$/g, '');
    const secure = protocol === 'smtps:';
    const mayBePlain = !secure && isLoopback(host);
    this.maxAge = options.mail_max_age;
    this.#logger = logger;
    this.#timeout = options.smtp_timeout;
    this.#envelope = { from, to: [...new Set(to)] };
    this.#domain = from.slice(from.lastIndexOf('@') + 1);
    this.#secrets = password === '' ? [] : [password, base64(password), base64(`\0${user}\0${password}`)];
    this.#connection = {
      // nodemailer would resolve `localhost` by DNS.
      host: host === 'localhost' ? '127.0.0.1' : host,
      ...(port === '' ? {} : { port: Number(port) }),
      secure,
      requireTLS: !secure && !mayBePlain,
      opportunisticTLS: mayBePlain,
      tls: {
        ...(isIP(host) === 0 ? { servername: host } : {}),
        ...(ca === undefined ? {} : { ca: readTextFile(ca) }),
        // Only this machine can listen: a self-signed certificate is no worse than none.
        rejectUnauthorized: !mayBePlain || ca !== undefined,
      },
      ...(user === '' ? {} : { auth: { user, pass: password } }),
      dnsTimeout: options.smtp_timeout * 1000,
      socketCloseTimeout: CLOSE_WITHIN,
    };
  }

  async deliver({ body }: OutboxMessage, signal: AbortSignal): Promise<Delivery> {
    const { id, time, subject, text, receivers } = mailOf(body);
    const to = this.#envelope.to.filter((one) => receivers?.includes(one) ?? true);
    if (to.length === 0) {
      return { outcome: 'delivered' };
    }
    const mail: SendMailOptions = {
      ...this.#envelope,
      to,
      subject,
      text,
      date: new Date(time),
      messageId: `<${id}@${this.#domain}>`,
      headers: { 'Auto-Submitted': 'auto-generated' },
      disableFileAccess: true,
      disableUrlAccess: true,
    };
    // Not `AbortSignal.any`: `signal` would keep every attempt for as long as the service runs.
    const attempt = new AbortController();
    const stop = () => attempt.abort(signal.reason);
    const late = new NoAnswerError(`the mail server has not taken the mail within ${this.#timeout} s`);
    const timer = setTimeout(() => attempt.abort(late), this.#timeout * 1000);
    signal.addEventListener('abort', stop, { once: true });
    try {
      signal.throwIfAborted();
      // Only senders of mails wait for it to load.
      const { createTransport } = await import('nodemailer');
      const sent = createTransport(this.#connection).sendMail({ ...mail, signal: attempt.signal });
      const { rejectedErrors = [] } = await sent;
      const isFinal = ({ responseCode = 0 }: NodemailerError) => responseCode >= 500;
      const refused = rejectedErrors.filter(isFinal);
      if (refused.length > 0) {
        this.#logger.warn(
          {
            filter: this.name,
            receivers: refused.map(receiverOf),
            error: this.#shown(errorText(refused[0])),
          },
          'a mail was not taken for some of its receivers, and is not sent to them again',
        );
      }
      const later = rejectedErrors.filter((one) => !isFinal(one));
      // Another attempt must not send it again to those who have it.
      return later.length === 0
        ? { outcome: 'delivered' }
        : {
            outcome: 'refused',
            error: this.#shown(errorText(later[0])),
            rest: JSON.stringify({ ...JSON.parse(body), receivers: later.map(receiverOf) }),
          };
    } catch (thrown) {
      const error = this.#shown(errorText(attempt.signal.aborted ? attempt.signal.reason : thrown));
      return { outcome: signal.aborted ? 'not-sent' : outcomeOf(thrown), error };
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
    }
  }

  /** The error has the server's reply, which may echo what was sent. */
  #shown(error: string): string {
    return cut(onOneLine(withoutSecrets(error, this.#secrets)), LONGEST_ERROR);
  }
}

function receiverOf({ recipient = '' }: NodemailerError): string {
  return recipient;
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** `away`: there is no connection, or the server answered 421 and closes it. */
function outcomeOf(thrown: unknown): 'away' | 'refused' {
  const { code, syscall, responseCode }: Partial<NodemailerError> = thrown instanceof Error ? thrown : {};
  const isUnconnected = code === 'EDNS' || syscall === 'connect' || thrown instanceof AggregateError;
  return isUnconnected || responseCode === 421 ? 'away' : 'refused';
}

/* The plain text of a mail about a budget event. */

/** Texts in an event are bounded, and come from users: each stays on one line, whatever it contains. */
const text = z.string().transform(onOneLine);
const common = {
  // Part of the Message-ID.
  id: z.string().regex(/^[\w-]{1,100}$/),
  source: text,
  time: text,
  /** Of a mail that others have taken. */
  receivers: z.array(z.string()).optional(),
};
const owner = {
  project: z.object({ id: text }),
  user: z.object({ id: text }).nullable(),
};
const step = z.object({ at: text, by: text, reason: text.nullish() });
const amount = { amount: text, until: text };

const thresholdEvent = z.object({
  ...common,
  type: z.literal(`${PREFIX}budget.threshold`),
  data: z.object({
    ...owner,
    threshold: z.number(),
    budget: z.object({ from: text, until: text, amount: text, taken: text, left: text }),
    cause: text,
    changed_by: text,
    request_id: text.nullable(),
  }),
});
const requestEvent = z.object({
  ...common,
  type: z.literal(`${PREFIX}budget.request`),
  data: z.object({
    ...owner,
    ...amount,
    request: text,
    state: text,
    reason: text,
    asked: step,
    endorsed: step.nullable(),
    settled: step.nullable(),
    granted: z.object(amount).nullable(),
  }),
});
const mailedEvent = z.discriminatedUnion('type', [thresholdEvent, requestEvent]);
type MailedEvent = z.infer<typeof mailedEvent>;

interface MailText {
  /** Of the event. */
  readonly id: string;
  readonly time: string;
  /** One line. */
  readonly subject: string;
  readonly text: string;
  /** The only ones that it is still to be sent to; `undefined` = all. */
  readonly receivers: readonly string[] | undefined;
}

const LONGEST_SUBJECT = 200;
const LONGEST_ID = 64;

const STATES: ReadonlyMap<string, string> = new Map([
  ['requested', 'new'],
  ['changed', 'granted, but not as requested'],
]);
const OPEN: ReadonlySet<string> = new Set(['requested', 'endorsed']);

/** From the body of a message in the outbox. @throws if it is not a budget event */
function mailOf(body: string): MailText {
  const event = eventIn(body);
  const [subject, lines] =
    event.type === `${PREFIX}budget.threshold` ? thresholdText(event.data) : requestText(event.data);
  const { id, source, time, receivers } = event;
  const facts = lines.map(([name, ...said]) => `${`${name}:`.padEnd(10)}${said.join('')}`);
  const foot = ['-- ', `Sent by blazar-enforcement, ${source}: event ${id}, ${time}`];
  return {
    id,
    time,
    receivers,
    // A name that looks like an encoded word (RFC 2047) would be decoded.
    subject: cut(subject, LONGEST_SUBJECT).replaceAll('=?', '= ?'),
    text: `${[`${subject}.`, '', ...facts, '', ...foot].join('\n')}\n`,
  };
}

function eventIn(body: string): MailedEvent {
  const parsed = mailedEvent.safeParse(JSON.parse(body));
  if (!parsed.success) {
    throw new Error('expected an event about budgets');
  }
  return parsed.data;
}

/** A name, and its text in parts. */
type Line = readonly string[];

function thresholdText(data: z.infer<typeof thresholdEvent>['data']): [string, Line[]] {
  const { threshold, budget, cause, changed_by, request_id } = data;
  return [
    `${threshold} % of the budget of ${ownerOf(data)} is taken`,
    [
      ['Taken', `${budget.taken} of ${budget.amount} unit-hours`],
      ['Left', `${budget.left} unit-hours`],
      ['Valid', `from ${budget.from} until ${budget.until}`],
      ['Cause', `${cause}, by ${changed_by}`, request_id === null ? '' : `, ${request_id}`],
    ],
  ];
}

function requestText(data: z.infer<typeof requestEvent>['data']): [string, Line[]] {
  const { request, state, reason, asked, endorsed, settled, granted } = data;
  const taken = (name: string, found: z.infer<typeof step> | null): Line[] =>
    found === null ? [] : [[name, `${found.at}, by ${found.by}`, found.reason ? `: ${found.reason}` : '']];
  return [
    `Budget request ${request} of ${ownerOf(data)}: ${STATES.get(state) ?? state}`,
    [
      ['Wanted', `${data.amount} unit-hours until ${data.until}`],
      ['Reason', reason],
      ...taken('Asked', asked),
      ...taken('Endorsed', endorsed),
      ...taken('Settled', settled),
      ...(granted === null ? [] : [['Granted', `${granted.amount} unit-hours until ${granted.until}`]]),
      ...(OPEN.has(state)
        ? [['Answer', `blazar-enforcement budget grant ${request}, or budget refuse ${request}`]]
        : []),
    ],
  ];
}

function ownerOf({ project, user }: MailedEvent['data']): string {
  const projectId = cut(project.id, LONGEST_ID);
  return user === null ? `project ${projectId}` : `user ${cut(user.id, LONGEST_ID)} in project ${projectId}`;
}
