/** What is sent, and what becomes of whatever comes. */

import { describe, expect, it } from 'vitest';
import { createLeases } from '../../src/conformance/leases.ts';
import { jsonOf, receivedText, sentText } from '../../src/conformance/report.ts';
import { type Credentials, Target, UnreachableError } from '../../src/conformance/target.ts';
import { type Answer, policyServer } from '../support/policy-server.ts';
import { unusedPort } from '../support/unused-port.ts';
import { endpointsAt, rawServer } from './services.ts';

const TOKEN = 'to"k\\en of the <tests>';
const BEARER = 'bearer-of-the-tests';
const leases = createLeases(new Date());

function targetAt(url: string, credentials: Credentials = {}, timeout = 5): Target {
  return new Target({ endpoints: endpointsAt(url), credentials, timeout });
}

/** What comes of one create. */
const askAt = (url: string, credentials?: Credentials, timeout?: number) =>
  targetAt(url, credentials, timeout).ask('create', leases.make(), 'a lease');

describe('a request', () => {
  it('is sent as Blazar sends it', async () => {
    const server = await policyServer({ status: 204 });
    const target = targetAt(server.url, { token: 'secret' });
    const lease = leases.make();
    await target.ask('create', lease, 'a lease');
    await target.ask('update', lease, 'an update', { changes: { start_date: 'x' } });
    await target.ask('end', lease, 'an end');
    expect(server.requests.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'POST /check-create',
      'POST /check-update',
      'POST /on-end',
    ]);
    for (const { headers } of server.requests) {
      expect(headers).toMatchObject({ 'content-type': 'application/json', 'x-auth-token': 'secret' });
      expect(headers).not.toHaveProperty('authorization');
    }
    const [create, update, end] = server.requests.map(({ body }) => JSON.parse(body));
    expect(create).toEqual(JSON.parse(JSON.stringify(lease.create)));
    expect(update).toEqual(JSON.parse(JSON.stringify(lease.update({ start_date: 'x' }))));
    expect(end).toEqual(JSON.parse(JSON.stringify(lease.end())));
  });

  it('has a bearer token where one is given, and no token where none is', async () => {
    const server = await policyServer({ status: 204 });
    await askAt(server.url, { bearer: 'secret' });
    await askAt(server.url);
    const [withBearer, without] = server.requests.map(({ headers }) => headers);
    expect(withBearer).toMatchObject({ authorization: 'Bearer secret' });
    expect(withBearer).not.toHaveProperty('x-auth-token');
    expect(without).not.toHaveProperty('authorization');
  });

  it('keeps the query of its endpoint, and does not show it', async () => {
    const server = await policyServer({ status: 204 });
    const create = new URL(`${server.url}/rules/check?key=hidden`);
    const target = new Target({ endpoints: { create }, credentials: {}, timeout: 5 });
    const exchange = await target.ask('create', leases.make(), 'a lease');
    expect(server.requests[0]?.url).toBe('/rules/check?key=hidden');
    expect(sentText(exchange)).toMatch(/^POST http:\/\/127.0.0.1:\d+\/rules\/check: a lease, \d+ bytes; /);
  });

  it('opens a connection of its own, and several share one where they are told to', async () => {
    const server = await policyServer({ status: 204 });
    const sockets = new Set();
    server.server.on('request', (request) => sockets.add(request.socket));
    const target = targetAt(server.url);
    await target.ask('create', leases.make(), 'a lease');
    await target.ask('create', leases.make(), 'a lease');
    expect(sockets.size).toBe(2);
    const connection = target.connect('create');
    await target.ask('create', leases.make(), 'a lease', { connection });
    await target.ask('create', leases.make(), 'a lease', { connection });
    await connection.close();
    expect(sockets.size).toBe(3);
  });
});

describe('a token', () => {
  const echo: Answer = (request, response) => {
    const { 'x-auth-token': token = '', authorization = '' } = request.headers;
    const text = JSON.stringify({ message: `not ${token} nor ${authorization}` });
    response.writeHead(403).end(`${text}\n${token}\n${token}`);
  };

  it('is nowhere in what is shown, also where the service sends it back', async () => {
    const server = await policyServer(echo);
    const exchange = await askAt(server.url, { token: TOKEN, bearer: BEARER });
    expect(server.requests[0]?.headers).toMatchObject({ 'x-auth-token': TOKEN });
    const { answer: _, ...shown } = exchange;
    const texts = [sentText(exchange), receivedText(exchange), JSON.stringify(shown)].join('\n');
    for (const secret of [TOKEN, JSON.stringify(TOKEN).slice(1, -1), BEARER]) {
      expect(texts).not.toContain(secret);
    }
    expect(sentText(exchange)).toContain('X-Auth-Token: ****, Authorization: ****');
    expect(receivedText(exchange)).toBe('403 {"message":"not **** nor Bearer ****"}\n****\n****');
    const check = { id: 'x', title: 'x', protocol: 'x', sources: [], run: () => [] };
    const findings = [{ expected: 'something else', exchange }];
    const line = JSON.stringify(
      jsonOf({ check, result: 'failed', reason: null, findings, exchanges: [exchange], milliseconds: 1 }),
    );
    expect(line).toContain('****');
    expect(line).not.toMatch(/of the <tests>|bearer-of-the-tests/);
  });

  it('is hidden as a whole where it begins with the other one', async () => {
    const server = await policyServer(echo);
    const { excerpt } = await askAt(server.url, { token: 'abc', bearer: 'abcdef' });
    expect(excerpt).toBe('{"message":"not **** nor Bearer ****"}\n****\n****');
  });
});

describe('an answer', () => {
  it('is not followed where it leads', async () => {
    const elsewhere = await policyServer({ status: 204 });
    const server = await policyServer({ status: 307, headers: { Location: elsewhere.url } });
    const { answer } = await askAt(server.url);
    expect(answer?.status).toBe(307);
    expect(elsewhere.requests).toEqual([]);
  });

  it('is shown by its start', async () => {
    const server = await policyServer({ status: 403, body: 'x'.repeat(60_000) });
    const exchange = await askAt(server.url);
    expect(receivedText(exchange)).toBe(`403 ${'x'.repeat(500)}`);
  });

  it('of more than 64 KiB is none', async () => {
    const server = await policyServer({ status: 403, body: 'x'.repeat(65_537) });
    const { answer, failure } = await askAt(server.url);
    expect(answer).toBeUndefined();
    expect(failure).toMatch(/no usable answer: the answer 403 broke off: .*max.*size/i);
  });

  it.for([
    ['never comes', ''],
    ['stops in its head', 'HTTP/1.1 204 No'],
    ['stops in its body', 'HTTP/1.1 403 Forbidden\r\nContent-Length: 100\r\n\r\n{"mess'],
  ])('that %s is waited for as long as the timeout says', async ([, bytes = '']) => {
    const { answer, failure } = await askAt(await rawServer(bytes), {}, 0.3);
    expect(answer).toBeUndefined();
    expect(failure).toMatch(/^POST http:.*\/check-create: no whole answer within 0.3 s$/);
  });

  it('that comes a byte at a time is no answer when the timeout is over', async () => {
    const server = await policyServer((_request, response) => {
      response.writeHead(403);
      const dripping = setInterval(() => response.write('x'), 20);
      response.on('close', () => clearInterval(dripping));
    });
    const { answer, failure } = await askAt(server.url, {}, 0.3);
    expect(answer).toBeUndefined();
    expect(failure).toContain('within 0.3 s');
  });

  it('that is no HTTP is none, in one line', async () => {
    const { failure } = await askAt(await rawServer('SSH-2.0-OpenSSH\r\n'));
    expect(failure).toMatch(/^POST .*: no usable answer: .+$/);
  });

  it('204 is a whole answer, whatever stands behind its head', async () => {
    const url = await rawServer('HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n{}');
    const { answer } = await askAt(url);
    expect(answer).toMatchObject({ status: 204, headers: { 'content-length': '2' } });
  });
});

describe('a service that is not there', () => {
  it('is told by an error of one line', async () => {
    const asked = askAt(`http://127.0.0.1:${await unusedPort()}`, { token: 'secret' });
    await expect(asked).rejects.toThrow(UnreachableError);
    await expect(asked).rejects.toThrow(/^POST .*\/check-create: no connection: connect ECONNREFUSED .*$/);
  });

  it('any more is an exchange without an answer', async () => {
    const server = await policyServer({ status: 204 });
    const target = targetAt(server.url);
    await target.ask('create', leases.make(), 'a lease');
    server.server.closeAllConnections();
    await new Promise((closed) => server.server.close(closed));
    const { answer, failure } = await target.ask('create', leases.make(), 'a lease');
    expect(answer).toBeUndefined();
    expect(failure).toContain('no connection');
  });
});

describe('what was allowed', () => {
  it('is told to have ended, once, and with what an update has changed', async () => {
    const server = await policyServer({ status: 204 });
    const target = targetAt(server.url);
    const created = leases.make();
    const updated = leases.make();
    const ended = leases.make();
    await target.ask('create', created, 'a lease');
    await target.ask('create', updated, 'a lease');
    await target.ask('update', updated, 'an update', {
      changes: { end_date: '2030-01-01T00:00:00', reservations: [] },
    });
    await target.ask('create', ended, 'a lease');
    await target.ask('end', ended, 'an end');
    expect(target.notEnded).toBe(2);
    await target.settle();
    await target.settle();
    expect(target.notEnded).toBe(0);
    const ends = server.requests
      .filter(({ url }) => url === '/on-end')
      .map(({ body }) => JSON.parse(body).lease);
    expect(ends.map(({ id }) => id).sort()).toEqual([created.id, updated.id, ended.id].sort());
    expect(ends.find(({ id }) => id === updated.id)).toMatchObject({
      name: updated.create.lease.name,
      end_date: '2030-01-01T00:00:00',
      reservations: [{ resource_type: 'physical:host' }],
    });
  });

  it('is counted where the service does not take the end', async () => {
    const server = await policyServer((request, response) => {
      response.writeHead(request.url === '/on-end' ? 500 : 204).end();
    });
    const target = targetAt(server.url);
    await target.ask('create', leases.make(), 'a lease');
    await target.settle();
    await target.settle();
    expect(target.notEnded).toBe(1);
    expect(server.requests.map(({ url }) => url)).toEqual(['/check-create', '/on-end']);
  });

  it('is not told any more once an end was not answered', async () => {
    const server = await policyServer((request, response) => {
      if (request.url !== '/on-end') {
        response.writeHead(204).end();
      }
    });
    const target = targetAt(server.url, {}, 0.2);
    for (let round = 0; round < 3; round++) {
      await target.ask('create', leases.make(), 'a lease');
      await target.settle();
    }
    expect(server.requests.filter(({ url }) => url === '/on-end')).toHaveLength(1);
    expect(target.notEnded).toBe(3);
  });

  it('and was rejected is not told', async () => {
    const server = await policyServer({ status: 403 });
    const target = targetAt(server.url);
    await target.ask('create', leases.make(), 'a lease');
    await target.settle();
    expect(server.requests).toHaveLength(1);
  });
});
