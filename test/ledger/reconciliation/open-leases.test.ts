/** What is read of open leases must not be looked for among all leases that there ever were. */

import type { CompiledQuery } from 'kysely';
import { expect, it, onTestFinished } from 'vitest';
import { isGuessed, knownRegions } from '../../../src/ledger/reconciliation/regions.ts';
import { openLeasesOf } from '../../../src/ledger/storage/query-parts.ts';
import { openSqlite } from '../../../src/ledger/storage/sqlite-driver.ts';
import { DIALECTS, NO_WAIT, newLedger, newLedgers, openedLedger } from '../../support/ledgers.ts';
import { endLease, recordLease } from '../recorded-leases.ts';

const newLedgerOn = newLedgers();

/** What the database says of how it would answer. */
function planOf(connection: string, { sql, parameters }: CompiledQuery): string {
  const database = openSqlite(connection.slice('sqlite://'.length), { readonly: true });
  onTestFinished(() => void database.close());
  const steps = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(parameters) as { detail: string }[];
  return steps.map(({ detail }) => detail).join('\n');
}

it('finds the open leases of a region in an index, in their order', async () => {
  const connection = await newLedger();
  const ledger = await openedLedger(connection);
  const open = openLeasesOf(ledger.database.queries, 'north', 1n).selectAll();
  for (const order of ['asc', 'desc'] as const) {
    expect(planOf(connection, open.orderBy('id', order).compile())).toBe(
      'SEARCH leases USING INDEX leases_open_by_region (region=?)',
    );
  }
});

it.each(DIALECTS)('tells on %s by an ended lease, too, whether a region was asked for', async (dialect) => {
  const ledger = await openedLedger(await newLedgerOn(dialect));
  const recorded = await recordLease(ledger, { name: 'a', leaseId: 'A' });
  const { region } = recorded;
  expect(await isGuessed(ledger, region, NO_WAIT)).toBe(false);
  await endLease(ledger, recorded);
  expect(await isGuessed(ledger, region, NO_WAIT)).toBe(false);
  expect(await isGuessed(ledger, 'nowhere', NO_WAIT)).toBe(true);
});

it.each(DIALECTS)('knows on %s the regions of all leases', async (dialect) => {
  const ledger = await openedLedger(await newLedgerOn(dialect));
  expect(await knownRegions(ledger, NO_WAIT)).toEqual([]);
  for (const region of ['south', 'north', '', 'south', 'skypilot:']) {
    await recordLease(ledger, { name: 'a', region });
  }
  expect(await knownRegions(ledger, NO_WAIT)).toEqual(['', 'north', 'south']);
});
