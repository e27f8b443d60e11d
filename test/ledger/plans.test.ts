/** No statement of a check, a commit or an end may read more, the more leases there are: each finds its rows in an index. */

import { expect, it } from 'vitest';
import { viewOf } from '../../src/ledger/budgets/view.ts';
import { createStatements } from '../../src/ledger/transactions/statements.ts';
import { newLedger, openedLedger } from '../support/ledgers.ts';
import { planOf } from './query-plan.ts';

it('finds everything that a commit reads in an index', async () => {
  const connection = await newLedger();
  const ledger = await openedLedger(connection);
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
    endOverdue: of.endOverdue({ project_id: 'p', now: 1n }),
    endedEarly: of.endedEarly({ project_id: 'p', now: 1n }),
    reopenEndedEarly: of.reopenEndedEarly({ project_id: 'p', now: 1n }),
    latestFold: of.latestFold(owner),
  };
  for (const [name, query] of Object.entries(read)) {
    const plan = planOf(connection, query);
    const [searches, scans] = ['SEARCH', 'SCAN'].map((way) => plan.filter((step) => step.startsWith(way)));
    expect(scans, name).toEqual([]);
    expect(searches, name).not.toEqual([]);
  }
});

it('reads each change of a budget once for a page of budgets', async () => {
  const connection = await newLedger();
  const { value: query } = viewOf(await openedLedger(connection), 1n).next([]);
  if (query === undefined || !('sql' in query)) {
    throw new Error('expected a query');
  }
  const plan = planOf(connection, query).join('\n');
  expect(plan).toContain('budget_changes_by_project');
  expect(plan).not.toContain('CORRELATED');
});
