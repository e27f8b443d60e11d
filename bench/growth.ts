/** Measures a check and a commit with a growing number of recorded leases, relative to the smallest. */
import type { Dialect } from '../src/ledger/storage/connection.ts';
import { QUICK, runOnce } from './harness/run.ts';
import type { Comparison, Run, Scale, Suite, Trial } from './harness/suite.ts';
import { DIALECTS, NAMES, newLedger, startDatabases } from './ledger-databases.ts';
import { fillLedger } from './ledger-filling.ts';
import { creating, opening } from './ledger-subjects.ts';

const SMALLEST = 1000;
/** `BENCH_LEASES=10000000` takes minutes more, and some 7 GB of disk for each database. */
const MOST = Number(process.env.BENCH_LEASES ?? 1_000_000);
const SIZES = [SMALLEST, 10_000, 100_000, 1_000_000, 10_000_000].filter((size) => size <= MOST);
/** The limit for opening. */
const BOUND = 'allowed';
const BOUND_NANOSECONDS = 1e9;
const WORK = ['check', 'check and commit'] as const;

/** The filled ledgers, for the processes of the subjects. */
const FILLED = 'BENCH_GROWN_LEDGERS';
type Filled = Record<string, string>;

function connectionOf(dialect: Dialect, leases: number): string {
  const filled = JSON.parse(process.env[FILLED] ?? '{}') as Filled;
  return filled[`${dialect} ${leases}`] ?? '';
}

const named = (what: string, leases: number, dialect: Dialect) =>
  `${what}, ${leases.toLocaleString('en')} leases, ${NAMES[dialect]}`;

const points = DIALECTS.flatMap((dialect) =>
  WORK.flatMap((what) => SIZES.map((leases) => ({ dialect, what, leases }))),
);

/** Only for `measure`, which creates the ledgers. */
export const suite: Suite = {
  name: 'growth',
  file: import.meta.url,
  rounds: 9,
  turnMilliseconds: 300,
  subjects: Object.fromEntries([
    ...points.map(({ dialect, what, leases }) => [
      named(what, leases, dialect),
      () => creating(connectionOf(dialect, leases), what === 'check'),
    ]),
    ...DIALECTS.map((dialect) => [
      named('opening', MOST, dialect),
      () => opening(connectionOf(dialect, MOST)),
    ]),
  ]),
  comparisons: [],
  notes: [],
};

/** Filling these takes minutes, and a run hardly changes them, so all runs share them. */
const isLarge = (leases: number) => leases >= 1_000_000;

let databases: Awaited<ReturnType<typeof startDatabases>> | undefined;
const large: Filled = {};

async function filledLedger(dialect: Dialect, leases: number): Promise<string> {
  const connection = await newLedger(dialect);
  await fillLedger(connection, leases);
  return connection;
}

async function measure({ quick }: Scale): Promise<Run> {
  databases ??= await startDatabases();
  const filled: Filled = {};
  for (const dialect of DIALECTS) {
    for (const leases of SIZES) {
      const name = `${dialect} ${leases}`;
      const known = large[name] ?? (await filledLedger(dialect, quick ? SMALLEST : leases));
      filled[name] = known;
      if (isLarge(leases)) {
        large[name] = known;
      }
    }
  }
  process.env[FILLED] = JSON.stringify(filled);
  const run = await runOnce(suite, quick ? QUICK : suite);
  return new Map([...run, [BOUND, BOUND_NANOSECONDS]]);
}

async function close(): Promise<void> {
  await databases?.stop();
  databases = undefined;
}

const comparisons: Comparison[] = [
  ...points
    .filter(({ leases }) => leases > SMALLEST)
    .map(({ dialect, what, leases }) => ({
      name: named(what, leases, dialect),
      measured: named(what, leases, dialect),
      comparedWith: named(what, SMALLEST, dialect),
      of: 'time' as const,
      target: { atMost: 1.15 },
      growth: { picture: 'ledger', line: `${what}, ${NAMES[dialect]}`, from: SMALLEST, size: leases },
    })),
  ...DIALECTS.map((dialect) => ({
    name: named('opening', MOST, dialect),
    measured: named('opening', MOST, dialect),
    comparedWith: BOUND,
    of: 'time' as const,
    target: { atMost: 1 },
  })),
];

export const trial: Trial = {
  name: 'growth',
  file: import.meta.url,
  measure,
  close,
  comparisons,
  notes: [
    'One operation is as in ledger: checkCreate with MaxLeasesFilter and UsageBudgetFilter, without and with its commit, on ledgers with so many leases that are asked in turn.',
    'Of the leases half are of the project that is asked about, and have ended; the others are of 5,000 projects, and one in a hundred is open. Each has two entries. What is recorded while it is measured comes on top of every size; ledgers with a million and more are filled once for all runs.',
    'Opening is from the configuration to filters that can be asked, in a process that has done it before; the file may be in the memory of the system. One second is allowed.',
    'BENCH_LEASES=10000000 in the environment adds ten million: it fills 7 GB for each database, in some minutes.',
  ],
};
