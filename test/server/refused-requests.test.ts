import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { breakLedger, newLedger } from '../support/ledgers.ts';
import { createPhysicalHost } from '../support/requests.ts';
import { runService, runServiceOf } from '../support/running-service.ts';

it('warnings that strangers can cause while the database is away are thirty a minute', async () => {
  const connection = await newLedger();
  const { request, logger } = await runServiceOf({
    service: { port: 0, tokens: ['right-0123456789abcdef'] },
    ledger: { connection },
    enforcement: { enabled_filters: ['MaxLeasesFilter'] },
  });
  breakLedger(connection, 'sessions');
  for (let index = 0; index < 32; index += 1) {
    const Cookie = `blazar-enforcement-session=${'a'.repeat(43)}`;
    expect((await request('/', { headers: { Cookie } })).status).toBe(503);
  }
  const away = logger.lines.filter(({ message }) => message.includes('cannot be reached'));
  expect(away).toHaveLength(30);
});

describe('a request that is not judged', () => {
  const start = async () => {
    const service = await runService({ service: { tokens: ['right-0123456789abcdef'] } });
    const lines = () => service.logger.lines.filter(({ message }) => message === 'request refused');
    return { ...service, lines };
  };
  const wrongDate = { ...createPhysicalHost(), lease: { start_date: 'SECRET', end_date: 'SECRET' } };

  const wrong = { 'X-Auth-Token': 'SECRET' };
  const right = { 'X-Auth-Token': 'right-0123456789abcdef' };
  const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
  it.each<[path: string, body: unknown, Record<string, string>, status: number, reason: string]>([
    ['/check-create', {}, wrong, 401, 'expected a valid token in the header X-Auth-Token'],
    ['/check-create', wrongDate, right, 400, 'lease.start_date: expected an ISO 8601 date'],
    ['/login', 'token=SECRET', form, 401, 'expected a valid token to log in to the console'],
  ])(
    'at %s leaves a line with address, path and reason, and without what was sent',
    async (path, body, headers, status, reason) => {
      const { post, lines } = await start();
      const answer = await post(path, body, headers);
      expect(answer.status).toBe(status);
      const request_id = answer.headers.get('X-Openstack-Request-Id');
      const fields = { status, method: 'POST', path, address: '127.0.0.1', reason, request_id };
      expect(lines()).toEqual([{ level: 'warn', message: 'request refused', fields }]);
      expect(JSON.stringify(lines())).not.toContain('SECRET');
    },
  );

  it('leaves no line when it is judged, for the page without a token, or for an unknown path', async () => {
    const { post, request, lines } = await start();
    await post('/check-create', createPhysicalHost(), { 'X-Auth-Token': 'right-0123456789abcdef' });
    await request('/');
    await request('/SECRET');
    expect(lines()).toEqual([]);
  });

  it('leaves a line when its framing is ambiguous', async () => {
    const { port, lines } = await start();
    const socket = connect(port, '127.0.0.1').resume();
    socket.write('POST /SECRET HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 0\r\n\r\n');
    await once(socket, 'close');
    const reason = expect.stringContaining('Host');
    expect(lines()).toMatchObject([{ fields: { status: 400, path: 'other', address: '127.0.0.1', reason } }]);
  });
});
