/** Writes balances with the entries that explain them. */
import type { Amount } from '../../filter/claim.ts';
import type { JournalEntry } from '../ledger-request.ts';
import { rows, type Work } from '../storage/database.ts';
import { KEPT_ROWS } from '../storage/prepared.ts';
import type { EntriesTable } from '../storage/schema.ts';
import type { Statements } from './statements.ts';

export type { Author } from '../ledger-request.ts';

export interface BalanceChange {
  readonly lease: bigint;
  readonly operation: string;
  readonly deltas: ReadonlyMap<string, Amount>;
}

/** Writes entries and adds their sums to the balances. */
export function* post(
  statements: Statements,
  entry: JournalEntry,
  postings: readonly BalanceChange[],
): Work<void> {
  const { project_id, at, balances, author } = entry;
  const { who, requestId: request_id, reason } = author;
  const entries: Omit<EntriesTable, 'id'>[] = [];
  const changes = new Map<string, Amount>();
  for (const { lease, operation, deltas } of postings) {
    for (const [account, delta] of deltas) {
      if (delta !== 0n) {
        entries.push({ at, project_id, account, delta, lease, operation, who, request_id, reason });
        changes.set(account, (changes.get(account) ?? 0n) + delta);
      }
    }
  }
  if (entries.length === 0) {
    return;
  }
  const changed = [...changes].map(([name, delta]) => ({
    project_id,
    name,
    balance: (balances.get(name) ?? 0n) + delta,
  }));
  for (const some of inBatches(changed)) {
    yield* rows(statements.setBalances(some));
  }
  for (const some of inBatches(entries)) {
    yield* rows(statements.addEntries(some));
  }
  if (statements.crossings !== undefined) {
    yield* statements.crossings.note(entry, changes);
  }
}

export function* balancesOf(
  statements: Statements,
  project_id: string,
  accounts: ReadonlySet<string>,
): Work<Map<string, Amount>> {
  const balances = new Map<string, Amount>();
  const names = [...accounts].map((name) => ({ project_id, name }));
  for (const some of inBatches(names)) {
    for (const { name, balance } of yield* rows(statements.balances(some))) {
      balances.set(name, balance);
    }
  }
  return balances;
}

export function negative(amounts: ReadonlyMap<string, Amount>): Map<string, Amount> {
  return new Map([...amounts].map(([account, amount]) => [account, -amount]));
}

/** Larger queries would be built each time. */
const BATCH = KEPT_ROWS;

function inBatches<Item>(items: readonly Item[]): readonly (readonly Item[])[] {
  const batches: (readonly Item[])[] = [];
  for (let start = 0; start < items.length; start += BATCH) {
    batches.push(items.slice(start, start + BATCH));
  }
  return batches;
}
