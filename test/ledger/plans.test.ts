/** No statement of a check, a commit or an end may read more, the more leases there are: each finds its rows in an index. */

import { expect, it, onTestFinished } from 'vitest';
import { openSqlite } from '../../src/ledger/storage/sqlite-driver.ts';
import { createStatements } from '../../src/ledger/transactions/statements.ts';
import { newLedger, openedLedger } from '../support/ledgers.ts';

it('finds everything that a commit reads in an index', async () => {
  const connection = await newLedger();
  const ledger = await openedLedger(connection);
  const database = openSqlite(connection.slice('sqlite://'.length), { readonly: true });
  onTestFinished(() => void database.close());
  const of = createStatements(ledger.database.queries, 'sqlite');
  const owner = { project_id: 'p', user_id: 'u', region: '' };
  const read = {
    overdueLeases: of.overdueLeases({ project_id: 'p', now: 1n }),
    openLeases: of.openLeases({ project_id: 'p', now: 1n }),
    leaseById: of.leaseById({ ...owner, lease_id: 'l' }),
    leaseByRow: of.leaseByRow({ id: 1n }),
    namelessLeases: of.namelessLeases({ ...owner, starts_at: 1n }),
    unsettledNamelessLeases: of.unsettledNamelessLeases(owner),
    leasesByKey: of.leasesByKey({ ...owner, repetition_key: 'k' }),
    budgets: of.budgets([owner]),
    balances: of.balances([{ project_id: 'p', name: 'a' }]),
    endedEarly: of.endedEarly({ project_id: 'p', now: 1n }),
    latestFold: of.latestFold(owner),
  };
  for (const [name, { sql, parameters }] of Object.entries(read)) {
    const steps = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(parameters) as { detail: string }[];
    const plan = steps.map(({ detail }) => detail);
    expect(
      plan.filter((step) => step.startsWith('SCAN')),
      name,
    ).toEqual([]);
    expect(
      plan.some((step) => step.startsWith('SEARCH')),
      name,
    ).toBe(true);
  }
});
