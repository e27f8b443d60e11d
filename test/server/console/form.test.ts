import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { capturedText, createLasting } from '../../support/requests.ts';
import { runService, type ServiceOptions } from '../../support/running-service.ts';
import { visitor } from './visitor.ts';

const FITS = capturedText('check-create-physical-host.json');
const create = (request: string) => ({ operation: 'create', request });

async function visit(options: ServiceOptions = {}) {
  const service = await runService(options);
  return { ...service, ...visitor(service.url) };
}

describe('a form', () => {
  it('holds a request of body_limit, however it is written, and not one byte more', async () => {
    const { send } = await visit({ service: { body_limit: 4096 } });
    const lease = createLasting(60).lease;
    // Each of these bytes takes three in a form.
    const fill = (length: number) => {
      const request = JSON.stringify({
        context: { user_id: 'u', project_id: 'p' },
        lease: { ...lease, x: '' },
      });
      return request.replace('"x":""', `"x":"${'/'.repeat(length - request.length)}"`);
    };
    expect((await send('/', create(fill(4096)))).status).toBe(200);
    const { status, text } = await send('/', create(fill(4097)));
    expect(status).toBe(413);
    expect(text).toContain('Not judged: expected a request of at most 4096 bytes');
    expect((await send('/', create('é'.repeat(2049)))).status).toBe(413);
    expect((await send('/', create('x'.repeat(200_000)))).status).toBe(413);
  });

  it('that is announced too long is refused before it is sent', async () => {
    const { raw } = await visit({ service: { body_limit: 4096 } });
    const answer = await raw(
      'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 14000\r\n\r\no',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(answer).toMatch(/^Connection: close\r$/m);
  });

  it('is no bigger when it is unpacked', async () => {
    const { request } = await visit({ service: { body_limit: 8192 } });
    const sendPacked = (text: string) =>
      request('/', {
        method: 'POST',
        body: gzipSync(text),
        headers: { 'Content-Type': 'application/x-www-form-urlencoded', 'Content-Encoding': 'gzip' },
      });
    expect((await sendPacked(String(new URLSearchParams(create(FITS))))).text).toContain('✓ allowed');
    expect((await sendPacked(`operation=create&request=${'x'.repeat(1_000_000)}`)).status).toBe(413);
  });

  it('may hold what is nested deep, and no more than that', async () => {
    const { send } = await visit();
    const { context, lease } = createLasting(60);
    const nested = (levels: number) =>
      JSON.stringify({ context, lease: { ...lease, x: 'DEEP' } }).replace(
        '"DEEP"',
        '['.repeat(levels) + ']'.repeat(levels),
      );
    expect((await send('/', create(nested(20_000)))).status).toBe(200);
    const { status, text } = await send('/', create(nested(100_000)));
    expect(status).toBe(400);
    expect(text).toContain('expected a body that is nested no deeper than 100 levels');
  });

  it('has two fields, and never so many that reading them takes long', async () => {
    const { request } = await visit();
    const fields = `${new URLSearchParams(create(FITS))}${'&a=1'.repeat(500_000)}`;
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
    expect((await request('/', { method: 'POST', headers, body: fields })).status).toBe(413);
  });

  it('of another type is refused', async () => {
    const { send, request } = await visit();
    for (const type of ['application/json', 'text/plain', 'multipart/form-data; boundary=x', '*/*']) {
      const { status, html } = await send('/', create(FITS), { 'Content-Type': type }).catch(
        (thrown) => thrown,
      );
      expect({ type, status }).toEqual({ type, status: 415 });
      expect(JSON.parse(html)).toEqual({
        message: 'expected a form, of type application/x-www-form-urlencoded',
      });
    }
    expect((await request('/', { method: 'POST' })).status).toBe(415);
  });
});
