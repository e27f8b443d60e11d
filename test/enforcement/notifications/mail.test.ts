/** One attempt to send a mail, at servers that take it, that do not, and that are something else. */
import { readFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { SMTPServerOptions } from 'smtp-server';
import { describe, expect, it } from 'vitest';
import { requestEvent, thresholdEvent } from '../../../src/enforcement/notifications/events.ts';
import { Mail } from '../../../src/enforcement/notifications/mail.ts';
import { notificationsOptions } from '../../../src/enforcement/notifications/options.ts';
import { temporaryFile } from '../../support/files.ts';
import { listen } from '../../support/listening.ts';
import { recordingLogger } from '../../support/logger.ts';
import { tlsFixture } from '../../support/tls.ts';
import { unusedPort } from '../../support/unused-port.ts';
import { aBudgetRequest, aCrossing } from './facts.ts';
import { type MailServer, mailServer } from './mail-server.ts';

const NEVER = new AbortController().signal;
const PASSWORD = 'tiger-0123456789';
const OWN_CERTIFICATE = {
  disabledCommands: [],
  key: readFileSync(tlsFixture('server.key')),
  cert: readFileSync(tlsFixture('server.pem')),
};

function message({ projectId = 'climate', userId = null as string | null, who = 'alice' } = {}) {
  const crossing = aCrossing({ projectId, userId }, { who });
  const body = thresholdEvent('https://blazar.example.org/', 'id-1', crossing);
  return { key: 'id-1/notifications-mail', body };
}

function sender(url: string, options: object = {}, logger = recordingLogger()): Mail {
  const values = notificationsOptions.parse({
    smtp_url: url,
    smtp_timeout: 200,
    mail_from: 'blazar@example.org',
    mail_to: ['ops@example.org'],
    ...options,
  });
  return new Mail(url, values, logger);
}

const to = ({ port }: Pick<MailServer, 'port'>) => `smtp://127.0.0.1:${port}`;

async function attempt(server: SMTPServerOptions = {}, options: object = {}) {
  const logger = recordingLogger();
  const running = await mailServer(server);
  const delivery = await sender(to(running), options, logger).deliver(message(), NEVER);
  const said = JSON.stringify([delivery, logger.lines]);
  return { delivery, mails: running.mails, logger, said };
}

/** Whatever answers at a port. */
async function strangeServer(onConnection: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    onConnection(socket);
  });
  return to(await listen(server));
}

/** Takes everything up to the mail. */
function converse(socket: Socket, onMail: () => void): void {
  socket.write('220 here\r\n');
  createInterface(socket).on('line', (line) => {
    const verb = line.slice(0, 4);
    if (['EHLO', 'MAIL', 'RCPT'].includes(verb)) {
      socket.write('250 fine\r\n');
    } else if (verb === 'DATA') {
      socket.write('354 go on\r\n');
    } else if (line === '.') {
      onMail();
    }
  });
}

function flood(socket: Socket, text: string): void {
  const more = () => {
    while (socket.writable && socket.write(text.repeat(1000))) {}
  };
  socket.on('drain', more);
  more();
}

const refusing = (responseCode: number) => Object.assign(new Error('not now'), { responseCode });

it('sends one mail to all receivers, which another attempt repeats to the letter', async () => {
  const running = await mailServer();
  const mail_to = ['ops@example.org', 'root@mailhost', 'ops@example.org'];
  for (let time = 0; time < 2; time += 1) {
    const delivery = await sender(to(running), { mail_to }).deliver(message(), NEVER);
    expect(delivery).toEqual({ outcome: 'delivered' });
  }
  const [first, second] = running.mails;
  expect(running.mails).toHaveLength(2);
  expect(second?.raw).toBe(first?.raw);
  expect(first).toMatchObject({ from: 'blazar@example.org', to: ['ops@example.org', 'root@mailhost'] });
  expect(Object.fromEntries(first?.headers ?? [])).toMatchObject({
    from: 'blazar@example.org',
    to: 'ops@example.org, root@mailhost',
    subject: '80 % of the budget of project climate is taken',
    date: 'Thu, 01 Jan 1970 00:00:00 +0000',
    'message-id': '<id-1@example.org>',
    'auto-submitted': 'auto-generated',
  });
  expect(first?.text.trimEnd().split('\n')).toEqual([
    '80 % of the budget of project climate is taken.',
    '',
    'Taken:    0.8 of 1 unit-hours',
    'Left:     0.2 unit-hours',
    'Valid:    from 1970-01-01T00:00:00Z until 1970-01-02T00:00:00Z',
    'Cause:    create, by alice, req-1',
    '',
    '-- ',
    'Sent by blazar-enforcement, https://blazar.example.org/: event id-1, 1970-01-01T00:00:00Z',
  ]);
});

it('says of a request what was asked for, and how to answer', async () => {
  const running = await mailServer();
  const step = { at: 0n, who: 'mona', reason: 'what is left' };
  const granted = aBudgetRequest({
    state: 'changed',
    endorsed: { ...step, reason: null },
    settled: step,
    granted: { amount: 3_600_000_000n, validUntil: 86_400n, budget: 1n },
  });
  const bodies = [aBudgetRequest(), granted].map((one, at) => requestEvent('/test', `id-${at}`, one));
  for (const body of bodies) {
    expect(await sender(to(running)).deliver({ key: 'a', body }, NEVER)).toEqual({ outcome: 'delivered' });
  }
  const [first, second] = running.mails;
  expect(first?.headers.get('subject')).toBe('Budget request 17 of user alice in project climate: new');
  expect(first?.text).toContain('Answer:   blazar-enforcement budget grant 17, or budget refuse 17\n');
  expect(first?.text).toContain('Reason:   a workshop\n');
  expect(second?.headers.get('subject')).toMatch(/: granted, but not as requested$/);
  expect(second?.text).toContain(
    'Endorsed: 1970-01-01T00:00:00Z, by mona\nSettled:  1970-01-01T00:00:00Z, by mona: what is left\n',
  );
  expect(second?.text).toContain('Granted:  1 unit-hours until 1970-01-02T00:00:00Z\n');
  expect(second?.text).not.toContain('Answer');
});

describe('a name in a mail', () => {
  it.each([
    ['climate\r\nBcc: evil@example.org\r\n\r\nHello', 'climate Bcc: evil@example.org Hello'],
    ['Klima-Ökologie 気候 🌍', 'Klima-Ökologie 気候 🌍'],
    ['a\u202eb\u0000c\ud800', 'a\\u202eb\\u0000c\\ud800'],
    ['=?utf-8?q?x?=', '=?utf-8?q?x?='],
  ])('that is %j stays on its line', async (projectId, shown) => {
    const running = await mailServer();
    const body = message({ projectId, who: `${projectId}.\r\n.\r\nMAIL FROM:<a@b>` });
    expect(await sender(to(running)).deliver(body, NEVER)).toEqual({ outcome: 'delivered' });
    const [mail] = running.mails;
    expect(running.mails).toHaveLength(1);
    expect(mail?.text).toContain(`80 % of the budget of project ${shown} is taken.\n\nTaken: `);
    expect(mail?.text.split('\n').filter((line) => line.startsWith('Cause'))).toHaveLength(1);
    expect(mail?.headers.has('bcc')).toBe(false);
    const subject = `80 % of the budget of project ${shown.replace('=?', '= ?')} is taken`;
    expect(mail?.headers.get('subject')).toBe(subject);
  });

  it('that is very long is cut', async () => {
    const running = await mailServer();
    const long = '🌍x'.repeat(50_000);
    const body = message({ projectId: long, userId: long, who: long });
    expect(await sender(to(running)).deliver(body, NEVER)).toEqual({ outcome: 'delivered' });
    const [mail] = running.mails;
    expect(mail?.headers.get('subject')?.length).toBeLessThanOrEqual(200);
    expect(mail?.text.length).toBeLessThan(5000);
    expect(mail?.text).not.toContain('\ufffd');
    expect(Math.max(...(mail?.raw.split('\r\n') ?? []).map((line) => line.length))).toBeLessThanOrEqual(998);
  });
});

describe('TLS', () => {
  const ca = { smtp_ca_file: tlsFixture('ca.pem') };
  const login = { smtp_username: 'blazar', smtp_password_file: undefined as string | undefined };
  const auth: SMTPServerOptions = {
    ...OWN_CERTIFICATE,
    onAuth: ({ username, password }, _, done) =>
      done(null, username === 'blazar' && password === PASSWORD ? { user: username } : {}),
  };

  it('is used by STARTTLS, and the password comes from a file', async () => {
    login.smtp_password_file = temporaryFile('password', `${PASSWORD}\n`);
    const { delivery, mails } = await attempt({ ...auth, authOptional: false }, { ...ca, ...login });
    expect(delivery).toEqual({ outcome: 'delivered' });
    expect(mails).toEqual([expect.objectContaining({ secure: true, user: 'blazar' })]);
  });

  it('is used from the first byte with smtps', async () => {
    const running = await mailServer({ ...OWN_CERTIFICATE, secure: true });
    for (const host of ['127.0.0.1', 'localhost']) {
      const mail = sender(`smtps://${host}:${running.port}`, ca);
      expect(await mail.deliver(message(), NEVER)).toEqual({ outcome: 'delivered' });
    }
    expect(running.mails.map(({ secure }) => secure)).toEqual([true, true]);
    // Also on a loopback address.
    const unverified = await sender(`smtps://127.0.0.1:${running.port}`).deliver(message(), NEVER);
    expect(unverified.outcome).toBe('refused');
    expect(running.mails).toHaveLength(2);
  });

  it('with a certificate of another authority, or of another name, sends nothing', async () => {
    for (const [cert, key] of [
      ['expired.pem', 'expired.key'],
      ['other.pem', 'other.key'],
    ] as const) {
      const certificate = { cert: readFileSync(tlsFixture(cert)), key: readFileSync(tlsFixture(key)) };
      const { delivery, mails } = await attempt({ ...OWN_CERTIFICATE, ...certificate }, ca);
      expect(delivery).toMatchObject({ outcome: 'refused', error: expect.stringMatching(/certificate/i) });
      expect(mails).toEqual([]);
    }
  });

  it('is required elsewhere: a server without STARTTLS gets neither password nor mail', async () => {
    let asked = 0;
    const running = await mailServer({
      onAuth: (_, __, done) => {
        asked += 1;
        done(null, { user: 'anybody' });
      },
      authOptional: true,
      allowInsecureAuth: true,
    });
    // A name of this machine that is no loopback address.
    const mail = sender(`smtp://0.0.0.0:${running.port}`, {
      ...login,
      smtp_password: PASSWORD,
      smtp_password_file: undefined,
    });
    const delivery = await mail.deliver(message(), NEVER);
    expect(delivery).toMatchObject({ outcome: 'refused', error: expect.stringContaining('STARTTLS') });
    expect([asked, running.mails]).toEqual([0, []]);
  });

  it('that refuses the login sends nothing, and shows no password', async () => {
    const onAuth: SMTPServerOptions['onAuth'] = ({ password }, _, done) => {
      const plain = Buffer.from(`\0blazar\0${password}`).toString('base64');
      const parts = [password, Buffer.from(password ?? '').toString('base64'), plain];
      done(Object.assign(new Error(`not ${parts.join(' ')}`), { responseCode: 535 }));
    };
    const options = { smtp_username: 'blazar', smtp_password: PASSWORD };
    const { delivery, mails, said } = await attempt({ ...OWN_CERTIFICATE, onAuth }, options);
    expect(delivery).toMatchObject({
      outcome: 'refused',
      error: expect.stringContaining('535 not **** **** ****'),
    });
    expect(mails).toEqual([]);
    expect(said).not.toContain(PASSWORD);
  });
});

describe('a server', () => {
  it.each([
    [450, 'refused'],
    [550, 'refused'],
    [421, 'away'],
  ])('that answers %i is asked again', async (code, outcome) => {
    for (const step of ['onMailFrom', 'onRcptTo'] as const) {
      const options = {
        [step]: (_: unknown, __: unknown, done: (error: Error) => void) => done(refusing(code)),
      };
      const { delivery, mails } = await attempt(options);
      expect(delivery).toMatchObject({ outcome, error: expect.stringContaining(`${code} not now`) });
      expect(mails).toEqual([]);
    }
    const { delivery } = await attempt({
      onData: (stream, _, done) => stream.resume().on('end', () => done(refusing(code))),
    });
    expect(delivery).toMatchObject({ outcome, error: expect.stringContaining(`${code} not now`) });
  });

  it('that refuses some of the receivers has the mail, and the log says whom it refused', async () => {
    const mail_to = ['gone@example.org', 'ops@example.org'];
    const onRcptTo: SMTPServerOptions['onRcptTo'] = ({ address }, _, done) =>
      done(address.startsWith('gone') ? refusing(550) : null);
    const { delivery, mails, logger } = await attempt({ onRcptTo }, { mail_to });
    expect(delivery).toEqual({ outcome: 'delivered' });
    expect(mails.map((mail) => mail.to)).toEqual([['ops@example.org']]);
    expect(logger.lines).toEqual([
      expect.objectContaining({
        message: expect.stringContaining('not taken for some of its receivers'),
        fields: expect.objectContaining({ receivers: ['gone@example.org'] }),
      }),
    ]);
  });

  it('that defers some of the receivers is asked again for them alone', async () => {
    const mail_to = ['later@example.org', 'gone@example.org', 'ops@example.org'];
    const onRcptTo: SMTPServerOptions['onRcptTo'] = ({ address }, _, done) =>
      done(address.startsWith('ops') ? null : refusing(address.startsWith('gone') ? 550 : 450));
    const { delivery, mails } = await attempt({ onRcptTo }, { mail_to });
    expect(delivery).toMatchObject({ outcome: 'refused', error: expect.stringContaining('450 not now') });
    const body = 'rest' in delivery ? (delivery.rest ?? '') : '';
    const again = await mailServer();
    const rest = { ...message(), body };
    expect(await sender(to(again), { mail_to }).deliver(rest, NEVER)).toEqual({ outcome: 'delivered' });
    expect([...mails, ...again.mails].map((mail) => mail.to)).toEqual([
      ['ops@example.org'],
      ['later@example.org'],
    ]);
    const ids = [...mails, ...again.mails].map(({ headers }) => headers.get('message-id'));
    expect(new Set(ids).size).toBe(1);
    const others = { mail_to: ['ops@example.org'] };
    expect(await sender(to(again), others).deliver(rest, NEVER)).toEqual({ outcome: 'delivered' });
    expect(again.mails).toHaveLength(1);
  });

  it.each<[string, (socket: Socket) => void, RegExp]>([
    ['never greets', () => {}, /within 1 s/],
    [
      'greets a letter at a time',
      (socket) => void setInterval(() => socket.write('2'), 50).unref(),
      /within 1 s/,
    ],
    ['answers in lines without an end', (socket) => flood(socket, '220-hello\r\n'), /maximum allowed size/],
    ['greets without an end', (socket) => flood(socket, '220 hello'), /maximum allowed size/],
    ['speaks HTTP', (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'), /HTTP\/1\.1 400/],
    ['is full', (socket) => socket.end('554 no SMTP service here\r\n'), /554 no SMTP/],
    ['closes at once', (socket) => socket.destroy(), /clos|reset/i],
    ['closes in the middle of the mail', (socket) => converse(socket, () => socket.destroy()), /clos|reset/i],
    ['is silent after the mail', (socket) => converse(socket, () => {}), /within 1 s/],
  ])('that %s has not taken the mail', async (_, onConnection, error) => {
    const smtp_timeout = error.test('within 1 s') ? 1 : 200;
    const mail = sender(await strangeServer(onConnection), { smtp_timeout });
    const delivery = await mail.deliver(message(), NEVER);
    expect(delivery).toEqual({ outcome: 'refused', error: expect.stringMatching(error) });
    expect(JSON.stringify(delivery).length).toBeLessThan(700);
  });

  it('is left at once when the service stops, and it was no attempt', async () => {
    const stopping = new AbortController();
    const url = await strangeServer((socket) => converse(socket, () => stopping.abort(new Error('stop'))));
    const mail = sender(url, { smtp_timeout: 3600 });
    const delivery = { outcome: 'not-sent', error: 'stop' };
    expect(await mail.deliver(message(), stopping.signal)).toEqual(delivery);
    expect(await mail.deliver(message(), stopping.signal)).toEqual(delivery);
  });

  it('that is not there makes all mails wait', async () => {
    for (const host of ['127.0.0.1', 'localhost']) {
      const delivery = await sender(`smtp://${host}:${await unusedPort()}`).deliver(message(), NEVER);
      expect(delivery).toMatchObject({ outcome: 'away', error: expect.stringContaining('ECONNREFUSED') });
    }
  });
});
