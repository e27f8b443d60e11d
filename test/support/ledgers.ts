/** Empty ledgers for tests: on both databases, or in a file for a single test. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, onTestFinished } from 'vitest';
import type { DecisionRecord } from '../../src/decisions/record.ts';
import { rowJson } from '../../src/decisions/store/rows.ts';
import { DecisionTable } from '../../src/decisions/store/table.ts';
import { parseUnitHours } from '../../src/filter/claim.ts';
import { type LedgerObserver, toInstant } from '../../src/index.ts';
import { setBudget } from '../../src/ledger/budgets/budgets.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { openLedger } from '../../src/ledger/open.ts';
import type { BudgetWatch } from '../../src/ledger/outbox/crossings.ts';
import { type Connection, parseConnection } from '../../src/ledger/storage/connection.ts';
import { rows } from '../../src/ledger/storage/database.ts';
import { upgradeTables } from '../../src/ledger/storage/migrations/index.ts';
import { openSqlite } from '../../src/ledger/storage/sqlite-driver.ts';
import { temporaryFolder } from './filter-folder.ts';
import { createDatabase } from './shared-postgres.ts';

/** Never times out. */
export const NO_WAIT = { signal: undefined, throwIfOver() {} };

export const DIALECTS = ['sqlite', 'postgresql'] as const;

/** The file of an empty ledger. */
let made: Promise<Buffer> | undefined;

/**
 * Call it at the top of a file. Each call of the result creates a ledger: empty, or with all that is in another one, which is not in use;
 * files are removed at the end.
 */
export function newLedgers(): (dialect: (typeof DIALECTS)[number], copied?: string) => Promise<string> {
  const folders: string[] = [];
  afterAll(() => {
    for (const folder of folders) {
      rmSync(folder, { recursive: true, force: true });
    }
  });
  const newFile = () => {
    const folder = mkdtempSync(join(tmpdir(), 'ledger-'));
    folders.push(folder);
    return join(folder, 'ledger.db');
  };
  return async (dialect, copied) => {
    if (dialect === 'postgresql') {
      return newServerLedger(copied);
    }
    const url = `sqlite://${newFile()}`;
    made ??= emptyLedger();
    const content = copied === undefined ? await made : readFileSync(fileOf(copied));
    writeFileSync(fileOf(url), content);
    runSql(url, `UPDATE ledger SET id = '${crypto.randomUUID()}'`);
    return url;
  };
}

let template: Promise<string> | undefined;

/** Tables are created once, and copied. */
async function newServerLedger(copied?: string): Promise<string> {
  template ??= createDatabase().then(upgraded);
  const url = await createDatabase(copied ?? (await template));
  const client = new pg.Client(url);
  await client.connect();
  await client.query('UPDATE ledger SET id = $1', [crypto.randomUUID()]);
  await client.end();
  return url;
}

/** Creates the tables. Returns the same URL. */
export async function upgraded(url: string): Promise<string> {
  await upgrade(url);
  return url;
}

/** Returns the applied migrations. */
export function upgrade(url: string): Promise<string[]> {
  return upgradeTables(connectionOf(url));
}

export function connectionOf(url: string): Connection {
  const connection = parseConnection(url);
  if (connection === undefined) {
    throw new Error(`expected a connection, got ${url}`);
  }
  return connection;
}

/** A `[ledger] connection` to a file that is removed after the test: tables are created once, and copied. */
export async function newLedger(): Promise<string> {
  made ??= emptyLedger();
  const file = join(temporaryFolder(), 'ledger.db');
  writeFileSync(file, await made);
  return `sqlite://${file}`;
}

async function emptyLedger(): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), 'ledger-'));
  const file = join(folder, 'ledger.db');
  await upgraded(`sqlite://${file}`);
  const bytes = readFileSync(file);
  rmSync(folder, { recursive: true });
  return bytes;
}

/** Makes a ledger in a file unreadable until `mendLedger`. */
export function breakLedger(connection: string, table = 'leases'): void {
  runSql(connection, `ALTER TABLE ${table} RENAME TO ${table}_elsewhere`);
}

export function mendLedger(connection: string, table = 'leases'): void {
  runSql(connection, `ALTER TABLE ${table}_elsewhere RENAME TO ${table}`);
}

/** For a ledger in a file. */
export function runSql(connection: string, sql: string): void {
  const database = openSqlite(fileOf(connection));
  database.exec(sql);
  database.close();
}

/** Of a ledger in a file. */
export function fileOf(connection: string): string {
  return connection.slice('sqlite://'.length);
}

export interface LedgerSetup {
  readonly now?: () => string;
  readonly observer?: LedgerObserver;
  readonly timeout?: number;
  readonly watch?: BudgetWatch;
}

/** Opens a ledger, to inspect it and to set budgets. Close it. */
export async function ledgerAt(connection: string, setup: LedgerSetup = {}): Promise<Ledger> {
  const { now = () => '2026-11-21T09:00:30Z', observer, timeout = 10, watch } = setup;
  const opened = openLedger(
    { connection, commit: 'check', timeout, pool_size: 4 },
    { clock: { now: () => new Date(now()) }, observer, watch },
  );
  await opened.verify();
  return opened.ledger;
}

/** The same, closed after the test. */
export async function openedLedger(connection: string, setup?: LedgerSetup): Promise<Ledger> {
  const ledger = await ledgerAt(connection, setup);
  onTestFinished(() => ledger.close().catch(() => {}));
  return ledger;
}

/** The balances of a project's accounts, by name. */
export async function balancesOf(ledger: Ledger, project: string): Promise<Map<string, bigint>> {
  const query = ledger.database.queries.selectFrom('accounts').selectAll().where('project_id', '=', project);
  const found = await ledger.read('read', () => rows(query.compile()), NO_WAIT);
  return new Map(found.map(({ name, balance }) => [name, balance]));
}

/** Stores decisions as the replica `host/7` does, with what the refused ones had asked for. */
export async function storeDecisions(
  { database }: Ledger,
  records: readonly DecisionRecord[],
  asked: Parameters<typeof rowJson>[1],
): Promise<void> {
  const lines = records.map((record) => rowJson(record, record.allowed ? undefined : asked));
  await new DecisionTable(database, 'host/7').write(lines, NO_WAIT);
}

export interface BudgetText {
  readonly projectId?: string;
  readonly userId?: string | null;
  readonly from?: string;
  readonly until?: string;
  /** In unit-hours. */
  readonly amount: string;
}

/** Default: for the project climate, from 2026 to 2028. */
export async function giveBudget(ledger: Ledger, budget: BudgetText): Promise<void> {
  const { projectId = 'climate', userId = null, from = '2026-01-01', until = '2028-01-01', amount } = budget;
  const wanted = {
    projectId,
    userId,
    validFrom: second(from),
    validUntil: second(until),
    amount: parseUnitHours(amount) ?? 0n,
  };
  await setBudget(ledger, wanted, { who: 'operator', reason: null }, NO_WAIT);
}

/** The same in a ledger that is not open here. */
export async function giveBudgets(
  connection: string,
  budgets: readonly BudgetText[],
  setup?: LedgerSetup,
): Promise<void> {
  const ledger = await ledgerAt(connection, setup);
  for (const budget of budgets) {
    await giveBudget(ledger, budget);
  }
  await ledger.close();
}

function second(date: string): bigint {
  return (toInstant(date) ?? 0n) / 1_000_000n;
}
