/** Tables that leases do not need: they may be missing, or the role of the database may not use them. */
import { sql } from 'kysely';
import { inTime, type Wait } from '../base/deadline.ts';
import type { Ledger } from './ledger.ts';
import { misconfigured } from './open.ts';
import { rows } from './storage/database.ts';
import { missingRights } from './storage/rights.ts';

export interface OptionalTables {
  /** The one that makes them. */
  readonly migration: string;
  /** As in `rights.ts`. */
  readonly needed: Readonly<Record<string, readonly string[]>>;
}

/** Which have been looked at: they stay as good as they are. */
const usable = new WeakMap<Ledger, Set<string>>();

/** Passes if the ledger has the tables, and may use them. @throws LedgerUnavailableError, ConfigurationError */
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
  // Nobody waits for it once the time is over.
  looking?.catch(() => {});
  const missing = looking && (await inTime(looking, wait));
  if (missing !== undefined) {
    throw misconfigured(missing);
  }
  usable.set(ledger, known.add(migration));
}
