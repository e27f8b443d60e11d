/** Sends messages of the outbox as mails. */
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import type { NodemailerError, SendMailOptions, SMTPTransportOptions } from 'nodemailer';
import { NoAnswerError } from '../../base/deadline.ts';
import { errorText } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { isLoopback } from '../../base/loopback.ts';
import { cut, onOneLine } from '../../base/visible-text.ts';
import type { Delivery, OutboxMessage, OutboxSender } from '../../filter/outbox.ts';
import { MAIL_NOTICES } from '../../ledger/outbox/messages.ts';
import { mailOf } from './mail-text.ts';
import { type NotificationsOptions, passwordOf } from './options.ts';

/** How long the server may take to close a connection that is not needed any more, in milliseconds. */
const CLOSE_WITHIN = 1000;
const LONGEST_ERROR = 500;

export class Mail implements OutboxSender {
  readonly name = MAIL_NOTICES;
  readonly maxAge: number;
  readonly #logger: Logger;
  /** In seconds. */
  readonly #timeout: number;
  readonly #envelope: Pick<SendMailOptions, 'from' | 'to'>;
  /** Of `Message-ID`. */
  readonly #domain: string;
  /** Forms of the password that a server could repeat. */
  readonly #secrets: readonly string[];
  readonly #connection: SMTPTransportOptions;

  /** For options without mistakes. */
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
      // nodemailer would ask DNS for `localhost`.
      host: host === 'localhost' ? '127.0.0.1' : host,
      ...(port === '' ? {} : { port: Number(port) }),
      secure,
      requireTLS: !secure && !mayBePlain,
      opportunisticTLS: mayBePlain,
      tls: {
        ...(isIP(host) === 0 ? { servername: host } : {}),
        ...(ca === undefined ? {} : { ca: readFileSync(ca) }),
        // Where nobody else can listen, an own certificate of the server is no worse than none.
        rejectUnauthorized: !mayBePlain || ca !== undefined,
      },
      ...(user === '' ? {} : { auth: { user, pass: password } }),
      dnsTimeout: options.smtp_timeout * 1000,
      socketCloseTimeout: CLOSE_WITHIN,
    };
  }

  async deliver({ body }: OutboxMessage, signal: AbortSignal): Promise<Delivery> {
    const { id, time, subject, text } = mailOf(body);
    const mail: SendMailOptions = {
      ...this.#envelope,
      ...{ subject, text, date: new Date(time), messageId: `<${id}@${this.#domain}>` },
      headers: { 'Auto-Submitted': 'auto-generated' },
      disableFileAccess: true,
      disableUrlAccess: true,
    };
    // Not `AbortSignal.any`, with which `signal` would remember every attempt for as long as the service runs.
    const attempt = new AbortController();
    const stop = () => attempt.abort(signal.reason);
    const late = new NoAnswerError(`the mail server has not taken the mail within ${this.#timeout} s`);
    const timer = setTimeout(() => attempt.abort(late), this.#timeout * 1000);
    signal.addEventListener('abort', stop, { once: true });
    try {
      signal.throwIfAborted();
      // Only those who send mails wait for it to load.
      const { createTransport } = await import('nodemailer');
      const sent = createTransport(this.#connection).sendMail({ ...mail, signal: attempt.signal });
      const { rejected, rejectedErrors = [] } = await sent;
      if (rejected.length > 0) {
        // Another attempt would send it again to those who have it.
        this.#logger.warn(
          { filter: this.name, receivers: rejected, error: this.#shown(errorText(rejectedErrors[0])) },
          'a mail was not taken for some of its receivers, and is not sent to them again',
        );
      }
      return { outcome: 'delivered' };
    } catch (thrown) {
      const error = this.#shown(reasonOf(attempt.signal.aborted ? attempt.signal.reason : thrown));
      return { outcome: signal.aborted ? 'not-sent' : outcomeOf(thrown), error };
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
    }
  }

  /** The error has what the server said, which may be what it was told. */
  #shown(error: string): string {
    const hidden = this.#secrets.reduce((rest, secret) => rest.replaceAll(secret, '****'), error);
    return cut(onOneLine(hidden), LONGEST_ERROR);
  }
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** Node reports an error for each address of a name, and no message for all of them. */
function reasonOf(thrown: unknown): string {
  return thrown instanceof AggregateError ? thrown.errors.map(errorText).join('; ') : errorText(thrown);
}

/** `away`: there is no connection, or the server has answered 421, that it closes it. */
function outcomeOf(thrown: unknown): 'away' | 'refused' {
  const { code, syscall, responseCode }: Partial<NodemailerError> = thrown instanceof Error ? thrown : {};
  const isUnconnected = code === 'EDNS' || syscall === 'connect' || thrown instanceof AggregateError;
  return isUnconnected || responseCode === 421 ? 'away' : 'refused';
}
