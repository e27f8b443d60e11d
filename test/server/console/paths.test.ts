import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { returnPath } from '../../../src/server/console/page.ts';
import { visitService } from './visitor.ts';

describe('after a login', () => {
  it.for([
    '/',
    '/decisions',
    '/decisions?outcome=rejected&after=abc_-',
    '/projects/p%20q?x=%2F%2Felsewhere',
    '/logins',
  ])('a path of the service is led back to: %s', (path) => {
    expect(returnPath(path)).toBe(path);
  });

  it.for([
    ...['', 'decisions', '//elsewhere.example', '/\\elsewhere.example', '/\t/elsewhere.example'],
    ...['https://elsewhere.example/', 'javascript:alert(1)', '/.//elsewhere.example', '/a/..//elsewhere'],
    ...['/a\r\nSet-Cookie: x=y', '/\u0000', `/${'x'.repeat(2000)}`, '/%2e%2e//elsewhere', '/é', '/a b'],
    ...['/login', '/login?next=/login', '/logout', '/login/oidc', '/x/../login'],
  ])('nothing else is: %j', (path) => {
    expect(returnPath(path)).toBe('/');
  });

  it('never leads to another site, whatever is asked for', () => {
    const parts = fc.constantFrom('/', '\\', '.', '..', '%2e', '//', '\t', '\n', '@', ':', 'x', '?', '#');
    fc.assert(
      fc.property(fc.array(parts, { maxLength: 8 }), (some) => {
        const led = returnPath(`/${some.join('')}`);
        expect(led).toMatch(/^\/(?![/\\])/);
        expect(new URL(led, 'https://own.example').host).toBe('own.example');
      }),
    );
  });

  it('the page is shown that was asked for', async () => {
    const { get, send } = await visitService('[service]\ntokens = s3cret-0123456789abcdef\n');
    const { status, html } = await get('/?project=a%20%22b');
    expect(status).toBe(401);
    expect(html).toContain('name="next" value="/?project=a%20%22b"');
    const login = (next: string) => send('/login', { token: 's3cret-0123456789abcdef', next });
    expect((await login('/?project=a%20%22b')).headers.get('Location')).toBe('/?project=a%20%22b');
    expect((await login('//elsewhere.example')).headers.get('Location')).toBe('/');
    expect((await send('/login', { token: 'wrong', next: '/?project=x' })).html).toContain(
      'name="next" value="/?project=x"',
    );
  });
});
