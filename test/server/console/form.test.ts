import { h } from 'preact';
import { describe, expect, it } from 'vitest';
import type { UsageEnforcement } from '../../../src/index.ts';
import type { ConsolePage } from '../../../src/server/console/page.ts';
import { runApp } from '../../support/running-service.ts';
import { visitor } from './visitor.ts';

const SECRET = 's3cret-0123456789abcdef';
const CSRF = /name="csrf" value="([^"]+)"/;

/** A service with one page that changes something, and what it was sent. */
async function visitPages({
  tokens = [] as string[],
  ...more
}: Partial<ConsolePage> & { tokens?: string[] } = {}) {
  const sent: string[] = [];
  const shown: ConsolePage = {
    method: 'GET',
    path: '/thing/{project_id}',
    action: 'see-project',
    label: 'Thing',
    answer: async ({ csrf }) => ({
      title: 'Thing',
      main: h('input', { type: 'hidden', name: 'csrf', value: csrf }),
    }),
  };
  const changed: ConsolePage = {
    ...shown,
    method: 'POST',
    formLimit: 4096,
    ...more,
    answer: async ({ form }) => {
      sent.push(form.get('text') ?? '');
      return { redirect: '/thing/x?done=1' };
    },
  };
  const service = await runApp({} as UsageEnforcement, tokens, { pages: [shown, changed] });
  return { sent, ...service, ...visitor(service.url) };
}

describe('a form', () => {
  it('reaches its page, which leads on to another', async () => {
    const { send, sent } = await visitPages();
    const { status, headers } = await send('/thing/x', { text: 'é +&' });
    expect({ status, to: headers.get('Location'), sent }).toEqual({
      status: 303,
      to: '/thing/x?done=1',
      sent: ['é +&'],
    });
  });

  it('is as long as its page allows, and not one byte longer', async () => {
    const { send, sent } = await visitPages();
    expect((await send('/thing/x', `text=${'x'.repeat(4091)}`)).status).toBe(303);
    const { status, text } = await send('/thing/x', `text=${'x'.repeat(4092)}`);
    expect(status).toBe(413);
    expect(text).toContain('Expected a body of at most 4096 bytes.');
    expect(sent).toHaveLength(1);
  });

  it('that is announced too long is refused before it is sent', async () => {
    const { raw } = await visitPages();
    const answer = await raw(
      'POST /thing/x HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 14000\r\n\r\no',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(answer).toMatch(/^Connection: close\r$/m);
  });

  it('never has so many fields that reading them takes long', async () => {
    const { send } = await visitPages({ formLimit: 4_000_000 });
    expect((await send('/thing/x', `text=x${'&a=1'.repeat(50)}`)).status).toBe(303);
    expect((await send('/thing/x', `text=x${'&a=1'.repeat(500_000)}`)).status).toBe(413);
  });

  it('of another type is refused', async () => {
    const { send, sent } = await visitPages();
    for (const type of ['application/json', 'text/plain', 'multipart/form-data; boundary=x', '*/*']) {
      const { status, text } = await send('/thing/x', 'text=x', { 'Content-Type': type });
      expect({ type, status }).toEqual({ type, status: 415 });
      expect(text).toContain('Expected a body of type application/x-www-form-urlencoded.');
    }
    expect(sent).toEqual([]);
  });

  it.for(['/thing/x', '/login', '/logout'])('of another site is refused at %s', async (path) => {
    const visit = await visitPages({ tokens: [SECRET] });
    await visit.send('/login', { token: SECRET });
    for (const headers of [
      { 'Sec-Fetch-Site': 'cross-site' },
      { 'Sec-Fetch-Site': 'same-site' },
      { Origin: 'https://evil.example.org' },
      { Origin: 'null' },
      { Origin: 'http://127.0.0.1' },
      { Origin: 'http://127.0.0.1.evil.example.org' },
    ]) {
      const { status, text, headers: answered } = await visit.send(path, { token: SECRET }, headers);
      const cookie = answered.get('Set-Cookie');
      expect({ headers, status, cookie }).toEqual({ headers, status: 403, cookie: null });
      expect(text).toMatch(/expected a form of this page, not of another site/i);
    }
    expect((await visit.get('/thing/x')).status).toBe(200);
    expect(visit.sent).toEqual([]);
  });

  it('of another site is refused where the authenticator is open, too', async () => {
    const { send, sent } = await visitPages();
    const headers = { 'Sec-Fetch-Site': 'cross-site' };
    for (const path of ['/login', '/thing/x']) {
      expect((await send(path, { token: 'x', text: 'x' }, headers)).status).toBe(403);
    }
    expect(sent).toEqual([]);
  });

  it('of the page itself is told from one of another site', async () => {
    const { send, url } = await visitPages({ tokens: [SECRET] });
    for (const headers of [
      { 'Sec-Fetch-Site': 'same-origin' },
      { 'Sec-Fetch-Site': 'none' },
      // A proxy may have another name than the service; the browser knows.
      { 'Sec-Fetch-Site': 'same-origin', Origin: 'https://policy.example.org' },
      { Origin: url },
      {},
    ]) {
      expect((await send('/login', { token: SECRET }, headers)).status, JSON.stringify(headers)).toBe(303);
    }
  });

  it('of nobody changes nothing, and shows the login page that leads back', async () => {
    const { send, sent } = await visitPages({ tokens: [SECRET] });
    for (const headers of [
      {},
      { 'X-Auth-Token': 'wrong' },
      { Cookie: 'blazar-enforcement-session=s3cret-0123456789abcdef' },
    ]) {
      const { status, text, html } = await send('/thing/x', { text: 'x', token: SECRET }, headers);
      expect({ headers, status }).toEqual({ headers, status: 401 });
      expect(html).toContain('name="next" value="/thing/x"');
      expect(text).toMatch(/Token/);
    }
    expect(sent).toEqual([]);
  });

  it('of a session carries what only its own pages know', async () => {
    const page = await visitPages({ tokens: [SECRET] });
    await page.send('/login', { token: SECRET });
    const csrf = CSRF.exec((await page.get('/thing/x')).html)?.[1] ?? '';
    expect(csrf).toMatch(/^[\w-]{20,}$/);
    const other = visitor(page.url);
    await other.send('/login', { token: SECRET });
    const foreign = CSRF.exec((await other.get('/thing/x')).html)?.[1] ?? '';
    expect(foreign).not.toBe(csrf);
    for (const wrong of ['', 'x', foreign, csrf.slice(1), `${csrf} `, page.cookie().split('=')[1] ?? '']) {
      const { status, text } = await page.send('/thing/x', { text: 'x', csrf: wrong });
      expect({ wrong, status }).toEqual({ wrong, status: 403 });
      expect(text).toContain('open the page again');
    }
    expect((await page.send('/thing/x', { text: 'x' })).status).toBe(403);
    expect(page.sent).toEqual([]);
    expect((await page.send('/thing/x', { text: 'mine', csrf })).status).toBe(303);
    expect(page.sent).toEqual(['mine']);
  });

  it('by a token needs none: browsers of other sites do not send it', async () => {
    const { send, sent } = await visitPages({ tokens: [SECRET] });
    expect((await send('/thing/x', { text: 'x' }, { 'X-Auth-Token': SECRET })).status).toBe(303);
    expect(sent).toEqual(['x']);
  });

  it('that the caller may not send is refused before it is read', async () => {
    const { send, sent } = await visitPages({ action: 'import-budgets' });
    const { status, text } = await send('/thing/x', { text: 'x' });
    expect(status).toBe(403);
    expect(text).toContain('Not allowed');
    expect(sent).toEqual([]);
  });
});
