/**
 * Takes the console pictures of README.md and docs/console.md: `npm run screenshot`, with Chromium at
 * /usr/bin/chromium or in CHROMIUM. Argument: another folder than docs/images.
 */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Page } from 'playwright-core';
import { type Cloud, leaseId, OPERATOR_TOKEN, startCloud } from './screenshot/cloud.ts';
import { PROJECT, TRIED } from './screenshot/invented.ts';
import { smallPng } from './screenshot/small-png.ts';

/** In pixels. */
const WIDTH = 1100;

interface Picture {
  readonly name: string;
  /** Opens the page, and brings it into the state to show. */
  open(page: Page, cloud: Cloud): Promise<void>;
  /** Cuts the picture before the first match. Default: the whole page. */
  readonly before?: string;
}

const PICTURES: readonly Picture[] = [
  { name: 'overview', open: (page, { url }) => see(page, url) },
  {
    name: 'project',
    before: '.timeline li:nth-child(9)',
    open: async (page, { url }) => {
      await see(page, `${url}/projects/${PROJECT}`);
      await page.locator('[data-chart] canvas').waitFor();
    },
  },
  { name: 'try', before: 'fieldset', open: tryLease },
  { name: 'budgets', open: (page, { url }) => see(page, `${url}/budgets`) },
  { name: 'usage', open: (page, { url }) => see(page, `${url}/usage?by=project`) },
  { name: 'lease', open: (page, { url }) => see(page, `${url}/leases/${leaseId(6)}`) },
  {
    name: 'decision',
    open: async (page, { url }) => {
      await see(page, `${url}/decisions?outcome=refused&user=bob`);
      await page.getByRole('link', { name: /^req-/ }).first().click();
      await page.getByRole('heading', { name: 'Decision', level: 1 }).waitFor();
    },
  },
];

const output = process.argv[2] ?? 'docs/images';
mkdirSync(output, { recursive: true });
const cloud = await startCloud(mkdtempSync(join(tmpdir(), 'blazar-enforcement-screenshot-')));
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox'],
});
try {
  const page = await browser.newPage({
    viewport: { width: WIDTH, height: 800 },
    colorScheme: 'light',
  });
  await page.goto(cloud.url);
  await page.getByLabel('Token').fill(OPERATOR_TOKEN);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('button', { name: 'Log out' }).waitFor();
  for (const picture of PICTURES) {
    await picture.open(page, cloud);
    const path = join(output, `console-${picture.name}.png`);
    const height = await heightOf(page, picture.before);
    const clip = { x: 0, y: 0, width: WIDTH, height };
    writeFileSync(path, smallPng(await page.screenshot({ fullPage: true, clip })));
    process.stdout.write(`${path}\n`);
  }
} finally {
  await browser.close();
  await cloud.close();
}

async function see(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await page.locator('main').waitFor();
}

async function tryLease(page: Page, { url, dateOf }: Cloud): Promise<void> {
  await page.goto(`${url}/try?project=${PROJECT}`);
  await page.getByLabel('User', { exact: true }).fill(TRIED.user);
  await page.getByLabel('Name of the lease').fill(TRIED.name);
  await page.getByLabel('Start (UTC)').fill(dateOf(TRIED.start).slice(0, 16));
  await page.getByLabel('End (UTC)').fill(dateOf(TRIED.start + TRIED.days).slice(0, 16));
  await page.getByLabel('Hosts, at least').fill(String(TRIED.hosts));
  await page.getByLabel('Hosts, at most').fill(String(TRIED.hosts));
  await page.getByRole('button', { name: 'Try it' }).last().click();
  await page.getByRole('heading', { name: /would be refused/ }).waitFor();
}

async function heightOf(page: Page, before: string | undefined): Promise<number> {
  const whole = await page.locator('main').boundingBox();
  const rest = before === undefined ? null : await page.locator(before).first().boundingBox();
  const end = rest === null ? (whole?.height ?? 0) + (whole?.y ?? 0) : rest.y;
  return Math.ceil(end);
}
