/** Logging in with a real provider of OpenID Connect, run by this process. */
import { describe, expect, it } from 'vitest';
import { temporaryFile } from '../../support/files.ts';
import { Browser } from './browser.ts';
import { away, isIn, SECRET, sites } from './oidc-sites.ts';

describe('[oidc]', () => {
  it('an operator logs in, and comes to the page that was asked for', async () => {
    const { logIn, browser, url, logger } = await sites();
    const login = await browser.get(`${url}/`);
    expect(login.html).toMatch(/href="\/login\/oidc\?next=%2F"[^>]*>Log in with/);
    const page = await logIn('olga', '/decisions?limit=1');
    expect([page.status, page.headers.get('Refresh')]).toEqual([200, '0; url=/decisions?limit=1']);
    expect(await isIn(browser, url)).toBe(true);
    expect(browser.cookieOf(url, 'blazar-enforcement-login')).toBeUndefined();
    expect(JSON.stringify(logger.lines)).not.toMatch(/code=|eyJ|olga/);
  });

  it('a reader logs in with an account of a public client, too', async () => {
    const { logIn, browser, url } = await sites({ isPublic: true });
    await logIn('rita');
    expect(await isIn(browser, url)).toBe(true);
  });

  it('the secret may be in a file, and claims may come from userinfo', async () => {
    const secretFile = temporaryFile('secret', `${SECRET}\n`);
    const { logIn, browser, url, write, oidc, service } = await sites({ secretFile });
    write(...oidc, 'userinfo = true');
    expect(await service.reload()).toBe(true);
    await logIn('olga');
    expect(await isIn(browser, url)).toBe(true);
  });

  it('somebody without a role or a project does not get in', async () => {
    const { logIn, browser, url } = await sites();
    const page = await logIn('nobody');
    expect([page.status, page.html.includes('neither a role nor a project here')]).toEqual([403, true]);
    expect(browser.cookieOf(url, 'blazar-enforcement-session')).toBeUndefined();
  });

  it('a session ends when [oidc] changes, and with the logout, which leads to that of the provider', async () => {
    const { logIn, browser, url, issuer, write, oidc, service } = await sites();
    await logIn('olga');
    const out = await browser.post(`${url}/logout`, {});
    expect(out.html.replaceAll('&amp;', '&')).toContain(`href="${issuer}/session/end?`);
    expect(out.html).not.toContain('id_token_hint');
    expect(await isIn(browser, url)).toBe(false);
    const again = await browser.get(`${url}/login/oidc`);
    // The provider remembers who it is.
    expect([again.status, await isIn(browser, url)]).toEqual([200, true]);
    write(...oidc, 'title = Keycloak');
    expect(await service.reload()).toBe(true);
    expect(await isIn(browser, url)).toBe(false);
  });

  it('lets somebody in after any number of callbacks that were not confirmed, or could not be', async () => {
    const { toCallback, browser, url, server } = await sites();
    const bogus = async () => {
      const asked = await fetch(`${url}/login/oidc`, { redirect: 'manual' });
      const state = new URL(asked.headers.get('location') ?? '').searchParams.get('state');
      const [cookie = ''] = (asked.headers.get('set-cookie') ?? '').split(';');
      const callback = `${url}/login/oidc/callback?code=none&state=${state}`;
      return (await fetch(callback, { headers: { cookie } })).status;
    };
    for (let times = 0; times < 12; times += 1) {
      expect(await bogus()).toBe(401);
    }
    const callback = await toCallback('olga');
    const back = away(server);
    for (let times = 0; times < 12; times += 1) {
      expect(await bogus()).toBe(401);
    }
    back();
    expect((await browser.get(callback)).status).toBe(200);
    expect(await isIn(browser, url)).toBe(true);
  });

  it('logs neither code nor state of a callback that has an error, too', async () => {
    const { toCallback, browser, url, logger } = await sites();
    const callback = new URL(await toCallback('olga'));
    const { code, state } = Object.fromEntries(callback.searchParams);
    callback.searchParams.set('error', 'access_denied');
    expect((await browser.get(callback.href)).status).toBe(401);
    expect(await isIn(browser, url)).toBe(false);
    const lines = JSON.stringify(logger.lines);
    expect(lines).toContain('a login with OpenID Connect failed');
    expect([code, state].some((secret) => lines.includes(secret ?? 'missing'))).toBe(false);
  });

  it('lets nobody come back twice, with the state of another, or without a beginning', async () => {
    const { toCallback, browser, url } = await sites();
    const callback = await toCallback('olga');
    const begun = browser.cookieOf(url, 'blazar-enforcement-login') ?? '';
    expect((await browser.get(callback)).status).toBe(200);
    const thief = new Browser();
    expect((await thief.get(callback)).status).toBe(401);
    thief.setCookie(url, 'blazar-enforcement-login', begun);
    expect((await thief.get(callback)).status, 'the same beginning').toBe(401);
    // A victim who is led to the callback of somebody else would be logged in as that one.
    const victim = new Browser();
    await victim.get(`${url}/login/oidc`, /^http.*interaction|auth/);
    const other = await toCallback('olga', '/', new Browser());
    expect((await victim.get(other)).status, 'the state of another').toBe(401);
    for (const value of ['', 'x', `${begun.slice(0, -2)}AA`, 'A'.repeat(3000)]) {
      const forger = new Browser();
      forger.setCookie(url, 'blazar-enforcement-login', value);
      expect((await forger.get(callback)).status, value.slice(0, 9)).toBe(401);
      expect(await isIn(forger, url)).toBe(false);
    }
  });

  it('shows a sentence, and no text of the address, if the provider says no', async () => {
    const { browser, url } = await sites();
    const asked = await browser.get(`${url}/login/oidc`, /\/interaction\//);
    expect(asked.headers.get('Location')).toContain('/interaction/');
    const page = await browser.get(
      `${url}/login/oidc/callback?error=access_denied&error_description=<b>evil</b>&state=x`,
    );
    expect(page.status).toBe(401);
    expect(page.html).toContain('did not confirm who you are');
    expect(page.html).not.toContain('evil');
  });

  it('asks for a login everywhere once it is configured, and a reload without it is refused', async () => {
    const { request, service, write } = await sites();
    expect((await request('/')).status).toBe(401);
    expect((await request('/v1/projects')).status).toBe(401);
    expect((await request('/v1/projects', { headers: { 'X-Auth-Token': 'x' } })).status).toBe(401);
    write();
    expect(await service.reload()).toBe(false);
    expect((await request('/')).status).toBe(401);
  });
});
