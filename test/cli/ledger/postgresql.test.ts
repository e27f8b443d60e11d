import { describe, expect, it } from 'vitest';
import { rows } from '../../../src/ledger/storage/database.ts';
import { temporaryFile } from '../../support/files.ts';
import { ledgerAt, NO_WAIT } from '../../support/ledgers.ts';
import { createDatabase } from '../../support/shared-postgres.ts';
import { commandsOn, fill } from './setup.ts';

describe('the commands on PostgreSQL', () => {
  it('create the tables, print their content, reconcile and verify it', async () => {
    const connection = await createDatabase();
    const { ledger, budget } = commandsOn(connection);
    expect(await ledger('list')).toMatchObject({ code: 2, stdout: '' });
    const place = connection.replace(/\/\/.*@/, '//');
    expect(await ledger('upgrade')).toEqual({
      code: 0,
      stdout: `${place}: applied 0001-ledger, 0002-alternatives, 0003-position, 0004-follower, 0005-outbox, 0006-views, 0007-decisions, 0008-open-leases, 0010-growth\n`,
      stderr: '',
    });
    expect((await ledger('upgrade')).stdout).toBe(`${place}: is up to date\n`);
    await fill(connection);
    expect((await ledger('list', '--state', 'open')).stdout).toMatch(/^#1 +lease-1 .* open$/m);
    expect((await ledger('show', '#1')).stdout).toMatch(/ create +usage_budget\/1 +24 node-hours /);
    expect((await ledger('export')).stdout.trimEnd().split('\n')).toHaveLength(14);

    const dates = { start_date: '2096-12-01T00:00:00.000000', end_date: '2096-12-05T00:00:00.000000' };
    const list = temporaryFile('leases.json', JSON.stringify([{ id: 'lease-1', name: 'first', ...dates }]));
    const { stdout } = await ledger('reconcile', list);
    expect(stdout).toMatch(/^corrected +#1 +lease-1 /m);
    expect(stdout).toMatch(/^released +#3 .* third /m);
    expect((await budget('show', 'climate')).stdout).toMatch(
      /^#1 .* first +usage_budget\/1 +96 node-hours /m,
    );
    expect((await ledger('verify')).stdout).toMatch(/^The books agree: /);

    const book = await ledgerAt(connection);
    const { queries } = book.database;
    const wrong = queries.updateTable('accounts').set({ balance: 7n });
    await book.transact('commit', () => rows(wrong.compile()), NO_WAIT);
    await book.close();
    expect((await ledger('verify')).code).toBe(1);
  });

  it('exit with 2 if the database refuses the login, and do not print the password', async () => {
    const connection = (await createDatabase()).replace(/:[^:@]+@/, ':hunter2@');
    for (const command of ['upgrade', 'list']) {
      const { code, stdout, stderr } = await commandsOn(connection).ledger(command);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toMatch(/^error: .*password authentication failed[^\n]*\n$/);
      expect(stderr).not.toContain('hunter2');
    }
  });
});
