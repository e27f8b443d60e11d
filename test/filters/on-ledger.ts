/** A chain with its own ledger, and access to the content of that ledger. */

import { parseUnitHours } from '../../src/filter/claim.ts';
import { openSqlite } from '../../src/ledger/storage/sqlite-driver.ts';
import { classFileName } from '../../src/plugin/class-names.ts';
import { filterFolder } from '../support/filter-folder.ts';
import { type BudgetText, giveBudgets, newLedger } from '../support/ledgers.ts';
import { loadValues, NOW } from './loaded.ts';

export interface LedgerSetup {
  readonly enabled: readonly string[];
  readonly options?: Readonly<Record<string, unknown>>;
  readonly ledger?: Readonly<Record<string, unknown>>;
  /** Additional filters: class name → the text of its file. */
  readonly files?: Readonly<Record<string, string>>;
  /** Default: the time of all filter tests. */
  readonly now?: () => string;
  /** Default: an empty one. */
  readonly connection?: string;
}

export type Row = Readonly<Record<string, unknown>>;

export async function onLedger(setup: LedgerSetup) {
  const { enabled, options = {}, ledger = {}, files = {}, now = () => NOW } = setup;
  const connection = setup.connection ?? (await newLedger());
  const folder = filterFolder(
    Object.fromEntries(Object.entries(files).map(([name, text]) => [`${classFileName(name)}.js`, text])),
  );
  const { enforcement, logger } = await loadValues(
    { enabled_filters: enabled, filters_path: [folder], ...options },
    { ledger: { connection, ...ledger } },
    now,
  );
  return { enforcement, logger, connection, ...lookInto(connection) };
}

/** The content of a ledger in a file. */
export function lookInto(connection: string) {
  const query = (sql: string, ...values: unknown[]): Row[] => {
    const database = openSqlite(connection.slice('sqlite://'.length), { readonly: true, bigints: true });
    const found = database.prepare(sql).all(values) as Row[];
    database.close();
    return found;
  };
  return {
    query,
    /** Account → what is taken from it, for accounts that are not empty. */
    balances: (project = 'climate') =>
      Object.fromEntries(
        query('SELECT name, balance FROM accounts WHERE project_id = ? AND balance <> 0', project).map(
          ({ name, balance }) => [name, balance],
        ),
      ),
    leases: () => query('SELECT * FROM leases ORDER BY id'),
    entries: () => query('SELECT * FROM entries ORDER BY id'),
    budget: async (budget: BudgetText) => {
      await giveBudgets(connection, [budget]);
    },
  };
}

/** Unit-hours as the ledger counts them. */
export function hours(text: string): bigint {
  return parseUnitHours(text) ?? -1n;
}
