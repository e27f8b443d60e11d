import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { giveBudget, ledgerAt, newLedgers } from '../../support/ledgers.ts';
import { runServiceOn } from '../../support/running-service.ts';
import { rowsOf, visitor } from './visitor.ts';

const newLedger = newLedgers();

it('shows a project, and answers also while the ledger does not', { timeout: 60_000 }, async () => {
  const connection = await newLedger('postgresql');
  const ledger = await ledgerAt(connection);
  await giveBudget(ledger, { amount: '10', from: '2020-01-01', until: '9000-01-01' });
  await ledger.close();
  const { url, post } = await runServiceOn({
    environment: {},
    configFiles: [],
    values: {
      ledger: { connection, timeout: 600 },
      service: { port: 0 },
      enforcement: { enabled_filters: ['UsageBudgetFilter'] },
    },
  });
  const created = await post('/check-create', {
    context: { user_id: 'bob', project_id: 'climate' },
    lease: {
      ...{ name: 'one', start_date: '8000-01-01 00:00', end_date: '8000-01-01 04:00' },
      reservations: [{ resource_type: 'physical:host', min: 1, max: 1 }],
    },
  });
  expect(created.status).toBe(204);
  const { get } = visitor(url);
  expect((await get()).html).toContain('<a href="/?project=climate#ledger">');
  const { html, text } = await get('/?project=climate');
  expect(rowsOf(html, 'Budgets')).toEqual([['Project', '2020-01-01 to 9000-01-01', '10', '0', '4', '6']]);
  expect(rowsOf(html, 'Leases')).toEqual([['one', 'bob', '8000-01-01', '8000-01-01 04:00', 'pending']]);
  expect(text).toContain('All recorded leases: 1.');

  const other = new pg.Client({ connectionString: connection });
  await other.connect();
  onTestFinished(() => other.end());
  await other.query('BEGIN; LOCK TABLE leases IN ACCESS EXCLUSIVE MODE');
  const waiting = await get('/?project=climate');
  expect(waiting.status).toBe(200);
  expect(waiting.text).toContain('The ledger cannot be read at the moment.');
  // Until now it was locked, and the ledger itself would wait for ten minutes.
  await other.query('ROLLBACK');
  expect((await get('/?project=climate')).text).toContain('6 of 10 node-hours left');
});
