/** A project whose older leases are folded into totals: its page says what it does not have. */
import { expect, it, onTestFinished } from 'vitest';
import { fold } from '../../../ledger/folding/folded-ledgers.ts';
import { recordLease } from '../../../ledger/recorded-leases.ts';
import { giveBudget, ledgerAt, newLedger } from '../../../support/ledgers.ts';
import { consoleOn } from '../console-fixture.ts';
import { textOf } from '../visitor.ts';

async function pageOf(oldLeases: readonly string[], query = '') {
  let now = '2016-01-01T00:00:00Z';
  const connection = await newLedger();
  const ledger = await ledgerAt(connection, { now: () => now });
  await giveBudget(ledger, { from: '2016-01-01', until: '2018-01-01', amount: '1000' });
  for (const day of oldLeases) {
    await recordLease(ledger, { name: day, start: `2016-${day}-01`, end: `2016-${day}-02` });
  }
  now = '2017-02-01T00:00:00Z';
  await recordLease(ledger, { name: 'now', start: '2017-03-01', end: '2017-03-02' });
  await fold(ledger, '2017-01-01');
  await ledger.close();
  const fixture = await consoleOn(connection, {}, () => now);
  onTestFinished(() => fixture.close());
  const { status, html } = await fixture.get('operator', `/projects/climate${query}`);
  expect(status).toBe(200);
  return textOf(html);
}

it.each([
  [['11'], '1 older lease is folded into totals and not listed: it had ended before'],
  [['11', '12'], '2 older leases are folded into totals and not listed: all had ended before'],
])('tells of %j how many leases are not listed', async (oldLeases, told) => {
  expect(await pageOf(oldLeases, '?from=2016-06-01&until=2017-06-01')).toContain(told);
});

it('says that figures begin when nothing is folded any more, and nothing where all of them are known', async () => {
  const begins =
    'are folded into totals, without the times of their usage: these figures begin at that date.';
  expect(await pageOf(['11'], '?from=2016-06-01&until=2017-06-01')).toContain(begins);
  const later = await pageOf(['11'], '?from=2017-01-15&until=2017-06-01');
  expect(later).not.toContain('folded');
});
