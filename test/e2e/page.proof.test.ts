import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { capturedFile } from '../support/files.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';
import { giveBudget, ledgerAt, newLedgers } from '../support/ledgers.ts';
import { createLasting } from '../support/requests.ts';
import { startCommand } from '../support/run-command.ts';

const CHROMIUM = '/usr/bin/chromium';
const INSTALLED = existsSync(CHROMIUM);
const NINE_DAYS = readFileSync(capturedFile('check-create-gpu-and-floating-ip'), 'utf8');
/** A name that is this machine, and for the browser no more to be trusted than any other. */
const NAME = 'policy.test';

if (!INSTALLED) {
  console.warn(`\n*** ${CHROMIUM} is not installed: THE PAGE IS NOT TESTED IN A BROWSER ***\n`);
}

const newLedger = newLedgers();
let browser: Browser;
/** The policy service that allows two days. */
let service: Awaited<ReturnType<typeof serve>>;

/** Starts the command, which the caller stops. */
async function serve(enforcement: string) {
  const folder = mkdtempSync(join(tmpdir(), 'blazar-enforcement-'));
  const file = join(folder, 'blazar.conf');
  writeFileSync(file, `[service]\nport = 0\ntokens = s3cret\n[enforcement]\n${enforcement}`);
  const { process, printed, ended } = startCommand(['serve', '--config-file', file, '--log-level', 'silent']);
  const [, url = ''] = await printed(/^Listening on (http:\S+)\n/m);
  const stop = async () => {
    process.kill('SIGKILL');
    await ended;
    rmSync(folder, { recursive: true });
  };
  return { url, file, stop };
}

/** A browser of its own, and all that it says and asks for. */
async function openBrowser(options: BrowserContextOptions = {}) {
  const context = await browser.newContext(options);
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const asked: string[] = [];
  const said: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  page.on('pageerror', (error) => said.push(error.message));
  page.on('dialog', (dialog) => {
    said.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('console', (message) => {
    // Of a status such as 401, which is meant; and hints about forms.
    if (!/^Failed to load resource: the server responded with a status of 4/.test(message.text())) {
      if (message.type() !== 'debug') {
        said.push(`${message.type()}: ${message.text()}`);
      }
    }
  });
  return { context, page, asked, said };
}

async function logIn(page: Page, url: string, token = 's3cret') {
  await page.goto(url);
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Log in' }).click();
}

async function judge(page: Page, request: string) {
  await page.getByRole('textbox', { name: 'Request' }).fill(request);
  await page.getByRole('button', { name: 'Judge' }).click();
}

describe.skipIf(!INSTALLED)('the page in Chromium', () => {
  beforeAll(async () => {
    browser = await chromium.launch({
      executablePath: CHROMIUM,
      args: [
        ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
        ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
        '--host-resolver-rules=MAP *.test 127.0.0.1',
      ],
    });
    service = await serve('enabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 172800\n');
  }, 60_000);
  afterAll(async () => {
    await browser?.close();
    await service?.stop();
  });

  it.for([
    ['with JavaScript', true],
    ['without JavaScript', false],
  ] as const)('asks for a token, judges, and lets go, %s', async ([, javaScriptEnabled]) => {
    const { url, file } = service;
    const { context, page, asked, said } = await openBrowser({ javaScriptEnabled });
    await logIn(page, url, 'wrong');
    await page.getByText('This token is not accepted.').waitFor();
    await page.getByLabel('Token').fill('s3cret');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('heading', { name: 'Policy service' }).waitFor();
    await page.getByRole('row', { name: `max_lease_duration 172800 seconds ${file}:6` }).waitFor();
    const [cookie, ...others] = await context.cookies();
    expect(others).toEqual([]);
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', secure: false, path: '/' });
    expect((cookie?.expires ?? 0) * 1000 - Date.now()).toBeGreaterThan(7.9 * 3_600_000);

    if (javaScriptEnabled) {
      expect(await page.evaluate('document.cookie')).toBe('');
    }

    await judge(page, NINE_DAYS);
    await page.getByRole('heading', { name: 'rejected by MaxLeaseDurationFilter' }).waitFor();
    expect(await page.getByRole('textbox', { name: 'Request' }).inputValue()).toBe(NINE_DAYS);
    await judge(page, '{');
    await page.getByRole('alert').getByText('Not judged: expected a request in JSON').waitFor();
    expect(await page.getByText('None since this process started.').count()).toBe(1);

    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('Token').waitFor();
    expect(await context.cookies()).toEqual([]);
    expect(asked.filter((address) => !address.startsWith(`${url}/`))).toEqual([]);
    expect(asked.join()).not.toMatch(/s3cret|wrong/);
    expect(said).toEqual([]);
  });

  it('looks as its style says, which is the only thing that its policy lets through', async () => {
    const { url } = service;
    const { page, said } = await openBrowser({ colorScheme: 'dark' });
    await logIn(page, url);
    const evaluate = (code: string) => page.evaluate(code);
    await page.getByRole('heading', { name: 'Latest decisions' }).waitFor();
    expect(await evaluate('getComputedStyle(document.body).backgroundColor')).toBe('rgb(17, 21, 27)');
    expect(said).toEqual([]);
    // That nothing was said is worth something: here is what would have been.
    await evaluate("document.body.setAttribute('style', 'color: red')");
    await evaluate("document.body.append(Object.assign(document.createElement('img'), { src: '/x.png' }))");
    await evaluate(
      "document.body.append(Object.assign(document.createElement('script'), { text: 'alert(1)' }))",
    );
    await expect.poll(() => said.length).toBe(3);
    expect(said.every((message) => message.includes('Content Security Policy'))).toBe(true);
  });

  it('runs nothing that somebody has put into a name or a request, and fits a narrow screen', async () => {
    const folder = filterFolder({
      'echo-filter.js': filterSource('EchoFilter', { create: "return reject('No: ' + lease.name);" }),
    });
    const { url, stop } = await serve(`filters_path = ${folder}\nenabled_filters = EchoFilter\n`);
    onTestFinished(stop);
    const names = [
      '<script>alert(1)</script>',
      '<img src=x onerror=alert(1)>',
      '"><svg onload=alert(1)>',
      '</td></table><iframe src="javascript:alert(1)"></iframe>',
      '\u202e\u0007gnp.exe',
      'x'.repeat(255),
    ];
    for (const name of names) {
      const { context, lease } = createLasting(60, { user_id: name, project_id: name });
      const answer = await fetch(`${url}/check-create`, {
        method: 'POST',
        body: JSON.stringify({ context, lease: { ...lease, name } }),
        headers: { 'Content-Type': 'application/json', 'X-Auth-Token': 's3cret' },
      });
      expect(answer.status).toBe(403);
    }
    for (const javaScriptEnabled of [true, false]) {
      const { page, said, asked } = await openBrowser({
        javaScriptEnabled,
        viewport: { width: 320, height: 640 },
      });
      await logIn(page, url);
      await judge(page, `{"a": "</textarea><script>alert(1)</script><img src=x onerror=alert(1)>"}`);
      await page.getByText('Not judged: context: expected an object').waitFor();
      await judge(
        page,
        JSON.stringify({ ...createLasting(60), lease: { ...createLasting(60).lease, name: names[2] } }),
      );
      await page.getByRole('heading', { name: 'rejected by EchoFilter' }).waitFor();
      const rows = page.getByRole('region', { name: 'Latest decisions' }).last().getByRole('row');
      expect(await rows.count()).toBe(1 + names.length);
      for (const name of names.slice(0, 4)) {
        expect(await rows.getByText(`No: ${name}`, { exact: true }).count()).toBe(1);
      }
      expect(await rows.getByText('No: [U+202E][U+0007]gnp.exe').count()).toBe(1);
      expect(await page.locator('script, img, svg, iframe, object, embed, link').count()).toBe(0);
      expect(asked.every((address) => /^http:[^?]*\/(login|#judge)?$/.test(address))).toBe(true);
      expect(said).toEqual([]);
      if (javaScriptEnabled) {
        // What is wide scrolls by itself, also by the keyboard.
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320);
        expect(await page.locator('.scrolls:not([tabindex="0"])').count()).toBe(0);
      }
    }
  });

  it('shows the budget and the leases of a project as a picture, on a narrow screen too', async () => {
    const connection = await newLedger('sqlite');
    const ledger = await ledgerAt(connection, { now: () => new Date().toISOString() });
    await giveBudget(ledger, { amount: '100', from: '2020-01-01', until: '9000-01-01' });
    await ledger.close();
    const { url, stop } = await serve(
      `enabled_filters = UsageBudgetFilter\n[ledger]\nconnection = ${connection}\n`,
    );
    onTestFinished(stop);
    const start = Math.ceil(Date.now() / 1000) * 1000;
    const hour = (hours: number) => new Date(start + hours * 3_600_000).toISOString();
    const ask = async (name: string, hours: number) => {
      const { status } = await fetch(`${url}/check-create`, {
        method: 'POST',
        body: JSON.stringify({
          context: { user_id: 'alice', project_id: 'climate' },
          lease: {
            ...{ name, start_date: hour(48), end_date: hour(48 + hours) },
            reservations: [{ resource_type: 'physical:host', min: 1, max: 1 }],
          },
        }),
        headers: { 'Content-Type': 'application/json', 'X-Auth-Token': 's3cret' },
      });
      return status;
    };
    const hostile = '"><svg onload=alert(1)></text><script>alert(1)</script>';
    expect(await ask(hostile, 50)).toBe(204);
    expect(await ask('too long', 60)).toBe(403);
    for (const width of [320, 1200]) {
      const { page, said, asked } = await openBrowser({ viewport: { width, height: 700 } });
      await logIn(page, url);
      await page.getByRole('link', { name: 'climate' }).waitFor();
      await page.getByLabel('Project', { exact: true }).fill('climate');
      await page.getByRole('button', { name: 'Show' }).click();
      await page.getByText('50 of 100 node-hours left').waitFor();
      expect(page.url()).toBe(`${url}/?project=climate#ledger`);

      const box = async (selector: string) => {
        const found = await page.locator(selector).boundingBox();
        return { left: found?.x ?? 0, right: (found?.x ?? 0) + (found?.width ?? 0) };
      };
      const budget = page.getByRole('img', { name: 'Budget of the project' });
      expect(await budget.count()).toBe(1);
      const [whole, planned] = [await box('.budgets .left'), await box('.budgets .planned')];
      expect((planned.right - planned.left) / (whole.right - whole.left)).toBeCloseTo(0.5, 2);

      const timeline = page.getByRole('img', { name: 'Leases on a time line' });
      expect(await timeline.getByText('"><svg onload=alert(1)></te…', { exact: true }).count()).toBe(1);
      const [now, pending, refused] = [
        await box('.timeline .now line'),
        await box('.timeline .pending'),
        await box('.timeline .refused'),
      ];
      expect(now.right).toBeLessThan(pending.left);
      expect(Math.abs(refused.left - pending.left)).toBeLessThan(2);
      expect(refused.right).toBeGreaterThan(pending.right);
      expect(refused.right).toBeLessThanOrEqual(width);

      const fill = (state: string) =>
        page.evaluate(`getComputedStyle(document.querySelector('.timeline .bar.${state}')).fill`);
      expect([await fill('pending'), await fill('refused')]).toEqual(['url("#hatched")', 'none']);
      const size = await page.evaluate(
        "Number.parseFloat(getComputedStyle(document.querySelector('.timeline text')).fontSize) * document.querySelector('.timeline').getScreenCTM().a",
      );
      expect(size).toBeGreaterThanOrEqual(12);
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
      expect(await page.locator('script, img, iframe').count()).toBe(0);
      expect(asked.every((address) => address.startsWith(`${url}/`))).toBe(true);
      expect(said).toEqual([]);
    }
  });

  it('takes its own forms over http at any name, and none of another site', async () => {
    const namedUrl = service.url.replace('127.0.0.1', NAME);
    const elsewhere = createServer((_, response) => {
      const forms = ['login', 'logout', '']
        .map(
          (path) =>
            `<form method=post action="${namedUrl}/${path}"><input name=token value=s3cret><button>at /${path}!</button></form>`,
        )
        .join('');
      response.setHeader('Content-Type', 'text/html');
      response.end(`${forms}<iframe src="${namedUrl}/"></iframe>`);
    });
    await new Promise<void>((listening) => elsewhere.listen(0, '127.0.0.1', listening));
    onTestFinished(() => {
      elsewhere.closeAllConnections();
      elsewhere.close();
    });
    const evil = `http://evil.test:${(elsewhere.address() as AddressInfo).port}/`;

    const { page, said } = await openBrowser();
    await logIn(page, namedUrl);
    await judge(page, NINE_DAYS);
    await page.getByRole('heading', { name: 'rejected by MaxLeaseDurationFilter' }).waitFor();
    expect(said).toEqual([]);
    for (const [path, status] of [
      ['login', 403],
      ['logout', 403],
      // The cookie does not come along.
      ['', 401],
    ] as const) {
      await page.goto(evil);
      const answered = page.waitForResponse((response) => response.request().method() === 'POST');
      await page.getByRole('button', { name: `at /${path}!` }).click();
      expect((await answered).status()).toBe(status);
    }
    await page.goto(evil);
    expect(said.join()).toMatch(/frame-ancestors/);
    // Neither logged out nor in again.
    await page.goto(namedUrl);
    await page.getByRole('button', { name: 'Log out' }).waitFor();
  });
});
