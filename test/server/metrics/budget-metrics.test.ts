/** What the metrics show of single budgets. */
import { expect, it } from 'vitest';
import { recordLease } from '../../ledger/recorded-leases.ts';
import { giveBudget, ledgerAt, newLedger } from '../../support/ledgers.ts';
import { runServiceOnFile } from '../../support/running-service.ts';
import { readSamples, samplesOf } from '../../support/samples.ts';

const HOSTILE = 'a"b\\c\nd} 1';

async function shown(most: number) {
  const connection = await newLedger();
  const now = () => new Date().toISOString();
  const ledger = await ledgerAt(connection, { now });
  await giveBudget(ledger, { amount: '30' });
  await recordLease(ledger, { name: 'a', start: '2027-02-01', end: '2027-02-02' });
  await giveBudget(ledger, { amount: '12.5', userId: HOSTILE });
  await giveBudget(ledger, { amount: '0', projectId: 'nothing' });
  await giveBudget(ledger, { amount: '5', projectId: 'over', until: '2026-02-01' });
  await ledger.close();
  const { url } = await runServiceOnFile(
    `[enforcement]\nenabled_filters = UsageBudgetFilter\n[service]\nport = 0\nmetrics_tokens = of-prometheus-0123456789\nmetrics_budgets = ${most}\n[ledger]\nconnection = ${connection}\n`,
  );
  const samples = await readSamples(url, 'of-prometheus-0123456789');
  return (name: string) => samplesOf(samples, name);
}

it('shows amount, taken, left and validity of each budget in force', async () => {
  const of = await shown(10);
  const hostile = '{project_id="climate",user_id="a\\"b\\\\c\\nd} 1"}';
  expect(of('budget_amount_hours')).toEqual({
    '{project_id="nothing",user_id=""}': 0,
    '{project_id="climate",user_id=""}': 30,
    [hostile]: 12.5,
  });
  expect(of('budget_taken_hours')).toMatchObject({ '{project_id="climate",user_id=""}': 24, [hostile]: 0 });
  expect(of('budget_left_hours')).toMatchObject({ '{project_id="climate",user_id=""}': 6, [hostile]: 12.5 });
  expect(of('budgets_omitted')).toEqual({ '': 0 });
  const climate = '{project_id="climate",user_id=""}';
  expect(of('budget_valid_from_timestamp_seconds')[climate]).toBe(Date.parse('2026-01-01') / 1000);
  expect(of('budget_valid_until_timestamp_seconds')[climate]).toBe(Date.parse('2028-01-01') / 1000);
});

it('shows the fullest of them, up to metrics_budgets, and counts the others', async () => {
  const of = await shown(2);
  expect(Object.keys(of('budget_amount_hours'))).toEqual([
    '{project_id="nothing",user_id=""}',
    '{project_id="climate",user_id=""}',
  ]);
  expect(of('budgets_omitted')).toEqual({ '': 1 });
});
