/** Links to the calendar of a project in the console, as the service sends it: without scripts. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { recordLease } from '../../../ledger/recorded-leases.ts';
import { giveBudget, ledgerAt, newLedgers } from '../../../support/ledgers.ts';
import { type ConsoleFixture, consoleOn } from '../console-fixture.ts';
import { rowsOf, textOf } from '../visitor.ts';

const newLedger = newLedgers();
let fixture: ConsoleFixture;

beforeAll(async () => {
  const connection = await newLedger('sqlite');
  const ledger = await ledgerAt(connection);
  await giveBudget(ledger, { amount: '1000' });
  await recordLease(ledger, { name: 'a' });
  await ledger.close();
  fixture = await consoleOn(connection, {}, () => '2026-11-21T09:00:30Z');
});
afterAll(() => fixture.close());

const PATH = '/projects/climate/calendar';
const secretIn = (html: string) => /\/calendars\/[\w-]{43}\.ics/.exec(html)?.[0];

describe('the page of calendar links', () => {
  it('shows a new link once, and revokes it', async () => {
    expect((await fixture.get('meg', '/projects/climate')).html).toContain(`href="${PATH}"`);
    expect(textOf((await fixture.get('meg', PATH)).html)).toContain('There are no links.');
    const made = await fixture.send('meg', PATH, {});
    expect(made.status).toBe(200);
    expect(secretIn(made.html)).toBeDefined();
    const { html } = await fixture.get('meg', PATH);
    expect(secretIn(html)).toBeUndefined();
    expect(rowsOf(html, 'Links').map((cells) => cells.slice(0, 3))).toEqual([
      ['2026-11-21 09:00:30', 'meg@Default (id-of-meg)', '2026-12-21 09:00:30'],
    ]);
    const revoke = /name="revoke" value="(\d+)"/.exec(html)?.[1] ?? '';
    expect(await fixture.send('meg', PATH, { revoke })).toMatchObject({ status: 303, location: PATH });
    expect(textOf((await fixture.get('meg', PATH)).html)).toContain('There are no links.');
    expect((await fixture.send('meg', PATH, { revoke })).status).toBe(404);
  });

  it('makes none for a form of another site, for a token, or in a project of others', async () => {
    expect((await fixture.send('meg', PATH, { csrf: 'guessed' })).status).toBe(403);
    expect((await fixture.send('operator', PATH, {})).status).toBe(422);
    expect((await fixture.send('meg', '/projects/ocean/calendar', {})).status).toBe(403);
    expect(textOf((await fixture.get('operator', PATH)).html)).toContain('log in as a user');
    expect(textOf((await fixture.get('mona', PATH)).html)).toContain('There are no links.');
  });
});
