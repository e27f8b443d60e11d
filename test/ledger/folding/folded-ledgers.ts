/** What tests of folding do with a ledger, and all that is in it. */
import { sql } from 'kysely';
import { toInstant } from '../../../src/lease/dates.ts';
import { foldLeases, restoreLeases } from '../../../src/ledger/folding/fold.ts';
import type { FoldedLease } from '../../../src/ledger/folding/folded-lease.ts';
import type { Ledger } from '../../../src/ledger/ledger.ts';
import { rows } from '../../../src/ledger/storage/database.ts';
import { NO_WAIT } from '../../support/ledgers.ts';

/** With what orders their rows. How often a project was locked, and when, only rises. */
const TABLES = {
  leases: 'id',
  entries: 'id',
  accounts: 'project_id, name',
  budgets: 'id',
  budget_changes: 'id',
  outbox: 'id',
  folds: 'project_id, region, until',
  folded_balances: 'project_id, account',
  ledger: 'id',
} as const;

/** Every row of every table. */
export async function contentOf({ database }: Ledger): Promise<Record<string, unknown[]>> {
  const content: Record<string, unknown[]> = {};
  for (const [table, order] of Object.entries(TABLES)) {
    const query = sql.raw(`select * from ${table} order by ${order}`).compile(database.queries);
    content[table] = await database.read(() => rows(query), NO_WAIT);
  }
  // Which file a ledger was last written to.
  content.ledger = content.ledger?.map((row) => ({ ...(row as object), file: null })) ?? [];
  return content;
}

export function instant(date: string): bigint {
  return toInstant(date) ?? 0n;
}

/** Folds what ended before a date. Resolves to what was kept. */
export async function fold(ledger: Ledger, before: string): Promise<FoldedLease[]> {
  const kept: FoldedLease[] = [];
  const keep = async (leases: readonly FoldedLease[]) => void kept.push(...leases);
  await foldLeases(ledger, { until: instant(before), keep }, NO_WAIT);
  return kept;
}

/** One after the other. */
export async function restore(ledger: Ledger, before: string, kept: readonly FoldedLease[]) {
  const results = [];
  for (const one of kept) {
    const of = { projectId: one.lease.project_id, until: instant(before) };
    results.push(await restoreLeases(ledger, of, [one], NO_WAIT));
  }
  return results;
}
