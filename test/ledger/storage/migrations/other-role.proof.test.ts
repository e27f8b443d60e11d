/** A role without DDL rights serves a ledger that another role upgrades: what it is told before, and what it lacks after. */
import { expect, it, onTestFinished } from 'vitest';
import { ConfigurationError } from '../../../../src/index.ts';
import { verifyLedger } from '../../../../src/ledger/reports/verify.ts';
import { ChainLedger } from '../../../../src/ledger/service.ts';
import { RESTORE } from '../../../support/earlier-ledgers.ts';
import { NO_WAIT, openedLedger, upgrade } from '../../../support/ledgers.ts';
import { recordingLogger } from '../../../support/logger.ts';
import { runSql } from '../../../support/postgres-activity.ts';
import { recordLease } from '../../recorded-leases.ts';

/** As a ledger was before the latest tables that leases need. */
const BACK = `DROP TABLE folds; DROP TABLE folded_balances; DROP INDEX leases_by_owner;
  DELETE FROM kysely_migration WHERE name = '0010-growth'`;
const RIGHTS = 'SELECT, INSERT, UPDATE';

/** What the service says at its start. */
async function openingOf(connection: string): Promise<string> {
  const options = { connection, commit: 'check', timeout: 5, pool_size: 2 } as const;
  const clock = { now: () => new Date() };
  const chain = new ChainLedger(options, { logger: recordingLogger(), clock, observer: undefined });
  onTestFinished(() => chain.close());
  try {
    await chain.open();
    return 'open';
  } catch (thrown) {
    if (thrown instanceof ConfigurationError) {
      return thrown.problems.map(({ message }) => message).join();
    }
    throw thrown;
  }
}

it.each([
  ['with rights that are granted after it', false],
  ['with rights that the owner grants by default', true],
])('serves after the upgrade, %s', async (_, byDefault) => {
  const owner = await RESTORE.PostgreSQL('0010-growth');
  await runSql(owner, BACK);
  const role = `role_${crypto.randomUUID().replaceAll('-', '')}`;
  const grant = `GRANT ${RIGHTS} ON ALL TABLES IN SCHEMA public TO ${role}`;
  await runSql(
    owner,
    `CREATE ROLE ${role} LOGIN PASSWORD 'secret'; GRANT USAGE ON SCHEMA public TO ${role}; ${grant}`,
  );
  onTestFinished(async () => {
    await runSql(owner, `DROP OWNED BY ${role}; DROP ROLE ${role}`);
  });
  if (byDefault) {
    await runSql(owner, `ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ${RIGHTS} ON TABLES TO ${role}`);
  }
  const connection = Object.assign(new URL(owner), { username: role, password: 'secret' }).href;
  expect(await openingOf(connection)).toMatch(
    /was made by an older version of this program: blazar-enforcement ledger upgrade brings it up to date$/,
  );
  await expect(upgrade(connection)).rejects.toThrow('must be owner of table leases');
  expect(await openingOf(connection)).toContain('was made by an older version');
  expect(await upgrade(owner)).toEqual([
    '0010-growth',
    '0011-sessions',
    '0012-budget-requests',
    '0013-calendar-links',
  ]);
  if (!byDefault) {
    const lacks = `the role "${role}" lacks SELECT on folds, SELECT on folded_balances`;
    expect(await openingOf(connection)).toContain(lacks);
    await runSql(owner, grant);
  }
  expect(await openingOf(connection)).toBe('open');
  const ledger = await openedLedger(connection);
  await recordLease(ledger, { name: 'of the role' });
  expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
});
