/** The console in a real Chromium: for eyes, ears and keys, with and without script. */
import { h, type VNode } from 'preact';
import { describe, expect, it, onTestFinished } from 'vitest';
import { UsageEnforcement } from '../../../src/index.ts';
import type { ConsolePage } from '../../../src/server/console/page.ts';
import { CONSOLE_PAGES } from '../../../src/server/console/pages.ts';
import { LivePart } from '../../../src/server/console/parts/parts.tsx';
import { Chart } from '../../../src/server/console/parts/pictures.tsx';
import {
  expectSound,
  HAS_CHROMIUM,
  LOOKS,
  logIn,
  openPage,
  sharedBrowser,
  tabStops,
  transferred,
} from '../../support/console/browser.ts';
import { filterSource } from '../../support/filter-folder.ts';
import { newLedgers } from '../../support/ledgers.ts';
import { createLasting } from '../../support/requests.ts';
import { runApp, runService, runServiceOf } from '../../support/running-service.ts';

const SECRET = 's3cret-0123456789abcdef';
const TOKEN = { 'X-Auth-Token': SECRET };
const HOSTILE = [
  '<script>alert(1)</script>',
  '<img src=x onerror=alert(1)>',
  '"><svg onload=alert(1)>',
  '</td></table><iframe src="javascript:alert(1)"></iframe>',
  '\u202e\u0007gnp.exe',
  'x'.repeat(255),
];
/** Keeps the texts of canvases as `drawnTexts`. */
const RECORD_TEXTS = `
  globalThis.drawnTexts = [];
  const { fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function (...drawn) {
    globalThis.drawnTexts.push(drawn[0]);
    fillText.apply(this, drawn);
  };
`;
const newLedger = newLedgers();

/** A service that has a ledger, stores decisions, and has refused leases with hostile names. */
async function hostileService() {
  const values = {
    service: { port: 0, tokens: [SECRET], decision_store: 'all' },
    ledger: { connection: await newLedger('sqlite') },
    enforcement: {
      enabled_filters: ['MaxLeasesFilter', 'MaxLeaseDurationFilter'],
      max_lease_duration: 172_800,
      max_leases_per_project: 3,
    },
  };
  const service = await runServiceOf(values);
  for (const name of HOSTILE) {
    const { context, lease } = createLasting(864_000, { user_id: name, project_id: name });
    await service.post('/check-create', { context, lease: { ...lease, name } }, TOKEN);
    await service.post('/check-create', { context, lease: { ...lease, end_date: undefined, name } }, TOKEN);
  }
  const { context, lease } = createLasting(60);
  const allowed = await service.post('/check-create', { context, lease: { ...lease, name: 'fits' } }, TOKEN);
  return { ...service, allowedId: allowed.headers.get('X-Openstack-Request-Id') ?? '' };
}

describe.skipIf(!HAS_CHROMIUM)('the console in Chromium', () => {
  const browser = sharedBrowser();

  it.for(LOOKS)('is sound on every page when it is $name, whatever was written into it', async (look) => {
    const { url, allowedId } = await hostileService();
    const { page, said, asked } = await openPage(browser(), look);
    await page.goto(url);
    await expectSound(page);
    await logIn(page, SECRET);
    await expect
      .poll(async () => {
        await page.goto(`${url}/decisions/${allowedId}`);
        return page.getByRole('heading', { level: 1 }).textContent();
      })
      .toBe('Decision');
    const first = await page.request.get(`${url}/decisions?outcome=refused`).then((answer) => answer.text());
    const refusedPath = /href="(\/decisions\/req-[^"]+)"/.exec(first)?.[1] ?? '';
    const paths = ['/', '/decisions', '/decisions?since=soon', '/configuration', `/decisions/${allowedId}`];
    const usage = ['/usage', '/usage?by=user', '/usage?from=soon'];
    for (const path of [...paths, refusedPath, '/decisions/nothing', ...usage]) {
      await page.goto(url + path);
      await expectSound(page, `${look.name} ${path}`);
    }
    await page.goto(`${url}/configuration`);
    for (const details of await page.locator('details').all()) {
      await details.evaluate((element) => element.setAttribute('open', ''));
    }
    await expectSound(page, 'all options');
    expect(
      await page.locator('script:not([type]), img, iframe, object, embed, style, [style], [onload]').count(),
    ).toBe(0);
    expect(asked.filter((address) => !address.startsWith(`${url}/`))).toEqual([]);
    expect(asked.join()).not.toContain(SECRET);
    expect(said).toEqual([]);
  });

  it('can be used by the keyboard alone', async () => {
    const { url } = await hostileService();
    const { page } = await openPage(browser());
    await page.goto(`${url}/decisions`);
    await page.getByLabel('Token').focus();
    await page.keyboard.type(SECRET);
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Live updates' }).waitFor();
    const stops = await tabStops(page);
    const labels = CONSOLE_PAGES.flatMap(({ label }) => (label === undefined ? [] : [`a: ${label}`]));
    const expected = [
      'a: Skip to the content',
      'a: blazar-enforcement',
      ...labels,
      'button: Log out',
      'button: Live updates',
      'input: Project',
    ];
    expect(stops.slice(0, expected.length)).toEqual(expected);
    expect(stops.filter((stop) => stop.includes('unseen'))).toEqual([]);
    await page.keyboard.press('Home');
    await page.evaluate('document.activeElement?.blur?.()');
    await page.goto(`${url}/decisions`);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    expect(await page.evaluate('document.activeElement.id')).toBe('main');
  });

  it('works without script: reading, looking for something, going on, and logging out', async () => {
    const { url } = await hostileService();
    const { page, asked } = await openPage(browser(), { javaScriptEnabled: false });
    await page.goto(`${url}/decisions?outcome=refused`);
    await logIn(page, SECRET);
    expect(page.url()).toBe(`${url}/decisions?outcome=refused`);
    await page.getByLabel('Filter').fill('MaxLeaseDurationFilter');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('link', { name: /^req-/ }).first().click();
    await page.getByRole('heading', { name: 'rejected by MaxLeaseDurationFilter' }).waitFor();
    expect(await page.getByRole('button', { name: 'Live updates' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('Token').waitFor();
    expect(asked.filter((address) => address.endsWith('.js'))).toEqual([]);
  });

  it('shows a refusal when it comes, and moves neither focus nor what is folded nor what is marked', async () => {
    const { url, post } = await runService({
      filters: {
        'echo-filter.js': filterSource('EchoFilter', { create: "return reject('No: ' + lease.name);" }),
      },
      enforcement: { enabled_filters: ['EchoFilter'], max_lease_duration: undefined },
    });
    const refuse = (name: string) => {
      const { context, lease } = createLasting(60);
      return post('/check-create', { context, lease: { ...lease, name } });
    };
    await refuse('first');
    const { page, said } = await openPage(browser());
    const heard = page.waitForResponse((response) => response.url().endsWith('/events'));
    await page.goto(`${url}/decisions`);
    await heard;
    const link = page.getByRole('row', { name: /No: first/ }).getByRole('link', { name: /^req-/ });
    await link.focus();
    await refuse('second');
    await page.getByText('No: second').waitFor();
    expect(await link.evaluate((element) => element === element.ownerDocument.activeElement)).toBe(true);
    expect(await page.getByRole('status').last().textContent()).toMatch(/^This page was updated at /);

    const pause = page.getByRole('button', { name: 'Live updates' });
    expect(await pause.getAttribute('aria-pressed')).toBe('true');
    await pause.click();
    expect(await pause.getAttribute('aria-pressed')).toBe('false');
    await refuse('third');
    await page.waitForTimeout(2500);
    expect(await page.getByText('No: third').count()).toBe(0);
    await pause.click();
    await page.getByText('No: third').waitFor();
    expect(said).toEqual([]);
  });

  it('loads pages in any number of windows that are seen at once', async () => {
    const { url } = await runService({ service: { tokens: [SECRET] } });
    const { page } = await openPage(browser());
    await page.goto(url);
    await logIn(page, SECRET);
    for (let windows = 0; windows < 8; windows += 1) {
      const other = await page.context().newPage();
      await other.goto(`${url}/decisions`, { timeout: 30_000 });
    }
  });

  it('says so when the session has ended', async () => {
    const { url, post } = await runService({ service: { tokens: [SECRET] } });
    const { page } = await openPage(browser());
    await page.goto(url);
    await logIn(page, SECRET);
    await page.goto(url);
    const other = await page.context().newPage();
    await other.goto(url);
    await other.getByRole('button', { name: 'Log out' }).click();
    await page.bringToFront();
    await post('/check-create', createLasting(864_000), TOKEN);
    await page.locator('main').getByText('Your session has ended').waitFor({ timeout: 240_000 });
  });

  it('weighs less than 150 kB at the first look, and nearly nothing at the second', async () => {
    const { url } = await hostileService();
    const { page } = await openPage(browser(), { extraHTTPHeaders: TOKEN });
    const first = await transferred(page, url);
    const second = await transferred(page, `${url}/decisions`);
    console.info(`first page: ${first} bytes over the wire; second: ${second}`);
    expect(first).toBeGreaterThan(2000);
    expect(first).toBeLessThan(150_000);
    expect(second).toBeLessThan(first);
  });

  it('draws a chart that its policy allows, with months below bars, and the same numbers as a table', async () => {
    const start = Date.UTC(2026, 11, 1) / 1000;
    const times = Array.from({ length: 30 }, (_, index) => start + index * 86_400);
    const hostile = '</script><script>alert(1)</script>';
    const chart: ConsolePage = {
      method: 'GET',
      path: '/chart',
      action: 'see-project',
      label: 'Chart',
      answer: async () => ({
        title: 'Chart',
        main: h(
          LivePart as (props: object) => VNode,
          { name: 'chart' },
          h('section', { 'aria-label': 'Chart' }, [
            h(Chart, {
              id: 'one',
              title: hostile,
              description: 'It rises.',
              unit: 'node-hours',
              times,
              now: start + 10 * 86_400,
              series: [
                {
                  label: 'used',
                  look: 'used',
                  form: 'area',
                  values: times.map((_, index) => (index < 10 ? index : null)),
                },
                { label: 'planned', look: 'planned', form: 'steps', values: times.map((_, index) => index) },
                { label: 'limit', look: 'limit', form: 'line', values: times.map(() => 40) },
              ],
            }),
            h(Chart, {
              id: 'two',
              title: 'Months',
              description: 'One.',
              unit: 'node-hours',
              times: [start],
              series: [{ label: 'used', look: 'used', form: 'bars', values: [5] }],
            }),
          ]),
        ),
      }),
    };
    const enforcement = await UsageEnforcement.load({ environment: {}, configFiles: [] });
    onTestFinished(() => enforcement.close());
    const { url } = await runApp(enforcement, [], { pages: [chart] });
    for (const look of LOOKS) {
      const { page, said } = await openPage(browser(), look);
      await page.addInitScript(RECORD_TEXTS);
      const bytes = await transferred(page, `${url}/chart`);
      expect(bytes).toBeLessThan(150_000);
      await page.locator('[data-chart="two"] canvas').waitFor();
      await expectSound(page, look.name);
      const painted = await page.locator('[data-chart="one"] canvas').evaluate((canvas) => {
        const { width, height } = canvas as unknown as { width: number; height: number };
        const context = (
          canvas as unknown as {
            getContext(kind: '2d'): { getImageData(...area: number[]): { data: number[] } };
          }
        ).getContext('2d');
        const { data } = context.getImageData(0, 0, width, height);
        return data.filter((value, index) => index % 4 === 3 && value > 0).length;
      });
      expect(painted).toBeGreaterThan(1000);
      const texts = await page.evaluate<string[]>('drawnTexts');
      expect(texts).toContain('2026-12');
      expect(texts.filter((text) => text.startsWith('11-'))).toEqual([]);
      await page.getByText('Numbers of:').first().click();
      expect(await page.getByRole('row').count()).toBeGreaterThan(30);
      await expectSound(page, `${look.name}, with numbers`);
      await page.setViewportSize({ width: 500, height: 700 });
      await expect
        .poll(async () => (await page.locator('.uplot').first().boundingBox())?.width)
        .toBeLessThan(500);
      expect(said).toEqual([]);
    }
    const { page } = await openPage(browser(), { javaScriptEnabled: false });
    await page.goto(`${url}/chart`);
    await page.getByText('Numbers of:').first().click();
    expect(await page.getByRole('cell', { name: '40', exact: true }).count()).toBe(30);
  });
});
