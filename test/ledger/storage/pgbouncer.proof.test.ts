/** A ledger behind a real PgBouncer in transaction mode: no two transactions of a connection need have the same session. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { listBudgets } from '../../../src/ledger/budgets/budgets.ts';
import type { Ledger } from '../../../src/ledger/ledger.ts';
import { listLeases } from '../../../src/ledger/reports/reports.ts';
import { verifyLedger } from '../../../src/ledger/reports/verify.ts';
import { giveBudget, NO_WAIT, openedLedger, upgraded } from '../../support/ledgers.ts';
import { hasPgBouncer, startPgBouncer } from '../../support/pgbouncer.ts';
import { type Postgres, startPostgres } from '../../support/postgres.ts';
import { backends, holdProject, runSql } from '../../support/postgres-activity.ts';
import { recordLease } from '../recorded-leases.ts';

/** Fewer than each of the ledgers has. */
const CONNECTIONS = 2;
const SOON = { timeout: 120_000, interval: 50 };

describe.skipIf(!hasPgBouncer())('a ledger behind PgBouncer', { timeout: 1_200_000 }, () => {
  let postgres: Postgres;
  beforeAll(async () => {
    postgres = await startPostgres();
  });
  afterAll(() => postgres.remove());

  async function newGround() {
    const direct = await postgres.createDatabase();
    const pooled = await upgraded(await startPgBouncer(direct, CONNECTIONS));
    const opened = async (connection = pooled, setup = {}): Promise<Ledger> => {
      const ledger = await openedLedger(connection, setup);
      return ledger;
    };
    return { direct, pooled, opened };
  }

  it('is upgraded, shared by several processes, and keeps nothing in a session', async () => {
    const { direct, opened } = await newGround();
    const ledgers = await Promise.all([opened(), opened(), opened(), opened(direct)]);
    const [ledger = await opened()] = ledgers;
    await giveBudget(ledger, { amount: '100' });
    const names = Array.from({ length: 80 }, (_, index) => `run ${index}`);
    await Promise.all(
      names.map((name, index) => recordLease(ledgers[index % ledgers.length] ?? ledger, { name })),
    );
    expect(await listLeases(ledger, { limit: 100 }, NO_WAIT)).toHaveLength(names.length);
    expect(await listBudgets(ledger, undefined, NO_WAIT)).toHaveLength(1);
    expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
    expect(await runSql(await startPgBouncer(direct, 1), 'SELECT name FROM pg_prepared_statements')).toEqual(
      [],
    );
    const settings = 'SHOW statement_timeout';
    expect(await runSql(await startPgBouncer(direct, 1), settings)).toEqual([{ statement_timeout: '0' }]);
  });

  it('waits for a project until its time is over, and leaves nothing waiting', async () => {
    const { direct, opened } = await newGround();
    const ledger = await opened();
    const hasty = await opened(undefined, { timeout: 1 });
    await recordLease(ledger, { name: 'first' });
    const letGo = await holdProject(direct, 'climate');
    const waiting = ['second', 'third', 'fourth'].map((name) => recordLease(hasty, { name }));
    expect(await Promise.allSettled(waiting)).toMatchObject(waiting.map(() => ({ status: 'rejected' })));
    await expect
      .poll(async () => (await backends(direct)).filter((text) => !text.startsWith('idle:')))
      .toEqual([]);
    await letGo();
    await recordLease(ledger, { name: 'fifth' });
    const names = (await listLeases(ledger, { limit: 9 }, NO_WAIT)).map(({ name }) => name);
    expect(names.toSorted()).toEqual(['fifth', 'first']);
  });

  it('has the options of the URL in each transaction, and makes no tables with them', async () => {
    const { direct, pooled, opened } = await newGround();
    await runSql(direct, 'CREATE SCHEMA books');
    const of = (connection: string) => `${connection}?options=-c%20search_path=books`;
    await expect(upgraded(of(pooled))).rejects.toThrow(/options/);
    await upgraded(of(direct));
    await recordLease(await opened(of(pooled)), { name: 'of books' });
    await recordLease(await opened(), { name: 'of public' });
    for (const schema of ['books', 'public']) {
      const found = await runSql(direct, `SELECT name FROM ${schema}.leases`);
      expect(found).toEqual([{ name: `of ${schema}` }]);
    }
  });

  it('that is put back behind it is noticed by whoever was granted something', async () => {
    const { opened } = await newGround();
    const ledger = await opened();
    await recordLease(ledger, { name: 'first' });
    await postgres.stop();
    const putBack = postgres.copy();
    await postgres.start();
    await vi.waitFor(() => recordLease(ledger, { name: 'second' }), SOON);
    await postgres.stop();
    putBack();
    await postgres.start();
    await vi.waitFor(
      () => expect(listLeases(ledger, { limit: 9 }, NO_WAIT)).rejects.toThrow('the ledger has gone back'),
      SOON,
    );
  });
});
