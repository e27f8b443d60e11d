import { chmodSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { rows } from '../../../src/ledger/storage/database.ts';
import { temporaryFile } from '../../support/files.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';
import { ledgerAt, NO_WAIT } from '../../support/ledgers.ts';
import { commandsOn } from './setup.ts';

describe('ledger upgrade', () => {
  it('creates the file and its tables, and then finds them up to date', async () => {
    const file = join(temporaryFolder(), 'ledger.db');
    const { ledger } = commandsOn(`sqlite://${file}`);
    expect(await ledger('upgrade')).toEqual({
      code: 0,
      stdout: `${file}: applied 0001-ledger, 0002-alternatives, 0003-position, 0004-follower, 0005-outbox, 0006-views, 0007-decisions, 0008-open-leases, 0010-growth\n`,
      stderr: '',
    });
    expect((await ledger('upgrade')).stdout).toBe(`${file}: is up to date\n`);
    expect((await ledger('list')).code).toBe(0);
  });

  it('does not change tables of a newer version', async () => {
    const connection = `sqlite://${join(temporaryFolder(), 'ledger.db')}`;
    const { ledger } = commandsOn(connection);
    await ledger('upgrade');
    const book = await ledgerAt(connection);
    const sql = "INSERT INTO kysely_migration (name, timestamp) VALUES ('9999-later', 'x')";
    const query = { ...book.database.queries.selectFrom('leases').compile(), sql, parameters: [] };
    await book.transact('commit', () => rows(query), NO_WAIT);
    await book.close();
    for (const command of ['upgrade', 'list']) {
      const { code, stdout, stderr } = await ledger(command);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toMatch(/^error: .*made by a newer version of this program \(9999-later\)\n$/);
    }
  });

  it('exits with 2 and one line if the file cannot be created', async () => {
    const missing = join(temporaryFolder(), 'missing');
    const { code, stderr } = await commandsOn(`sqlite://${missing}/ledger.db`).ledger('upgrade');
    expect(code).toBe(2);
    expect(stderr).toMatch(/^error: .*\[ledger\] connection: the folder .*missing does not exist\n$/);
    expect(existsSync(missing)).toBe(false);

    const text = temporaryFile('ledger.db', 'This is no database, and it is long enough to tell. '.repeat(9));
    const wrong = await commandsOn(`sqlite://${text}`).ledger('upgrade');
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toMatch(/^error: .*file is not a database.*\n$/);

    const folder = temporaryFolder();
    const taken = await commandsOn(`sqlite://${folder}`).ledger('upgrade');
    expect(taken.code).toBe(2);
    expect(taken.stderr).toMatch(/^error: [^\n]+\n$/);
  });

  it.skipIf(process.getuid?.() === 0)('exits with 2 if the file cannot be written', async () => {
    const folder = temporaryFolder();
    chmodSync(folder, 0o500);
    const { code, stderr } = await commandsOn(`sqlite://${folder}/ledger.db`).ledger('upgrade');
    expect(code).toBe(2);
    expect(stderr).toMatch(/^error: .*cannot be written/);
  });
});

describe('a ledger that cannot be used', () => {
  it('exits with 2 if it does not exist, and names the command that creates it', async () => {
    const { ledger, budget } = commandsOn(`sqlite://${temporaryFolder()}/ledger.db`);
    for (const run of [ledger, budget]) {
      const { code, stdout, stderr } = await run('list');
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toMatch(/^error: .*blazar-enforcement ledger upgrade creates a ledger\n$/);
    }
  });

  it('exits with 3 if the database does not answer, and does not print the password', async () => {
    const { ledger, budget } = commandsOn('postgresql://ledger:hunter2@127.0.0.1:1/ledger');
    for (const run of [() => ledger('upgrade'), () => ledger('verify'), () => budget('list')]) {
      const { code, stdout, stderr } = await run();
      expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
      expect(stderr).toMatch(/^error: postgresql:\/\/127\.0\.0\.1:1\/ledger: .*ECONNREFUSED.*\n$/);
      expect(stderr).not.toContain('hunter2');
    }
  });

  it('exits with 2 if the connection is invalid, and does not print the password', async () => {
    const { code, stderr } = await commandsOn('mysql://root:hunter2@db/ledger').ledger('list');
    expect(code).toBe(2);
    expect(stderr).toMatch(/^error: .*expected sqlite:\/\/\/path/);
    expect(stderr).not.toContain('hunter2');
  });
});
