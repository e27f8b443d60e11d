/** What earlier versions have recorded, or have no tables for. */
import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { askForBudget } from '../../../../src/ledger/budgets/requests/requests.ts';
import { verifyLedger } from '../../../../src/ledger/reports/verify.ts';
import { rows } from '../../../../src/ledger/storage/database.ts';
import { DIALECTS, NO_WAIT, upgrade } from '../../../support/ledgers.ts';
import { type LedgerFixture, leaseOf, newFixtures } from '../../fixture.ts';

const newGround = newFixtures();

/** Makes the leases those of the first version, which wrote a digest of everything that was asked for, and no resources. */
const FIRST = "UPDATE leases SET demand = 'fPV0GYvfWxJd3lN0tMdVJ4s0FvYQz7n4oE4e3m5nZ1k', resources = NULL";

async function run({ ledger }: LedgerFixture, statement: string): Promise<void> {
  const query = sql.raw(statement).compile(ledger.database.queries);
  await ledger.transact('commit', () => rows(query), NO_WAIT);
}

it.each(DIALECTS)(
  'leases that the first version recorded on %s gives back the cheapest of what its leases may be',
  async (dialect) => {
    const fixture = await newGround(dialect, { budget: '1000', most: 9 });
    await fixture.create(leaseOf({ id: 'A', name: 'known' }));
    await fixture.create(leaseOf({ hosts: 3 }));
    await fixture.create(leaseOf({ hosts: 1 }));
    await run(fixture, FIRST);
    expect(await fixture.taken()).toEqual(['120']);
    // Nobody knows what these had asked for: whichever ends, the cheapest is given back first.
    await fixture.end(leaseOf({ id: 'B', hosts: 3 }));
    expect(await fixture.taken()).toEqual(['96']);
    await fixture.end(leaseOf({ id: 'C', hosts: 1 }));
    expect(await fixture.taken()).toEqual(['24']);
    await fixture.update(leaseOf({ id: 'A' }), { end_date: '2026-12-03 00:00' });
    expect(await fixture.taken()).toEqual(['48']);
    await fixture.end(leaseOf({ id: 'A', until: '2026-12-03 00:00' }));
    expect([await fixture.taken(), await fixture.count()]).toEqual([['0'], 0n]);
    expect((await verifyLedger(fixture.ledger, NO_WAIT)).differences).toEqual([]);
  },
);

it.each(DIALECTS)(
  'a ledger without the latest tables on %s decides as before, and only asking for more budget waits for the upgrade',
  async (dialect) => {
    const first = await newGround(dialect, { budget: '1000' });
    await run(first, 'DROP TABLE budget_requests');
    await run(first, 'DROP TABLE calendar_links');
    await run(first, "DELETE FROM kysely_migration WHERE name > '0012'");
    const fixture = await newGround(dialect, { budget: '1000' });
    expect((await fixture.create(leaseOf())).refusal).toBeUndefined();
    const ask = () =>
      askForBudget(
        fixture.ledger,
        { projectId: fixture.project, userId: null, amount: 1n, validUntil: 1_800_000_000n },
        { who: 'alice', reason: 'a workshop', identity: 'alice' },
        NO_WAIT,
      );
    await expect(ask()).rejects.toMatchObject({
      name: 'ConfigurationError',
      message: expect.stringContaining('blazar-enforcement ledger upgrade'),
    });
    expect(await upgrade(fixture.connection)).toEqual(['0012-budget-requests', '0013-calendar-links']);
    expect((await ask()).kind).toBe('done');
  },
);
