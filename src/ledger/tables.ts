/** Tables that leases do not need: they may be missing, or the database role may have no access. */
import { sql } from 'kysely';
import { inTime, type Wait } from '../base/deadline.ts';
import type { Ledger } from './ledger.ts';
import { misconfigured } from './open.ts';
import { rows } from './storage/database.ts';
import { missingRights } from './storage/rights.ts';

export interface OptionalTables {
  /** The migration that creates them. */
  readonly migration: string;
  /** As in `rights.ts`. */
  readonly needed: Readonly<Record<string, readonly string[]>>;
}

/** Tables that were checked: the result stays valid. */
const usable = new WeakMap<Ledger, Set<string>>();

/** Resolves if the tables exist and are accessible. @throws LedgerUnavailableError, ConfigurationError */
export async function requireTables(
  ledger: Ledger,
  { migration, needed }: OptionalTables,
  wait: Wait,
): Promise<void> {
  const known = usable.get(ledger) ?? new Set();
  if (known.has(migration)) {
    return;
  }
  const { database } = ledger;
  const applied = sql`select 1 from kysely_migration where name = ${migration}`;
  const found = await ledger.read('read', () => rows(applied.compile(database.queries)), wait);
  if (found.length === 0) {
    throw misconfigured(
      `it lacks ${Object.keys(needed).join(', ')}: blazar-enforcement ledger upgrade makes them`,
    );
  }
  const looking = database.dialect === 'postgresql' ? missingRights(database, needed) : undefined;
  // Not awaited any more once the wait is over.
  looking?.catch(() => {});
  const missing = looking && (await inTime(looking, wait));
  if (missing !== undefined) {
    throw misconfigured(missing);
  }
  usable.set(ledger, known.add(migration));
}
