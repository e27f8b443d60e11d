/** Runs the statements of a lease with pgbench, for any number of clients and projects. */
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { PeerMissing } from './harness/peer-missing.ts';
import { PROJECT } from './ledger-databases.ts';
import { type SaidStatement, statementsOfLeases } from './ledger-statements.ts';

export const PGBENCH = process.env.PGBENCH ?? '/usr/bin/pgbench';

/** The statements of a lease that is not the first of its project. */
export async function statementsOfLease(): Promise<readonly SaidStatement[]> {
  return (await statementsOfLeases('postgresql', 3)).at(-1) ?? [];
}

export interface PgbenchRun {
  readonly clients: number;
  readonly projects: readonly string[];
  /** A count: each client finishes with a report, even on a busy machine. */
  readonly until: { readonly seconds: number } | { readonly leasesEach: number };
}

/** Leases per second. Each client runs prepared statements, one after the other. */
export async function saidByPgbench(
  connection: string,
  statements: readonly SaidStatement[],
  { clients, projects, until }: PgbenchRun,
): Promise<number> {
  if (!existsSync(PGBENCH)) {
    throw new PeerMissing('pgbench is missing: install the client programs of PostgreSQL, or set PGBENCH');
  }
  const folder = mkdtempSync(join(tmpdir(), 'bench-pgbench-'));
  try {
    const files = projects.map((project) => {
      const file = join(folder, `${project}.sql`);
      writeFileSync(file, statements.map((said) => `${written(said, project)}\n`).join(''));
      return ['-f', file];
    });
    const how = ['-n', '-M', 'prepared', '-c', String(clients), '-j', String(Math.min(2, clients))];
    const end = 'seconds' in until ? ['-T', String(until.seconds)] : ['-t', String(until.leasesEach)];
    const { stdout } = await promisify(execFile)(PGBENCH, [...how, ...end, ...files.flat(), connection], {
      maxBuffer: 2 ** 24,
    });
    const [, rate] = /^tps = ([\d.]+) /m.exec(stdout) ?? [];
    if (rate === undefined) {
      throw new Error(`expected a rate from pgbench, got ${stdout}`);
    }
    return Number(rate);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The fifth value of an entry is the lease just added. */
const ENTRY_COLUMNS = 9;
const LEASE_COLUMN = 4;

/** With literal values, for another project. Prepared statements are single ones. */
function written({ sql, parameters }: SaidStatement, project: string): string {
  const literal = (value: unknown) => {
    if (value === null || value === undefined) {
      return 'NULL';
    }
    const quoted = pg.escapeLiteral(value === PROJECT ? project : String(value)).trimStart();
    // pgbench replaces variables after a colon.
    return quoted.includes(':') ? `E${quoted.replace(/^E/, '').replaceAll(':', '\\072')}` : quoted;
  };
  const isLease = sql.startsWith('insert into "leases" ("id"');
  const isEntries = sql.startsWith('insert into "entries"');
  const isId = (index: number) =>
    isLease ? index === 0 : isEntries && index % ENTRY_COLUMNS === LEASE_COLUMN;
  const values = parameters.map((value, index) => (isId(index) ? ':id' : literal(value)));
  const filled = sql
    .replaceAll('; ', ';\n')
    .replaceAll(/\$(\d+)/g, (_, number) => values[Number(number) - 1] ?? '');
  return sql.includes('nextval(') ? `${filled} \\gset` : `${filled};`;
}
