/** A real Chromium for the console, and the checks that every page must pass. */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';

export const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
export const HAS_CHROMIUM = existsSync(CHROMIUM);

if (!HAS_CHROMIUM) {
  process.stderr.write(`SKIPPED: tests of the console in a browser: ${CHROMIUM} does not exist\n`);
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Browser settings for which pages are tested. */
export const LOOKS = [
  { name: 'wide', viewport: { width: 1280, height: 900 }, colorScheme: 'light' },
  { name: 'narrow and dark', viewport: { width: 320, height: 640 }, colorScheme: 'dark' },
] as const satisfies readonly (BrowserContextOptions & { name: string })[];

/** One browser for all tests of a file. Call it at describe level. */
export function sharedBrowser(): () => Browser {
  let browser: Browser | undefined;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());
  return () => {
    if (browser === undefined) {
      throw new Error('the browser is there for tests only');
    }
    return browser;
  };
}

export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: CHROMIUM,
    timeout: 240_000,
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--host-resolver-rules=MAP *.test 127.0.0.1',
    ],
  });
}

export interface Visited {
  readonly page: Page;
  /** Errors of the browser: scripts, content security policy, dialogs. */
  readonly said: string[];
  /** The addresses of all requests. */
  readonly asked: string[];
}

/** A separate page, not logged in. Closed after the test. */
export async function openPage(browser: Browser, options: BrowserContextOptions = {}): Promise<Visited> {
  const visited = await openSharedPage(browser, options);
  onTestFinished(() => visited.page.context().close());
  return visited;
}

/** The same for several tests, until the browser is closed. */
export async function openSharedPage(
  browser: Browser,
  options: BrowserContextOptions = {},
): Promise<Visited> {
  const context = await browser.newContext(options);
  // For a busy machine.
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  const [said, asked]: [string[], string[]] = [[], []];
  page.on('request', (request) => asked.push(request.url()));
  page.on('pageerror', (error) => said.push(error.message));
  page.on('dialog', (dialog) => {
    said.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('console', (message) => {
    // An expected status such as 401.
    const isStatus = /^Failed to load resource: the server responded with a status of 4/.test(message.text());
    if (!isStatus && message.type() !== 'debug') {
      said.push(`${message.type()}: ${message.text()}`);
    }
  });
  return { page, said, asked };
}

/** Logs in with a token of the service, on any page. */
export async function logIn(page: Page, token: string): Promise<void> {
  const details = page.locator('details', { hasText: 'Log in with a token' });
  if ((await details.count()) > 0) {
    await details.locator('summary').click();
  }
  await page.getByLabel('Token').fill(token);
  await page
    .getByRole('button', { name: /^Log in/ })
    .last()
    .click();
  await page.getByRole('button', { name: 'Log out' }).waitFor();
}

/** Expects no visual, accessibility or keyboard problems on a page. */
export async function expectSound(page: Page, where = page.url()): Promise<void> {
  expect({ where, found: await axeFindings(page) }).toEqual({ where, found: [] });
  expect({ where, over: await overflow(page) }).toEqual({ where, over: [] });
  expect({ where, overlaps: await overlaps(page) }).toEqual({ where, overlaps: [] });
}

/** The findings of axe as text. */
export async function axeFindings(page: Page): Promise<string[]> {
  if (!(await page.evaluate("'axe' in globalThis"))) {
    // Evaluated like by the debugger: the page's policy blocks such scripts.
    await page.evaluate(AXE);
  }
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: { run(options: object): Promise<{ violations: AxeViolation[] }> };
    };
    interface AxeViolation {
      readonly id: string;
      readonly help: string;
      readonly nodes: readonly { readonly target: readonly unknown[]; readonly failureSummary?: string }[];
    }
    const { violations } = await axe.run({ resultTypes: ['violations'] });
    return violations.flatMap(({ id, help, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id} (${help}): ${target.join(' ')}: ${failureSummary}`),
    );
  });
}

/** Elements that overflow the page horizontally. */
export function overflow(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const { document, innerWidth } = globalThis as unknown as {
      document: { documentElement: { scrollWidth: number; clientWidth: number } };
      innerWidth: number;
    };
    const { scrollWidth, clientWidth } = document.documentElement;
    return scrollWidth > clientWidth ? [`${scrollWidth} wide in ${clientWidth} of ${innerWidth}`] : [];
  });
}

/** Overlapping pieces of visible text. */
export function overlaps(page: Page): Promise<string[]> {
  return page.evaluate(`(() => {
    const shown = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node !== null; node = walk.nextNode()) {
      const text = node.nodeValue.trim();
      const parent = node.parentElement;
      if (text === '' || parent.closest('script, style, .unseen, .skip, [hidden], title, desc, option, datalist') !== null) continue;
      if (parent.closest('details:not([open]) > :not(summary)') !== null) continue;
      const style = getComputedStyle(parent);
      if (style.visibility === 'hidden' || style.display === 'none' || style.opacity === '0') continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      // What scrolls hides what is outside of it.
      const frames = [];
      for (let at = parent; at !== null; at = at.parentElement) {
        if (/auto|scroll|hidden|clip/.test(getComputedStyle(at).overflow)) frames.push(at.getBoundingClientRect());
      }
      for (const rect of range.getClientRects()) {
        let [left, top, right, bottom] = [rect.left, rect.top, rect.right, rect.bottom];
        for (const frame of frames) {
          [left, top] = [Math.max(left, frame.left), Math.max(top, frame.top)];
          [right, bottom] = [Math.min(right, frame.right), Math.min(bottom, frame.bottom)];
        }
        // A sticky heading lies over the rows that are scrolled under it.
        if (right - left > 1 && bottom - top > 1) shown.push({ text, node, left, top, right, bottom, isSticky: parent.closest('thead') !== null });
      }
    }
    const found = [];
    for (let one = 0; one < shown.length; one += 1) {
      for (let other = one + 1; other < shown.length && found.length < 10; other += 1) {
        const [a, b] = [shown[one], shown[other]];
        if (a.isSticky !== b.isSticky || a.node === b.node) continue;
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        // Lines are set closer than their boxes.
        if (wide > 1.5 && high > 0.35 * Math.min(a.bottom - a.top, b.bottom - b.top)) {
          found.push(JSON.stringify(a.text.slice(0, 40)) + ' on ' + JSON.stringify(b.text.slice(0, 40)));
        }
      }
    }
    return found;
  })()`);
}

/** Elements for the mouse that the tab key does not reach, or that are then not visible. */
export async function unreachable(page: Page): Promise<string[]> {
  const unseen = (await tabStops(page, 1000)).filter((stop) => stop.includes('(unseen)'));
  const missed = (await page.evaluate(`[...document.querySelectorAll(
    'a[href], button, input, select, textarea, summary, [tabindex="0"]',
  )].filter((at) => !at.disabled && !at.ariaHidden && at.checkVisibility({ visibilityProperty: true }) && !tabStops.has(at))
    .map((at) => at.outerHTML.slice(0, 200))`)) as string[];
  return [...unseen, ...missed];
}

/** So many keys are sent before the page is asked whether it was the last. */
const KEYS_AT_ONCE = 10;

/** The accessible text of each tab stop from the top of a page, after at most `most` keys. */
export async function tabStops(page: Page, most = 60): Promise<string[]> {
  await page.evaluate(`
    tabStops = new Map();
    isPastLastStop = false;
    listening = new AbortController();
    document.body.focus();
    getSelection()?.removeAllRanges();
    document.addEventListener('focusin', ({ target: at }) => {
      if (tabStops.has(at)) {
        isPastLastStop = true;
        return;
      }
      const box = at.getBoundingClientRect();
      const isSeen = box.width > 0 && box.height > 0 && box.bottom > 0;
      const name = at.getAttribute('aria-label') ?? at.labels?.[0]?.textContent ?? at.textContent ?? '';
      tabStops.set(at, at.tagName.toLowerCase() + (isSeen ? ': ' : ' (unseen): ') + name.trim().slice(0, 40));
    }, listening)`);
  for (let keys = 0; keys < most && !(await page.evaluate('isPastLastStop')); keys += KEYS_AT_ONCE) {
    await Promise.all(Array.from({ length: KEYS_AT_ONCE }, () => page.keyboard.press('Tab')));
  }
  return page.evaluate('listening.abort(), [...tabStops.values()]');
}

/** Bytes on the wire, headers included, of the first load of a page. */
export async function transferred(page: Page, url: string): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send('Network.enable');
  let bytes = 0;
  session.on('Network.loadingFinished', ({ encodedDataLength }) => {
    bytes += encodedDataLength;
  });
  await page.goto(url, { waitUntil: 'load' });
  // Scripts load other scripts.
  await page.waitForTimeout(1000);
  await session.detach();
  return bytes;
}
