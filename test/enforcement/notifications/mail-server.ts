/** A real SMTP server that keeps what it has accepted, gone after the test. */
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { onTestFinished } from 'vitest';

export interface ReceivedMail {
  readonly from: string;
  readonly to: readonly string[];
  /** Whether it came through TLS, and who has logged in. */
  readonly secure: boolean;
  readonly user: string | undefined;
  readonly raw: string;
  /** By their names in lower case, as people see them. */
  readonly headers: ReadonlyMap<string, string>;
  readonly text: string;
}

export interface MailServer {
  readonly port: number;
  readonly mails: ReceivedMail[];
  readonly server: SMTPServer;
}

/** Default: it asks for no password, and offers no STARTTLS. */
export async function mailServer(options: SMTPServerOptions = {}): Promise<MailServer> {
  const mails: ReceivedMail[] = [];
  const server = new SMTPServer({
    logger: false,
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    disableReverseLookup: true,
    onData(stream, { envelope, secure, user }, done) {
      const kept = (raw: string) => {
        const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address;
        const to = envelope.rcptTo.map(({ address }) => address);
        mails.push({ from, to, secure, user: user as string | undefined, raw, ...read(raw) });
        done();
      };
      // A client that goes away has sent no mail.
      text(stream).then(kept, () => {});
    },
    ...options,
  });
  // Of clients that go away.
  server.on('error', () => {});
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  onTestFinished(() => new Promise<void>((closed) => server.close(() => closed())));
  return { port: (server.server.address() as AddressInfo).port, mails, server };
}

function read(raw: string): Pick<ReceivedMail, 'headers' | 'text'> {
  const end = raw.indexOf('\r\n\r\n');
  const lines = raw
    .slice(0, end)
    .replace(/\r\n(?=[ \t])/g, '')
    .split('\r\n');
  const headers = new Map(
    lines.map((line) => [
      line.slice(0, line.indexOf(':')).toLowerCase(),
      decoded(line.slice(line.indexOf(':') + 1)),
    ]),
  );
  const body = raw.slice(end + 4);
  const encoding = headers.get('content-transfer-encoding');
  const plain =
    encoding === 'base64'
      ? Buffer.from(body, 'base64').toString()
      : encoding === 'quoted-printable'
        ? unquoted(body.replace(/=\r\n/g, '')).toString()
        : body;
  return { headers, text: plain.replaceAll('\r\n', '\n') };
}

/** Source: RFC 2047. */
function decoded(value: string): string {
  return value
    .trim()
    .replace(/\?=\s+=\?/g, '?==?')
    .replace(/(?:=\?utf-8\?[bq]\?[^?]*\?=)+/gi, (words) =>
      Buffer.concat(
        [...words.matchAll(/=\?utf-8\?([bq])\?([^?]*)\?=/gi)].map(([, form = '', word = '']) =>
          form.toLowerCase() === 'b' ? Buffer.from(word, 'base64') : unquoted(word.replaceAll('_', ' ')),
        ),
      ).toString(),
    );
}

function unquoted(quoted: string): Buffer {
  return Buffer.from(
    quoted.replace(/=([0-9A-F]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  );
}
