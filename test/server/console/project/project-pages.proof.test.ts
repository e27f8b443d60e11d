/** Projects, Try a lease and Budgets in a real Chromium: what is seen, at any width, by keyboard, without script, in the dark. */
import type { BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { decisionRecord } from '../../../../src/decisions/lease-record.ts';
import { toInstant } from '../../../../src/index.ts';
import { askForBudget } from '../../../../src/ledger/budgets/requests/requests.ts';
import { CONSOLE_PAGES } from '../../../../src/server/console/pages.ts';
import {
  axeFindings,
  HAS_CHROMIUM,
  openPage,
  openSharedPage,
  overflow,
  sharedBrowser,
  unreachable,
  type Visited,
} from '../../../support/console/browser.ts';
import { giveBudget, ledgerAt, NO_WAIT, newLedgers } from '../../../support/ledgers.ts';
import { createHost } from '../../../support/requests.ts';
import { type ConsoleFixture, consoleOn, type Name } from '../console-fixture.ts';

const NOW = '2026-11-22T12:00:00Z';
const LONG = 'W'.repeat(255);
const NAMES = [
  'run',
  LONG,
  '\u202egpj.exe',
  '<script>alert(1)</script>',
  'wide words in a name '.repeat(9),
  '',
];

const newLedger = newLedgers();
let fixture: ConsoleFixture;
const browser = sharedBrowser();

beforeAll(async () => {
  const connection = await newLedger('sqlite');
  const ledger = await ledgerAt(connection, { now: () => '2026-11-01T00:00:00Z' });
  await giveBudget(ledger, { amount: '2000', from: '2026-11-01', until: '2026-12-15' });
  await giveBudget(ledger, { amount: '900', from: '2026-12-15', until: '2027-02-01' });
  await giveBudget(ledger, { amount: '50', userId: 'id-of-meg', from: '2026-11-01', until: '2026-12-15' });
  await giveBudget(ledger, { projectId: LONG, amount: '1' });
  for (const [projectId, reason] of [
    ['climate', `\u202e${'W'.repeat(999)}`],
    [LONG, 'wide words '.repeat(90)],
  ] as const) {
    const wanted = { projectId, userId: null, amount: 7_200_000_000n, validUntil: 1_798_761_600n };
    await askForBudget(ledger, wanted, { who: LONG, reason, identity: 'test' }, NO_WAIT);
  }
  await ledger.close();
  fixture = await consoleOn(
    connection,
    {
      enforcement: { enabled_filters: ['MaxLeasesFilter', 'UsageBudgetFilter'], max_leases_per_project: 50 },
    },
    () => NOW,
  );
  await fixture.send('meg', CALENDAR, {});
  const { enforcement } = fixture.generation;
  for (const [index, name] of NAMES.entries()) {
    const day = String(23 + index).padStart(2, '0');
    await enforcement.checkCreate({
      context: { user_id: index % 2 === 0 ? 'id-of-bob' : LONG, project_id: 'climate' },
      lease: {
        id: index === 1 ? LONG : `lease-${index}`,
        name,
        start_date: `2026-11-${day} 00:00`,
        end_date: `2026-12-${String(index + 2).padStart(2, '0')} 00:00`,
        reservations: [{ resource_type: 'physical:host', min: 1, max: 1 + (index % 2) }],
      },
    });
  }
  const { lease } = createHost({ name: 'too long', end_date: '2026-12-11 09:00' });
  const refused = { context: { user_id: 'id-of-meg', project_id: 'climate' }, lease };
  const decision = await enforcement.checkCreate(refused);
  const facts = { requestId: 'req-refused', generation: 1, milliseconds: 1, request: refused };
  fixture.recorder.recent.add(decisionRecord(decision, facts), {
    start: toInstant('2026-12-01T09:00:00Z') ?? 0n,
    end: toInstant('2026-12-11T09:00:00Z') ?? 0n,
  });
});
afterAll(() => fixture?.close());

const WIDE = { width: 1280, height: 900 };

async function open(who: Name, path: string, options: BrowserContextOptions = {}): Promise<Page> {
  const { page, said } = await openPage(browser(), { viewport: WIDE, ...options });
  onTestFinished(() => expect(said).toEqual([]));
  await visit(page, who, path);
  return page;
}

async function visit(page: Page, who: Name, path: string): Promise<void> {
  await page.context().addCookies([{ name: 'person', value: who, url: fixture.url }]);
  await page.goto(fixture.url + path);
}

/** Texts of the time line that lie across a bar or another text. */
function overlaps(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const shown = (one: Element) => {
      const { width, height } = one.getBoundingClientRect();
      return width > 0 && height > 0 && getComputedStyle(one).display !== 'none';
    };
    const boxOf = (one: Element) => {
      const box = one.getBoundingClientRect();
      const clip = one.closest('.words, svg')?.getBoundingClientRect() ?? box;
      return {
        what: `${one.tagName}.${one.getAttribute('class')} ${one.textContent?.slice(0, 30)}`,
        left: Math.max(box.left, clip.left),
        right: Math.min(box.right, clip.right),
        top: Math.max(box.top, clip.top),
        bottom: Math.min(box.bottom, clip.bottom),
      };
    };
    const select = (selector: string) =>
      [...globalThis.document.querySelectorAll(selector)].filter(shown).map(boxOf);
    const texts = select('.timeline svg text, .timeline .words > p > *, .timeline .words > small');
    const bars = select('.timeline .track rect.bar');
    const found: string[] = [];
    for (const [index, one] of texts.entries()) {
      for (const other of [...bars, ...texts.slice(index + 1)]) {
        const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
        const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
        if (across > 0.5 && down > 0.5) {
          found.push(`${one.what} / ${other.what}`);
        }
      }
    }
    return found;
  });
}

/** Names of rows that push other columns out of sight. */
function wideNames(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    [...globalThis.document.querySelectorAll('.scrolls')]
      .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
      .flatMap((table) => [...table.querySelectorAll('tbody th')])
      .filter(({ clientWidth }) => clientWidth > globalThis.innerWidth / 2)
      .map(({ textContent }) => textContent.slice(0, 40)),
  );
}

const CALENDAR = '/projects/climate/calendar';
const PATHS: [Name, string][] = [
  ['operator', '/'],
  ['operator', '/projects'],
  ['meg', '/projects/climate'],
  ['operator', '/projects/climate'],
  ['meg', CALENDAR],
  ['meg', '/try?project=climate'],
  ['meg', '/leases/lease-0/change'],
  ['operator', `/leases/${LONG}/change`],
  ['operator', '/budgets'],
  ['mona', '/budgets/new'],
  ['operator', '/budgets/new'],
  ['operator', '/budgets/1'],
  ['operator', '/budgets/1/remove'],
  ['operator', '/budgets/history'],
  ['operator', '/budgets/import'],
  ['operator', '/budgets/requests'],
  ['meg', '/budgets/requests/new'],
  ['operator', '/budgets/requests/new'],
  ['mona', '/budgets/requests/1'],
  ['operator', '/budgets/requests/1'],
  ['operator', '/budgets/requests/2'],
  ['operator', '/usage'],
  ['operator', '/decisions'],
  ['meg', '/decisions/req-refused'],
  ['meg', '/leases/%231'],
  ['operator', '/leases/%232'],
  ['operator', '/configuration'],
];
/** Of a budget, which has no words of its own. */
const patternOf = (path: string) =>
  new RegExp(`^${path.replaceAll(/\{\w+\}/g, '(?!new|import|history)[^/]+')}$`);

it('every page of the console is looked at', () => {
  const looked = PATHS.map(([, path]) => path.replace(/\?.*/, ''));
  const pages = CONSOLE_PAGES.filter(({ method }) => method === 'GET').map(({ path }) => path);
  expect(pages.filter((path) => !looked.some((one) => patternOf(path).test(one)))).toEqual([]);
});

describe.runIf(HAS_CHROMIUM)('a page', () => {
  let visited: Visited;
  beforeAll(async () => {
    visited = await openSharedPage(browser(), { timezoneId: 'Asia/Kathmandu' });
  });
  afterAll(() => visited?.page.context().close());

  it.each(PATHS)(
    'has nothing that axe finds, in both themes, needs no more than 320 pixels, with local times, and no mouse: %s, %s',
    async (who, path) => {
      const { page, said } = visited;
      await page.emulateMedia({ colorScheme: 'dark' });
      await page.setViewportSize(WIDE);
      await visit(page, who, path);
      expect(await axeFindings(page)).toEqual([]);
      expect(await unreachable(page)).toEqual([]);
      expect(await wideNames(page)).toEqual([]);
      await page.emulateMedia({ colorScheme: 'light' });
      await page.setViewportSize({ width: 320, height: 800 });
      // A chart is drawn again a moment later.
      await expect.poll(() => overflow(page)).toEqual([]);
      expect(await axeFindings(page)).toEqual([]);
      expect(said).toEqual([]);
    },
  );

  it('that its user may no longer see says why, and is not loaded again', async () => {
    const { page } = await openPage(browser());
    await visit(page, 'operator', '/projects/ocean');
    await page.context().addCookies([{ name: 'person', value: 'meg', url: fixture.url }]);
    const updates = page.getByRole('button', { name: 'Live updates' });
    await updates.click();
    await updates.click();
    await page.getByText('You can no longer see this page').waitFor();
    expect(await updates.getAttribute('aria-pressed')).toBe('false');
  });
});

describe.runIf(HAS_CHROMIUM)('times', () => {
  const BERLIN = { timezoneId: 'Europe/Berlin' };
  /** What is beside each time. */
  const beside = (page: Page) =>
    page
      .locator('time')
      .evaluateAll((times) =>
        times.map((time) => [
          time.textContent,
          globalThis.getComputedStyle(time, '::after').content.replace(/^attr.*|"/g, ''),
          (time as HTMLElement).dataset.local ?? '',
        ]),
      );

  it('are in the zone of the viewer too', async () => {
    const page = await open('operator', '/budgets', BERLIN);
    await expect
      .poll(async () => (await beside(page)).map(([utc, , local]) => [utc, local]))
      .toContainEqual(['2026-12-15', '2026-12-15 01:00 GMT+1']);
    for (const [, seen, local] of await beside(page)) {
      expect(seen).toBe(local);
    }
  });

  it('are in UTC alone where that is the zone', async () => {
    const page = await open('operator', '/budgets', { timezoneId: 'UTC' });
    expect((await beside(page)).every(([, , local]) => local === '')).toBe(true);
    await page.goto(`${fixture.url}/budgets/new`);
    await page.getByLabel('Valid from (UTC)').waitFor();
    expect(await page.getByLabel('Times are in').count()).toBe(0);
  });

  it('of a form are written in either, and never what clocks skip or show twice', async () => {
    const page = await open('operator', '/budgets/new', BERLIN);
    const from = page.getByLabel(/^Valid from/);
    await page.getByLabel('Valid from (UTC)').fill('2027-07-01T07:00');
    await page.getByText('= 2027-07-01 09:00 GMT+2').waitFor();
    await page.getByLabel('Times are in').selectOption('Europe/Berlin');
    expect(await page.getByLabel('Valid from (Europe/Berlin)').inputValue()).toBe('2027-07-01T09:00');
    await page.getByText('= 2027-07-01 07:00 UTC').waitFor();
    const complaint = () => from.evaluate((input) => (input as HTMLInputElement).validationMessage);
    await from.fill('2027-03-28T02:30');
    expect(await complaint()).toContain('Clocks of Europe/Berlin skip this time');
    await from.fill('2027-10-31T02:30');
    expect(await complaint()).toContain('Clocks of Europe/Berlin show this time twice');
    await page.getByLabel('Times are in').selectOption('UTC');
    expect([await from.inputValue(), await complaint()]).toEqual(['2027-10-31T00:30', '']);
    await page.getByLabel('Times are in').selectOption('Europe/Berlin');
    await page.getByLabel('Project').fill('summer');
    await from.fill('2027-07-01T09:30');
    await page.getByLabel(/^Valid until/).fill('2027-12-01T00:00');
    await page.getByLabel(/^Amount/).fill('5');
    await page.getByLabel('Reason').fill('a workshop');
    await page.getByRole('button', { name: 'Set the budget' }).click();
    await page.getByText('The budget is set.').waitFor();
    const { html } = await fixture.get('operator', '/budgets?project=summer');
    expect(html).toMatch(/>2027-07-01 07:30<.*>2027-11-30 23:00</s);
  });
});

describe.runIf(HAS_CHROMIUM)('a form whose answer was lost', () => {
  const lost = async (page: Page, button: string) => {
    const isSent = ({ pathname }: URL) => pathname.startsWith('/budgets/');
    await page.route(isSent, (route) =>
      route.request().method() === 'POST' ? route.fulfill({ status: 404, body: 'lost' }) : route.fallback(),
    );
    await page.getByRole('button', { name: button }).click();
    await page.getByText('lost').waitFor();
    await page.unroute(isSent);
    await page.goBack();
  };

  it('is as it was when somebody goes back to it, with times in UTC', async () => {
    const page = await open('operator', '/budgets/new', { timezoneId: 'Europe/Berlin' });
    await page.getByLabel('Times are in').selectOption('Europe/Berlin');
    for (const [label, text] of [
      ['Project', 'lost'],
      [/^User/, 'of-lost'],
      [/^Valid from/, '2027-07-01T09:30'],
      [/^Valid until/, '2027-12-01T00:00'],
      [/^Amount/, '5'],
      ['Reason', 'a workshop'],
    ] as const) {
      await page.getByLabel(label, typeof label === 'string' ? { exact: true } : {}).fill(text);
    }
    await lost(page, 'Set the budget');
    expect(await page.getByLabel('Times are in').inputValue()).toBe('utc');
    await page.getByText('= 2027-07-01 09:30 GMT+2').waitFor();
    await page.getByRole('button', { name: 'Set the budget' }).click();
    await page.getByText('The budget is set.').waitFor();
    const { html } = await fixture.get('operator', '/budgets?project=lost');
    expect(html).toMatch(/>2027-07-01 07:30<.*>2027-11-30 23:00</s);
  });

  it('is refused when it is sent again and somebody has changed the budget meanwhile', async () => {
    const page = await open('operator', '/budgets/4');
    await page.getByLabel(/^Amount/).fill('2');
    await page.getByLabel('Reason').fill('more');
    const other = await open('operator', '/budgets/4');
    await other.getByLabel(/^Amount/).fill('3');
    await other.getByLabel('Reason').fill('still more');
    await other.getByRole('button', { name: 'Change the budget' }).click();
    await other.getByText('The budget is changed.').waitFor();
    await lost(page, 'Change the budget');
    expect(await page.getByLabel(/^Amount/).inputValue()).toBe('2');
    await page.getByRole('button', { name: 'Change the budget' }).click();
    await page.getByText('has changed this budget since').waitFor();
  });
});

describe.runIf(HAS_CHROMIUM)('the time line', () => {
  it.each([
    '',
    '?from=2026-11-22&until=2026-11-24',
    '?from=2026-11-01&until=2027-11-30',
    '?from=2026-11-22T10:00&until=2026-11-22T16:00',
  ])('has no text across a bar or a text, however wide the page is: %s', async (query) => {
    const page = await open('meg', `/projects/climate${query}`);
    for (const width of [1600, 1121, 1119, 800, 641, 500, 320]) {
      await page.setViewportSize({ width, height: 900 });
      expect({ width, found: await overlaps(page) }).toEqual({ width, found: [] });
    }
  });

  it('moves and zooms by links without script', async () => {
    const page = await open('meg', '/projects/climate?from=2026-12-01&until=2026-12-09', {
      javaScriptEnabled: false,
    });
    await page.getByRole('link', { name: 'Later' }).click();
    expect(new URL(page.url()).searchParams.get('from')).toBe('2026-12-05T00:00:00Z');
    await page.getByRole('link', { name: 'Wider' }).click();
    expect(new URL(page.url()).searchParams.get('until')).toBe('2026-12-17T00:00:00Z');
  });

  it('moves by keys, by drag and by wheel, and stays where the eyes are', async () => {
    const page = await open('meg', '/projects/climate?from=2026-12-01&until=2026-12-09');
    const rows = page.locator('.timeline');
    const from = () => rows.getAttribute('data-from');
    await page.locator('.timeline.movable').focus();
    await page.keyboard.press('ArrowRight');
    await expect.poll(from).toBe('2026-12-05T00:00:00Z');
    expect(await page.evaluate(() => globalThis.document.activeElement?.className)).toContain('timeline');
    await page.keyboard.press('-');
    await expect.poll(from).toBe('2026-12-01T00:00:00Z');
    expect(new URL(page.url()).searchParams.get('from')).toBe('2026-12-01T00:00:00Z');
    const track = page.locator('.lease-row .track').nth(1);
    await track.scrollIntoViewIfNeeded();
    const box = await track.boundingBox();
    if (box === null) {
      throw new Error('expected a track');
    }
    const x = box.x + box.width / 2;
    const y = box.y + box.height / 2;
    await page.mouse.move(x, y);
    await page.mouse.down();
    await page.mouse.move(x + box.width / 4, y, { steps: 4 });
    await page.mouse.up();
    // A quarter of sixteen days back.
    await expect
      .poll(async () => Date.parse((await from()) ?? ''))
      .toBeLessThan(Date.parse('2026-11-27T06:00:00Z'));
    const before = await from();
    await page.keyboard.down('Shift');
    await page.mouse.wheel(0, 200);
    await page.keyboard.up('Shift');
    await expect.poll(from).not.toBe(before);
  });
});

describe.runIf(HAS_CHROMIUM)('people do their task by keyboard and mouse', () => {
  it.each([true, false])(
    'a member finds out why, what would work, and how to get it; script: %s',
    async (javaScriptEnabled) => {
      const page = await open('meg', '/projects/climate', { javaScriptEnabled });
      await page.getByRole('link', { name: /^Try this lease of too long/ }).click();
      expect(await page.getByLabel('Name of the lease').inputValue()).toBe('too long');
      expect(await page.getByLabel('Start (UTC)').inputValue()).toBe('2026-12-01T09:00');
      await page.getByLabel('Name of the lease').press('Enter');
      await page.getByText('This lease would be refused').waitFor();
      await page.setViewportSize({ width: 320, height: 800 });
      if (javaScriptEnabled) {
        expect(await axeFindings(page)).toEqual([]);
        await expect.poll(() => overflow(page)).toEqual([]);
      }
      await page.getByRole('button', { name: 'Fill in suggestion 1' }).click();
      await page.getByText('This lease would be allowed now').waitFor();
      expect(await page.locator('pre.command').first().textContent()).toContain(
        'openstack reservation lease create',
      );
    },
  );

  it('a manager hears of a mistake at its field', async () => {
    const page = await open('mona', '/budgets/new');
    await page.getByLabel('User', { exact: true }).fill('id-of-zoe');
    await page.getByLabel(/^Amount/).fill('fifty');
    await page.getByLabel('Reason').fill('a workshop');
    await page.getByLabel('Reason').press('Enter');
    await page.getByText('one field needs another value').waitFor();
    expect(await page.evaluate(() => globalThis.document.activeElement?.id)).toBe('amount');
    expect(await axeFindings(page)).toEqual([]);
  });

  it('an operator who writes why and presses Enter has not decided yet', async () => {
    const page = await open('operator', '/budgets/requests/2');
    const reason = page.getByLabel('Reason');
    await reason.fill('no money left this year');
    await reason.press('Enter');
    await page.getByRole('button', { name: 'Refuse' }).click();
    await page.getByText('The request is refused.').waitFor();
    expect(await page.getByText('Endorsed by').count()).toBe(0);
  });

  it('an operator imports a file that the browser reads', async () => {
    const page = await open('operator', '/budgets/import');
    const csv = [
      'project_id,user_id,valid_from,valid_until,amount',
      ...Array.from({ length: 200 }, (_, index) => `p${index},,2027-01-01,2028-01-01,${index}`),
    ];
    await page
      .getByLabel('Or choose a file')
      .setInputFiles({ name: 'b.csv', mimeType: 'text/csv', buffer: Buffer.from(csv.join('\n')) });
    await page.getByText('Read b.csv').waitFor();
    await page.getByLabel('Reason').fill('the year');
    await page.getByRole('button', { name: 'Preview' }).click();
    await page.getByText('It would set 200 new budgets').waitFor();
    expect(await axeFindings(page)).toEqual([]);
  });
});
