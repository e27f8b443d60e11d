/** The page of usage, as the service sends it: without scripts. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { recordLease } from '../../ledger/recorded-leases.ts';
import { giveBudget, ledgerAt, newLedgers } from '../../support/ledgers.ts';
import { type ConsoleFixture, consoleOn, type Name } from './console-fixture.ts';
import { rowsOf, textOf } from './visitor.ts';

const newLedger = newLedgers();
let fixture: ConsoleFixture;

beforeAll(async () => {
  const connection = await newLedger('sqlite');
  const ledger = await ledgerAt(connection);
  await giveBudget(ledger, { amount: '1000' });
  await recordLease(ledger, { name: 'a', end: '2026-12-03' });
  await recordLease(ledger, { name: 'b', userId: '<b>bob', start: '2026-12-31', end: '2027-01-02' });
  await recordLease(ledger, { name: 'o', projectId: 'ocean' });
  await ledger.close();
  fixture = await consoleOn(connection, {}, () => '2027-01-15T00:00:00Z');
});
afterAll(() => fixture.close());

const WINTER = 'from=2026-12-01&until=2027-02-01';

async function page(who: Name, query: string) {
  const { status, html } = await fixture.get(who, `/usage?${query}`);
  return { status, html, text: textOf(html) };
}

describe('the page of usage', () => {
  it('shows the last months as a table and a chart, to each of their projects, with links to files', async () => {
    const { status, html, text } = await page('operator', '');
    expect(status).toBe(200);
    expect(rowsOf(html, 'Usage by month').map((cells) => cells.slice(0, 2))).toEqual(
      expect.arrayContaining([
        ['2026-12', '96'],
        ['2027-01', '24'],
      ]),
    );
    expect(text).toContain('Highest usage: 2026-12.');
    expect(html).toContain('data-chart="usage-months"');
    expect(html).toContain(
      '/v1/reports/usage?from=2026-02-01&amp;until=2027-02-01&amp;by=month&amp;format=csv',
    );
    expect(html).toContain('value="2026-02-01"');
  });

  it('shows members their projects alone', async () => {
    const seen = await page('meg', `${WINTER}&by=project`);
    expect(seen.text).toContain('climate');
    expect(seen.text).not.toContain('ocean');
    expect((await page('meg', `${WINTER}&by=project&project=ocean`)).text).toContain('No usage');
    const users = await page('meg', `${WINTER}&by=user`);
    expect(users.text).toContain('<b>bob');
    expect(users.html).not.toContain('<b>bob');
  });

  it('says beside the field what is wrong', async () => {
    for (const [query, message] of [
      ['from=soon', 'expected a date such as 2026-12-01'],
      ['from=2027-01-01&until=2026-01-01', 'expected a time after from'],
      ['from=1990-01-01', 'expected at most 3660 days before until'],
    ] as const) {
      const seen = await page('reader', query);
      expect({ query, status: seen.status }).toEqual({ query, status: 400 });
      expect(seen.text).toContain(message);
    }
    expect((await page('reader', `${WINTER}&by=nonsense`)).status).toBe(200);
  });
});
