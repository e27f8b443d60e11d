/** What the commands on the ledger announce, if the configuration has `[notifications]`. */
import { expect, it } from 'vitest';
import { listOutbox, outboxMessage } from '../../../src/ledger/outbox/reports.ts';
import { copiedLedgers } from '../../ledger/recorded-leases.ts';
import { eventIn } from '../../notifications/cloud-events.ts';
import { temporaryFile } from '../../support/files.ts';
import { breakLedger, ledgerAt, NO_WAIT } from '../../support/ledgers.ts';
import { commandsOn, fill } from './setup.ts';

const newLedger = copiedLedgers(fill);
const NOTIFICATIONS = '[notifications]\nwebhook_url = http://127.0.0.1:1/hidden';

async function events(connection: string) {
  const ledger = await ledgerAt(connection);
  const found = await listOutbox(ledger, { limit: 100 }, NO_WAIT);
  const messages = await Promise.all(found.map(({ id }) => outboxMessage(ledger, id, NO_WAIT)));
  await ledger.close();
  return messages.map((one) => eventIn(one?.body ?? ''));
}

it('ledger reconcile announces what it has changed, and a dry run nothing', async () => {
  const connection = await newLedger();
  const { ledger } = commandsOn(connection, NOTIFICATIONS);
  const list = temporaryFile('leases.json', '[]');
  await ledger('reconcile', list, '--empty', '--dry-run');
  expect(await events(connection)).toEqual([]);
  const { code, stderr } = await ledger('reconcile', list, '--empty', '--reason', 'monthly');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(await events(connection)).toMatchObject([
    {
      type: 'io.blazar-enforcement.ledger.corrected',
      data: { released: 2, recorded: 0, reason: 'monthly', leases: [{ id: 'lease-1' }, { name: 'third' }] },
    },
  ]);
  await ledger('reconcile', list, '--empty');
  expect(await events(connection)).toHaveLength(1);
});

it('ledger reconcile warns if it cannot announce what it has done', async () => {
  const connection = await newLedger();
  const { ledger } = commandsOn(
    connection,
    NOTIFICATIONS.replace('webhook_url', 'budget_thresholds =\nwebhook_url'),
  );
  breakLedger(connection, 'outbox');
  const list = temporaryFile('leases.json', '[]');
  const { stdout, stderr } = await ledger('reconcile', list, '--empty');
  expect(stdout + stderr).toContain('outbox');
});

it('budget set announces a budget that is made smaller than what is taken', async () => {
  const connection = await newLedger();
  const { budget } = commandsOn(connection, NOTIFICATIONS);
  const set = (hours: string) =>
    budget(
      'set',
      'climate',
      '--amount',
      hours,
      '--from',
      '2026-01-01',
      '--until',
      '2098-01-01',
      '--reason',
      'less',
    );
  expect(await set('60')).toMatchObject({ code: 0, stderr: '' });
  expect(await events(connection)).toMatchObject([
    {
      type: 'io.blazar-enforcement.budget.threshold',
      data: { threshold: 80, cause: 'budget', budget: { amount: '60', taken: '48', left: '12' } },
    },
  ]);
});
