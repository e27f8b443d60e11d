import { describe, expect, it, onTestFinished } from 'vitest';
import { CONSOLE_PAGES } from '../../../src/server/console/pages.ts';
import { newLedgers } from '../../support/ledgers.ts';
import { runService } from '../../support/running-service.ts';
import { consoleOn } from './console-fixture.ts';
import { visitor } from './visitor.ts';

const newLedger = newLedgers();
const SECRET = 's3cret-0123456789abcdef';
describe('the answer', () => {
  it('lets in nothing but what the service itself serves, and is kept nowhere', async () => {
    const { url } = await runService({ service: { tokens: [SECRET] } });
    const { get, send } = visitor(url);
    const header = { 'X-Auth-Token': SECRET };
    for (const visit of [
      await get(),
      await send('/login', { token: 'wrong' }),
      await get('/', header),
      await get('/decisions', header),
      await get('/decisions?after=nonsense', header),
    ]) {
      expect(Object.fromEntries(visit.headers)).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy':
          "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'same-origin',
        'cache-control': 'no-store',
      });
      expect(visit.html).toMatch(/^<!DOCTYPE html><html lang="en">/);
      // No script within the page, no style in attributes, and nothing from elsewhere.
      expect(visit.html).not.toMatch(/<(style|img|iframe|object)\b|\s(style|on\w+)=/);
      expect(visit.html).not.toMatch(/\s(src|href|action)="(?!\/(?!\/)|#)/);
      expect(visit.html).not.toMatch(/<script(?! type="module" src="\/assets\/[\w-]+\/main\.js"><\/script>)/);
    }
  });

  it('to HEAD is that to GET, without the page', async () => {
    const { url } = await runService({ service: { tokens: [SECRET] } });
    const { get, request } = visitor(url);
    for (const headers of [{}, { 'X-Auth-Token': SECRET }]) {
      const head = await request('/', { method: 'HEAD', headers });
      const { status, html } = await get('/', headers);
      expect(head).toMatchObject({ status, html: '' });
      expect(head.headers.get('content-length')).toBe(String(Buffer.byteLength(html)));
    }
  });

  it('to an address with NUL, which no PostgreSQL takes, is 400 on every page', async () => {
    const { get, close, logger } = await consoleOn(await newLedger('postgresql'));
    onTestFinished(close);
    const paths = CONSOLE_PAGES.filter(({ method }) => method === 'GET').map(
      ({ path }) => `${path.replace(/\{\w+\}/, '1')}?project=%00&search=a%00b&user=%00`,
    );
    for (const path of [...paths, '/projects/%00']) {
      expect({ path, status: (await get('operator', path)).status }).toEqual({ path, status: 400 });
    }
    expect(logger.lines).toEqual([]);
  });

  it.for([
    ['/', 'HEAD, GET'],
    ['/decisions', 'HEAD, GET'],
    ['/login', 'HEAD, GET, POST'],
    ['/logout', 'POST'],
  ] as const)('to a method that is not possible at %s is 405', async ([path, allow]) => {
    const { url } = await runService();
    for (const method of ['PUT', 'PATCH', 'DELETE', ...(path === '/logout' ? ['GET', 'HEAD'] : [])]) {
      const { status, headers } = await visitor(url).request(path, { method });
      expect({ method, status }).toEqual({ method, status: 405 });
      expect(new Set(headers.get('allow')?.split(', '))).toEqual(new Set(allow.split(', ')));
    }
  });

  it('for a browser is a page also where nothing is, and JSON for programs and the API', async () => {
    const { url } = await runService({ service: { tokens: [SECRET] } });
    const { get, send, request } = visitor(url);
    const browser = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
    for (const [answered, status] of [
      [await get('/nothing', browser), 404],
      [await get('/projects/', browser), 404],
      [await get('/%zz', browser), 404],
      [await send('/nothing', 'a=b', browser), 404],
      [await request('/decisions', { method: 'DELETE', headers: browser }), 405],
    ] as const) {
      expect(answered.status).toBe(status);
      expect(Object.fromEntries(answered.headers)).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': expect.stringContaining("default-src 'none'"),
      });
      expect(answered.text).toContain(answered.headers.get('x-openstack-request-id'));
      expect(answered.text).toContain('Back to the start page');
    }
    for (const answered of [
      await get('/nothing'),
      await get('/v1/nothing', browser),
      await get('/v1/budgets', browser),
      await send('/check-create', 'a=b', { Accept: 'application/json' }),
    ]) {
      expect(answered.headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(JSON.parse(answered.html)).toHaveProperty('message');
    }
  });
});
