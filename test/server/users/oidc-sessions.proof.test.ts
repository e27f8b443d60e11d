/** Sessions that a real provider of OpenID Connect has opened, and what it says of them later on. */
import { describe, expect, it, vi } from 'vitest';
import { newLedger } from '../../support/ledgers.ts';
import { Browser } from './browser.ts';
import { away, isIn, sites } from './oidc-sites.ts';

const MINUTE = 60_000;

function clock() {
  const start = Date.now();
  vi.useFakeTimers({ toFake: ['Date'], now: start });
  return { at: (milliseconds: number) => vi.setSystemTime(start + milliseconds) };
}

/** Whether the pages of operators are shown. */
const isOperator = async (browser: Browser, url: string) =>
  (await browser.get(`${url}/configuration`)).status === 200;

/** Logs out there, as the page of the provider does. */
async function logOutThere(browser: Browser, issuer: string): Promise<void> {
  const page = await browser.get(`${issuer}/session/end`);
  const [, xsrf = ''] = /name="xsrf" value="([^"]*)"/.exec(page.html) ?? [];
  await browser.post(`${issuer}/session/end/confirm`, { xsrf, logout: 'yes' });
}

describe('a session of a provider that gives refresh tokens', () => {
  it.for([false, true])(
    'goes on for hours, and loses rights within a quarter of an hour (public client: %s)',
    async (isPublic) => {
      const { at } = clock();
      const { logIn, browser, url, accounts } = await sites({ refreshes: true, isPublic });
      await logIn('olga');
      for (const minutes of [14, 28, 42, 100]) {
        at(minutes * MINUTE);
        expect(await isOperator(browser, url), `after ${minutes} minutes`).toBe(true);
      }
      accounts.olga = { preferred_username: 'olga', groups: ['/projects/c11/member'] };
      at(115 * MINUTE);
      expect([await isIn(browser, url), await isOperator(browser, url)]).toEqual([true, false]);
    },
  );

  it('loses rights after ten minutes in use, without a request waiting for the provider', async () => {
    const { at } = clock();
    const { logIn, browser, url, accounts } = await sites({ refreshes: true });
    await logIn('olga');
    accounts.olga = { preferred_username: 'olga', groups: ['/projects/c11/member'] };
    at(10 * MINUTE - 1);
    expect(await isOperator(browser, url)).toBe(true);
    at(10 * MINUTE);
    await expect.poll(() => isOperator(browser, url)).toBe(false);
    expect(await isIn(browser, url)).toBe(true);
  });

  it.for([
    ['has no rights any more', { preferred_username: 'olga' }],
    ['is gone', undefined],
  ] as const)('ends when the account %s', async ([, account]) => {
    const { at } = clock();
    const { logIn, browser, url, accounts } = await sites({ refreshes: true });
    await logIn('olga');
    accounts.olga = account;
    at(15 * MINUTE);
    expect(await isIn(browser, url)).toBe(false);
    accounts.olga = { preferred_username: 'olga', realm_access: { roles: ['cloud-admin'] } };
    expect(await isIn(browser, url), 'for good').toBe(false);
  });

  it('outlives a provider that is away for less than five minutes, and ends a quarter of an hour after the last word', async () => {
    const { at } = clock();
    const { logIn, browser, url, server } = await sites({ refreshes: true });
    await logIn('olga');
    let back = away(server);
    at(14 * MINUTE);
    expect(await isOperator(browser, url)).toBe(true);
    back();
    at(14.9 * MINUTE);
    expect(await isOperator(browser, url)).toBe(true);
    at(25 * MINUTE);
    expect(await isOperator(browser, url)).toBe(true);
    back = away(server);
    at(45 * MINUTE);
    expect(await isIn(browser, url)).toBe(false);
    back();
    expect(await isIn(browser, url), 'for good').toBe(false);
  });
});

describe('two services on one ledger, behind a load balancer without stickiness', () => {
  it('let somebody in who began at one and comes back to the other, once', async () => {
    const { toCallback, browser, url } = await sites({ ledger: await newLedger() });
    const back = await toCallback('olga');
    const cookie = browser.cookieOf(url, 'blazar-enforcement-login') ?? '';
    expect((await browser.get(back)).html).toContain('You are logged in');
    const all = await Promise.all(Array.from({ length: 4 }, () => isIn(browser, url)));
    expect(all).not.toContain(false);
    for (const _ of ['one', 'the other']) {
      const thief = new Browser();
      thief.setCookie(url, 'blazar-enforcement-login', cookie);
      expect((await thief.get(back)).status).toBe(401);
      expect(await isIn(thief, url)).toBe(false);
    }
  });

  it('ask the provider once, whichever of them is asked at the same time, and know what it says', async () => {
    const { at } = clock();
    const { logIn, browser, url, provider, accounts } = await sites({
      refreshes: true,
      isPublic: true,
      ledger: await newLedger(),
    });
    await logIn('olga');
    const granted = vi.fn();
    provider.on('grant.success', granted);
    at(16 * MINUTE);
    const all = await Promise.all(Array.from({ length: 8 }, () => isOperator(browser, url)));
    expect(all).not.toContain(false);
    expect(granted).toHaveBeenCalledTimes(1);
    // With the refresh token that came in place of the first, at whichever of them.
    at(32 * MINUTE);
    expect(await isOperator(browser, url)).toBe(true);
    expect(granted).toHaveBeenCalledTimes(2);
    accounts.olga = undefined;
    at(48 * MINUTE);
    expect([await isIn(browser, url), await isIn(browser, url)]).toEqual([false, false]);
  });

  it('end a session at both when the provider tells one of them', async () => {
    const { toCallback, browser, url, issuer } = await sites({ ledger: await newLedger() });
    const elsewhere = new Browser();
    for (const one of [browser, elsewhere]) {
      await one.get(await toCallback('olga', '/', one));
    }
    await logOutThere(browser, issuer);
    await expect.poll(() => isIn(browser, url)).toBe(false);
    expect(await isIn(browser, url)).toBe(false);
    expect([await isIn(elsewhere, url), await isIn(elsewhere, url)]).toEqual([true, true]);
  });
});

it('a session of a provider without refresh tokens ends after a quarter of an hour', async () => {
  const { at } = clock();
  const { logIn, browser, url } = await sites();
  await logIn('olga');
  at(15 * MINUTE - 1);
  expect(await isIn(browser, url)).toBe(true);
  at(15 * MINUTE);
  expect(await isIn(browser, url)).toBe(false);
});

describe('a logout at the provider', () => {
  it('ends the session here with its live updates, and no other session of the same user', async () => {
    const { toCallback, browser, url, issuer, logger } = await sites();
    const elsewhere = new Browser();
    for (const one of [browser, elsewhere]) {
      await one.get(await toCallback('olga', '/', one));
    }
    const name = 'blazar-enforcement-session';
    const Cookie = `${name}=${browser.cookieOf(url, name)}`;
    const stream = await fetch(`${url}/events`, { headers: { Cookie } });
    expect(stream.status).toBe(200);
    await logOutThere(browser, issuer);
    await expect.poll(() => isIn(browser, url)).toBe(false);
    expect(await isIn(elsewhere, url)).toBe(true);
    // It ends: else this waits for ever.
    expect(await stream.text()).toContain('event: hello');
    expect(JSON.stringify(logger.lines)).not.toMatch(/eyJ|olga/);
  });

  it('ends all sessions of the user here if the provider names none', async () => {
    const { toCallback, browser, url, issuer } = await sites({ namesSessions: false });
    const elsewhere = new Browser();
    const rita = new Browser();
    for (const one of [browser, elsewhere]) {
      await one.get(await toCallback('olga', '/', one));
    }
    await rita.get(await toCallback('rita', '/', rita));
    await logOutThere(browser, issuer);
    await expect.poll(() => isIn(browser, url)).toBe(false);
    expect([await isIn(elsewhere, url), await isIn(rita, url)]).toEqual([false, true]);
  });
});
