/** What a ledger of the first version holds: it is there after an upgrade, charged as it was, and ends as it would have. */
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { askForBudget } from '../../../../src/ledger/budgets/requests/requests.ts';
import { verifyLedger } from '../../../../src/ledger/reports/verify.ts';
import { rows } from '../../../../src/ledger/storage/database.ts';
import { DIALECTS, NO_WAIT, upgrade } from '../../../support/ledgers.ts';
import { type Ground, leaseOf, newGrounds } from '../../ground.ts';

const newGround = newGrounds();

/** Makes the tables those of the first version, which wrote a digest of everything that was asked for. */
const BACK = [
  'DROP INDEX leases_by_repetition_key',
  'DROP INDEX leases_unsettled',
  'ALTER TABLE leases DROP COLUMN alternatives',
  'ALTER TABLE leases DROP COLUMN repetition_key',
  'ALTER TABLE leases DROP COLUMN repetition_content',
  "UPDATE leases SET demand = 'fPV0GYvfWxJd3lN0tMdVJ4s0FvYQz7n4oE4e3m5nZ1k'",
  "DELETE FROM kysely_migration WHERE name <> '0001-ledger'",
  'ALTER TABLE projects DROP COLUMN latest_at',
  'DROP TABLE ledger',
  'DROP TABLE follower',
  'ALTER TABLE leases DROP COLUMN touched_at',
  'ALTER TABLE leases DROP COLUMN shown',
  'DROP TABLE outbox',
  'ALTER TABLE leases DROP COLUMN resources',
  'DROP INDEX leases_by_project',
  'DROP INDEX leases_open_by_region',
  'DROP INDEX entries_by_project',
  'DROP INDEX budgets_by_owner',
  'CREATE INDEX budgets_by_project ON budgets (project_id)',
  'DROP TABLE decisions',
  'DROP TABLE decision_filters',
  'DROP INDEX leases_by_owner',
  'DROP TABLE folds',
  'DROP TABLE folded_balances',
  'DROP TABLE sessions',
  'DROP TABLE login_counts',
  'DROP TABLE budget_requests',
  'DROP TABLE calendar_links',
  'DROP TABLE replicas',
];

async function run({ ledger }: Ground, statement: string): Promise<void> {
  const query = sql.raw(statement).compile(ledger.database.queries);
  await ledger.transact('commit', () => rows(query), NO_WAIT);
}

describe.each(DIALECTS)('a ledger of the first version on %s', (dialect) => {
  it('keeps its leases and their charges', async () => {
    const first = await newGround(dialect, { budget: '1000', most: 9 });
    await first.create(leaseOf({ id: 'A', name: 'known' }));
    await first.create(leaseOf({ hosts: 3 }));
    await first.create(leaseOf({ hosts: 1 }));
    const before = await first.rows('leases');
    for (const statement of BACK) {
      await run(first, statement);
    }
    await first.close();

    expect(await upgrade(first.connection)).toEqual([
      '0002-alternatives',
      '0003-position',
      '0004-follower',
      '0005-outbox',
      '0006-views',
      '0007-decisions',
      '0008-open-leases',
      '0010-growth',
      '0011-sessions',
      '0012-budget-requests',
      '0013-calendar-links',
    ]);
    const ground = await newGround(dialect, { most: 9, projectId: first.project });
    const after = await ground.rows('leases');
    const kept = (row: (typeof after)[number]) => ({ ...row, demand: '', resources: '' });
    expect(after.map(kept)).toEqual(before.map(kept));
    expect(after.map(({ resources }) => resources)).toEqual([null, null, null]);
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
