/** A ledger with more accounts than fit into the memory is verified, and what is wrong in it is found. */
import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { openSqlite } from '../../../src/ledger/storage/sqlite-driver.ts';
import { confFile } from '../../support/files.ts';
import { newLedger } from '../../support/ledgers.ts';
import { recordMany } from '../many-leases.ts';

const MAIN = new URL('../../../dist/src/cli/main.js', import.meta.url).pathname;
const TIMEOUT = 1_200_000;
const LEASES = 40_000;
const MEGABYTES = 32;

it(
  'verifies 40,000 leases and as many accounts with a heap of 32 MB',
  async () => {
    const connection = await newLedger();
    await recordMany(connection, LEASES);
    const conf = confFile(
      `[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 86400\n[ledger]\nconnection = ${connection}\n`,
    );
    const verify = () =>
      spawnSync(
        process.execPath,
        [`--max-old-space-size=${MEGABYTES}`, MAIN, 'ledger', 'verify', '--config-file', conf],
        { encoding: 'utf8', timeout: TIMEOUT },
      );
    const projects = LEASES / 50 + 1;
    const accounts = LEASES + 2 * projects + 3;
    expect(verify()).toMatchObject({
      status: 0,
      stderr: '',
      stdout: `The ledger is consistent: balances ${accounts}, entries ${3 * (LEASES + 1)}, leases ${LEASES + 1}, budgets 0\n`,
    });
    const database = openSqlite(connection.slice('sqlite://'.length));
    database.exec("UPDATE accounts SET balance = 2 WHERE name = 'max_leases/user/user-7777'");
    database.exec("DELETE FROM accounts WHERE name = 'max_leases/user/user-35000'");
    database.close();
    const { status, stdout } = verify();
    expect(status).toBe(1);
    expect(stdout).toMatch(/^project-155 +balance +max_leases\/user\/user-7777 +1 +2$/m);
    expect(stdout).toMatch(/^project-700 +held +max_leases\/user\/user-35000 +1 +nothing$/m);
    expect(stdout).toMatch(/^4 differences: /m);
  },
  TIMEOUT,
);
