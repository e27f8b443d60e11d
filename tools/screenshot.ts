/**
 * Takes the picture of the page that README.md shows: `npm run screenshot`, with Chromium at /usr/bin/chromium or in CHROMIUM.
 *
 * A real policy service answers real requests. Leases of the past are recorded with a clock that is set back.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { parseUnitHours } from '../src/filter/amount.ts';
import { createLogger, UsageEnforcement } from '../src/index.ts';
import { setBudget } from '../src/ledger/budgets.ts';
import { parseConnection } from '../src/ledger/connection.ts';
import { upgradeTables } from '../src/ledger/migrations/index.ts';
import { openLedger } from '../src/ledger/open.ts';
import { startService } from '../src/server/service.ts';

interface Wish {
  readonly user: string;
  readonly name: string;
  /** Days from now; less than 0 = in the past. */
  readonly start: number;
  readonly days: number;
  readonly hosts: number;
}

const PROJECT = 'climate';
const DAY = 86_400_000;
/** In pixels. */
const WIDTH = 1100;
const MARGIN = 16;

const PAST: readonly Wish[] = [
  { user: 'alice', name: 'calibration', start: -9, days: 2, hosts: 2 },
  { user: 'bob', name: 'ensemble-1', start: -6, days: 4, hosts: 4 },
  { user: 'alice', name: 'reanalysis', start: -2, days: 5, hosts: 3 },
];
const TODAY: readonly Wish[] = [
  { user: 'carol', name: 'storm-tracks', start: 1, days: 3, hosts: 2 },
  { user: 'bob', name: 'ensemble-2', start: 4, days: 5, hosts: 4 },
  { user: 'alice', name: 'century-run', start: 2, days: 10, hosts: 2 },
  { user: 'carol', name: 'downscaling', start: 3, days: 6, hosts: 9 },
  { user: 'bob', name: 'ensemble-3', start: 6, days: 6, hosts: 4 },
];

const output = process.argv[2] ?? 'docs/images/page.png';
const folder = mkdtempSync(join(tmpdir(), 'blazar-enforcement-screenshot-'));
const now = Math.floor(Date.now() / 60_000) * 60_000;
const dateOf = (days: number) => new Date(now + days * DAY).toISOString().slice(0, 19);
const requestOf = ({ user, name, start, days, hosts }: Wish) => ({
  context: { user_id: user, project_id: PROJECT },
  lease: {
    name,
    start_date: dateOf(start),
    end_date: dateOf(start + days),
    reservations: [{ resource_type: 'physical:host', min: hosts, max: hosts }],
  },
});

try {
  await takePicture(writeConfiguration());
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function writeConfiguration(): { file: string; connection: string } {
  const connection = `sqlite://${join(folder, 'ledger.db')}`;
  const file = join(folder, 'blazar.conf');
  writeFileSync(
    file,
    `[enforcement]
enabled_filters = MaxLeaseDurationFilter, MaxReservationSizeFilter, UsageBudgetFilter
max_lease_duration = 604800
max_reservation_size = physical:host:8

[ledger]
connection = ${connection}

[service]
port = 0
`,
    { mode: 0o600 },
  );
  return { file, connection };
}

async function takePicture({ file, connection }: { file: string; connection: string }): Promise<void> {
  const sources = { configFiles: [file], environment: {} };
  await giveBudgets(connection);
  for (const wish of PAST) {
    const clock = { now: () => new Date(now + (wish.start - 1) * DAY) };
    const enforcement = await UsageEnforcement.load(sources, { clock });
    await enforcement.checkCreate(requestOf(wish));
    await enforcement.close();
  }
  const service = await startService(sources, { logger: createLogger('silent') });
  for (const wish of TODAY) {
    await fetch(`${service.url}/check-create`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(requestOf(wish)),
    });
  }
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox'],
  });
  const page = await browser.newPage({ viewport: { width: WIDTH, height: 800 }, colorScheme: 'light' });
  await page.goto(`${service.url}/?project=${PROJECT}`);
  // From the heading to the time line: the tables below it say the same in words.
  const ledger = await page.locator('section', { has: page.locator('#ledger') }).boundingBox();
  const timeline = await page.locator('.timeline').boundingBox();
  if (ledger === null || timeline === null) {
    throw new Error('the page shows no budgets and leases');
  }
  const { x, y, width } = ledger;
  const height = timeline.y + timeline.height + MARGIN - y;
  await page.screenshot({ path: output, fullPage: true, clip: { x, y, width, height } });
  await browser.close();
  await service.close();
  process.stdout.write(`${output}\n`);
}

async function giveBudgets(url: string): Promise<void> {
  const connection = parseConnection(url);
  if (connection === undefined) {
    throw new Error('expected a connection');
  }
  await upgradeTables(connection);
  const clock = { now: () => new Date(now - 30 * DAY) };
  const opened = openLedger(
    { connection: url, commit: 'check', timeout: 10, pool_size: 1 },
    { clock, observer: undefined },
  );
  await opened.verify();
  const midnight = (days: number) => BigInt((Math.floor(now / DAY) + days) * (DAY / 1000));
  for (const [userId, amount] of [
    [null, '2000'],
    ['bob', '1100'],
  ] as const) {
    await setBudget(
      opened.ledger,
      {
        projectId: PROJECT,
        userId,
        validFrom: midnight(-30),
        validUntil: midnight(60),
        amount: parseUnitHours(amount) ?? 0n,
      },
      { who: 'operator', reason: 'grant' },
      { signal: undefined, throwIfOver() {} },
    );
  }
  await opened.ledger.close();
}
