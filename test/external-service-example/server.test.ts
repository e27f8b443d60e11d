import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Fields, fixture, leaseOf, send, start } from './helpers.ts';
import { run } from './process.ts';

const create = fixture('check-create-physical-host');
const extend = fixture('check-update-extend');
const paths = ['/check-create', '/check-update', '/on-end'];
const LIMIT = 8 * 1024 * 1024;

describe('the token', () => {
  it.each(paths)('is required at %s, before the body is read', async (path) => {
    const { post } = await start({ token: 's3cret' });
    for (const wrong of ['', 's3cre', 's3cret2', 'S3CRET', '__proto__', 'x'.repeat(5000)]) {
      const answer = await post(path, '{', { 'X-Auth-Token': wrong });
      expect(answer).toMatchObject({ status: 401, text: 'X-Auth-Token is missing or wrong' });
    }
    expect((await post(path, '{')).status).toBe(401);
  });

  it('allows requests if it is right, and refused requests charge nothing', async () => {
    const { post } = await start({ token: 's3cret' });
    for (let n = 0; n < 3; n += 1) await post('/check-create', create, { 'X-Auth-Token': 'wrong' });
    expect((await post('/check-create', create, { 'X-Auth-Token': 's3cret' })).status).toBe(204);
  });
});

describe('a bad request', () => {
  const { context, lease } = create;
  const without = (field: string) => ({ context, lease: { ...lease, [field]: undefined } });
  const having = (fields: Fields) => ({ context, lease: { ...lease, ...fields } });
  const before = '2026-11-30T00:00:00';

  it.each<[what: string, named: string, body: unknown, path?: string]>([
    ['without a body', 'context: ', ''],
    ['that is an array', 'body: ', []],
    ['that is no JSON', 'body: ', '{"lease":', '/on-end'],
    ['that poisons the prototype', 'body: ', '{"__proto__":{"lease":{}}}'],
    [
      'with a project that is no text',
      'context.project_id: ',
      { context: { ...context, project_id: 1 }, lease },
    ],
    ['with a lease that is null', 'lease: ', { context, lease: null }],
    ['with a lease that is an array', 'lease: ', { ...extend, lease: [] }, '/check-update'],
    ['without the current lease', 'current_lease: ', { context, lease }, '/check-update'],
    ['without a start', 'lease.start_date: ', without('start_date')],
    ['without reservations', 'lease.reservations: ', without('reservations')],
    ['with a date that does not exist', 'lease.end_date: ', having({ end_date: '2026-12-32T00:00:00' })],
    ['that ends before it starts', 'lease.end_date: before start_date', having({ end_date: before })],
    [
      ...(['that moves the end before the start', 'lease.end_date: '] as const),
      ...([{ ...extend, lease: { end_date: before } }, '/check-update'] as const),
    ],
    ['with a reservation that is null', 'lease.reservations.0: ', having({ reservations: [null] })],
    ['with a negative number', 'lease.reservations.0.max: ', having({ reservations: [{ max: -5 }] })],
  ])('%s is 400, and names %s', async (_, named, body, path = '/check-create') => {
    const { post } = await start();
    const answer = await post(path, body);
    expect(answer.status).toBe(400);
    expect(answer.text.startsWith(named), answer.text).toBe(true);
    expect(answer.text).not.toMatch(/\n\s+at |node_modules|server[.][jt]s/);
    expect((await post('/check-create', create)).status, 'it has charged nothing').toBe(204);
  });

  it.each([
    ['to another project', 'lease.project_id: ', { project_id: 'q' }],
    ['to another user', 'lease.user_id: ', { user_id: 'u' }],
    ['so that nothing ends the lease', 'lease.events: ', { events: [] }],
    ['of a start that is over', 'lease.start_date: ', { start_date: before }, 'active'],
    ['of a lease that is over', 'current_lease: ', {}, 'deleted'],
    ['that Blazar cannot finish', 'lease.reservations.0.', { reservations: [{ resource_properties: [] }] }],
  ])('that is a change %s is 400, and names %s', async (_, named, changes, status = 'pending') => {
    const { post } = await start();
    const current_lease = { ...extend.current_lease, reservations: [{ status }] };
    const answer = await post('/check-update', { ...extend, current_lease, lease: changes });
    expect(answer).toMatchObject({ status: 400, text: expect.stringContaining(named) });
  });

  it.each([
    ['hundreds of errors are told in five lines', 500, 5],
    ['more reservations than a lease may have are told in one', 501, 1],
  ])('%s', async (_, count, lines) => {
    const { post } = await start();
    const answer = await post('/check-create', having({ reservations: Array(count).fill(null) }));
    expect(answer.status).toBe(400);
    expect(answer.text.split('\n')).toHaveLength(lines);
  });

  it('with a name of megabytes leaves none of it in memory', async () => {
    const { post } = await start();
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    const name = 'x'.repeat(4_000_000);
    for (let leases = 0; leases < 15; leases += 1) {
      expect((await post('/check-create', leaseOf(1, { name: leases + name }))).status).toBe(204);
    }
    const used = () => {
      collectGarbage();
      return process.memoryUsage().heapUsed;
    };
    const before = used();
    for (let leases = 15; leases < 30; leases += 1) {
      expect((await post('/check-create', leaseOf(1, { name: leases + name }))).status).toBe(204);
    }
    await expect.poll(() => used() - before).toBeLessThan(30_000_000);
  });

  it('that is nested too deeply gets a response', async () => {
    const { post } = await start();
    expect((await post('/check-create', '['.repeat(500_000))).status).toBe(400);
    expect((await post('/check-create', `{"a":${'['.repeat(200_000)}${']'.repeat(200_000)}}`)).status).toBe(
      400,
    );
  });

  it('over 8 MiB is 413, announced, streamed or compressed', async () => {
    const { url, post } = await start();
    const huge = JSON.stringify({ ...create, more: 'x'.repeat(LIMIT) });
    expect((await post('/check-create', huge)).status).toBe(413);
    expect(await stream(`${url}/check-create`, Array(8).fill(Buffer.from(huge)))).toBe(413);
    const gzip = [gzipSync(huge)];
    expect(await stream(`${url}/check-create`, gzip, 'Content-Encoding: gzip\r\n')).toBe(413);
    const dense = gzipSync(randomBytes(2 * LIMIT));
    expect(await stream(`${url}/check-create`, [dense], 'Content-Encoding: gzip\r\n')).toBe(413);
    expect((await post('/check-create', create)).status).toBe(204);
  });

  it.each(['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp', 'nonsense'])(
    'of the type %s is 415',
    async (type) => {
      const { post } = await start();
      expect((await post('/check-create', create, { 'Content-Type': type })).status).toBe(415);
    },
  );

  it.each(['/', '/check-delete', '/check-create/x', '/v1', '/__proto__', '/%'])(
    'to %s is 404',
    async (path) => {
      const { post } = await start();
      expect((await post(path, create)).status).toBe(404);
    },
  );

  it.each(['GET', 'PUT', 'DELETE', 'PATCH', 'PROPFIND'])('with the method %s is 405', async (method) => {
    const { url } = await start({ token: 's3cret' });
    for (const path of paths) {
      const answer = await fetch(url + path, { method });
      expect(answer.status).toBe(405);
      expect(answer.headers.get('allow')).toBe('POST');
    }
  });
});

describe('the process', () => {
  it('prints its address, asks for its token, keeps its budget and ends on SIGTERM', async () => {
    const { child, firstLine } = run({
      PORT: '0',
      EXAMPLE_TOKEN: 's3cret',
      EXAMPLE_BUDGET_NODE_HOURS: '95.5',
    });
    const url = /http:\/\/127[.]0[.]0[.]1:\d+/.exec(await firstLine)?.[0];
    expect((await send(`${url}/check-create`, create)).status).toBe(401);
    const answer = await send(`${url}/check-create`, create, { 'X-Auth-Token': 's3cret' });
    expect(answer.status).toBe(403);
    expect(answer.text).toContain('costs 96 node-hours, and the project has 95.5 of 95.5 left');
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  it("answers the README's curl with the message that the README shows", async () => {
    const readme = readFileSync(new URL('../../external-service-example/README.md', import.meta.url), 'utf8');
    const [, path, body] = /curl -i http:\/\/127[.]0[.]0[.]1:8643(\S+) .*?-d '(.*?)'/s.exec(readme) ?? [];
    const { post } = await start();
    const first = await post(String(path), String(body));
    const second = await post(String(path), String(body));
    expect([first.status, second.status]).toEqual([204, 403]);
    expect(readme).toContain(second.text);
  });
});

/** Sends a body of unknown length to its end, whatever is answered meanwhile; a real client may read only then. */
async function stream(url: string, chunks: Uint8Array[], headers = ''): Promise<number> {
  const { port, pathname } = new URL(url);
  const socket = connect(Number(port), '127.0.0.1').setEncoding('latin1');
  onTestFinished(() => void socket.destroy());
  const answer = once(socket, 'data');
  const fixed = 'Host: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n';
  socket.write(`POST ${pathname} HTTP/1.1\r\n${fixed}${headers}\r\n`);
  for (const chunk of [...chunks, Buffer.alloc(0)]) {
    socket.write(`${chunk.length.toString(16)}\r\n`);
    socket.write(chunk);
    if (!socket.write('\r\n')) await once(socket, 'drain');
  }
  const [text] = await answer;
  return Number(/^HTTP\/1.1 (\d+)/.exec(text)?.[1]);
}
