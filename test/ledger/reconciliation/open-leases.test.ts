/** What is read of open leases must not be looked for among all leases that there ever were. */

import { expect, it } from 'vitest';
import { isGuessed, knownRegions } from '../../../src/ledger/reconciliation/regions.ts';
import { openLeasesOf } from '../../../src/ledger/storage/query-parts.ts';
import { DIALECTS, NO_WAIT, newLedger, newLedgers, openedLedger } from '../../support/ledgers.ts';
import { planOf } from '../query-plan.ts';
import { endLease, recordLease } from '../recorded-leases.ts';

const newLedgerOn = newLedgers();

it('finds the open leases of a region in an index, in their order', async () => {
  const connection = await newLedger();
  const ledger = await openedLedger(connection);
  const open = openLeasesOf(ledger.database.queries, 'north', 1n).selectAll();
  for (const order of ['asc', 'desc'] as const) {
    expect(planOf(connection, open.orderBy('id', order).compile())).toEqual([
      'SEARCH leases USING INDEX leases_open_by_region (region=?)',
    ]);
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
