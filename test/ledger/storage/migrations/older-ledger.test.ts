/** What earlier versions have recorded, or have no tables for. */
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { askForBudget } from '../../../../src/ledger/budgets/requests/requests.ts';
import { verifyLedger } from '../../../../src/ledger/reports/verify.ts';
import { rows } from '../../../../src/ledger/storage/database.ts';
import { DIALECTS, NO_WAIT, upgrade } from '../../../support/ledgers.ts';
import { type Ground, leaseOf, newGrounds } from '../../ground.ts';

const newGround = newGrounds();

/** Makes the leases those of the first version, which wrote a digest of everything that was asked for, and no resources. */
const FIRST = "UPDATE leases SET demand = 'fPV0GYvfWxJd3lN0tMdVJ4s0FvYQz7n4oE4e3m5nZ1k', resources = NULL";

async function run({ ledger }: Ground, statement: string): Promise<void> {
  const query = sql.raw(statement).compile(ledger.database.queries);
  await ledger.transact('commit', () => rows(query), NO_WAIT);
}

describe.each(DIALECTS)('leases that the first version recorded on %s', (dialect) => {
  it('gives back the cheapest of what its leases may be', async () => {
    const ground = await newGround(dialect, { budget: '1000', most: 9 });
    await ground.create(leaseOf({ id: 'A', name: 'known' }));
    await ground.create(leaseOf({ hosts: 3 }));
    await ground.create(leaseOf({ hosts: 1 }));
    await run(ground, FIRST);
    expect(await ground.taken()).toEqual(['120']);
    // Nobody knows what these had asked for: whichever ends, the cheapest is given back first.
    await ground.end(leaseOf({ id: 'B', hosts: 3 }));
    expect(await ground.taken()).toEqual(['96']);
    await ground.end(leaseOf({ id: 'C', hosts: 1 }));
    expect(await ground.taken()).toEqual(['24']);
    await ground.update(leaseOf({ id: 'A' }), { end_date: '2026-12-03 00:00' });
    expect(await ground.taken()).toEqual(['48']);
    await ground.end(leaseOf({ id: 'A', until: '2026-12-03 00:00' }));
    expect([await ground.taken(), await ground.count()]).toEqual([['0'], 0n]);
    expect((await verifyLedger(ground.ledger, NO_WAIT)).differences).toEqual([]);
  });
});

describe.each(DIALECTS)('a ledger without the latest tables on %s', (dialect) => {
  it('decides as before, and only asking for more budget waits for the upgrade', async () => {
    const first = await newGround(dialect, { budget: '1000' });
    await run(first, 'DROP TABLE budget_requests');
    await run(first, 'DROP TABLE calendar_links');
    await run(first, "DELETE FROM kysely_migration WHERE name > '0012'");
    const ground = await newGround(dialect, { budget: '1000' });
    expect((await ground.create(leaseOf())).refusal).toBeUndefined();
    const ask = () =>
      askForBudget(
        ground.ledger,
        { projectId: ground.project, userId: null, amount: 1n, validUntil: 1_800_000_000n },
        { who: 'alice', reason: 'a workshop', identity: 'alice' },
        NO_WAIT,
      );
    await expect(ask()).rejects.toMatchObject({
      name: 'ConfigurationError',
      message: expect.stringContaining('blazar-enforcement ledger upgrade'),
    });
    expect(await upgrade(ground.connection)).toEqual(['0012-budget-requests', '0013-calendar-links']);
    expect((await ask()).kind).toBe('done');
  });
});
