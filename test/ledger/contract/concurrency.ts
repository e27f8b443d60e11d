import pg from 'pg';
import { expect, it, vi } from 'vitest';
import { removeBudget } from '../../../src/ledger/budgets/budgets.ts';
import { openSqlite } from '../../../src/ledger/storage/sqlite-driver.ts';
import { ledgerAt, NO_WAIT } from '../../support/ledgers.ts';
import { type Ground, type Grounds, leaseOf } from '../ground.ts';
import { by } from '../recorded-leases.ts';

const PATIENT = { timeout: 120_000, interval: 20 };

/** Many at once: as if one came after the other. */
export function crowding(grounds: Grounds): void {
  it.each([
    ['budget', { budget: '240' }],
    ['number of leases', { most: 10 }],
    ['number of leases of a user', { mostPerUser: 10 }],
  ])('grants ten of fifty leases at once when the %s allows ten', async (_, setup) => {
    const ground = await grounds(setup);
    const names = Array.from({ length: 50 }, (_, index) => `run ${index}`);
    const recordings = await Promise.all(names.map((name) => ground.create(leaseOf({ name }))));
    expect(recordings.filter(({ refusal }) => refusal === undefined)).toHaveLength(10);
    expect(await ground.count()).toBe(10n);
    expect(await ground.rows('leases')).toHaveLength(10);
  });

  it('serves different projects at once, each with its own limits', async () => {
    const all = await Promise.all([1, 2, 3, 4].map((most) => grounds({ most })));
    const names = Array.from({ length: 6 }, (_, index) => `run ${index}`);
    await Promise.all(names.flatMap((name) => all.map((ground) => ground.create(leaseOf({ name })))));
    expect(await Promise.all(all.map((ground) => ground.count()))).toEqual([1n, 2n, 3n, 4n]);
  });

  it('is the same ledger for every process that opens it', async () => {
    const ground = await grounds({ budget: '48' });
    const other = await grounds({ budget: '48', projectId: ground.project, isApart: true });
    const [first, second] = [leaseOf({ name: 'first' }), leaseOf({ name: 'second' })];
    await Promise.all([
      ground.create(first),
      other.create(second),
      other.create(first),
      ground.create(second),
    ]);
    expect(await other.taken()).toEqual(['48']);
    expect((await other.create(leaseOf({ name: 'third' }))).refusal?.filter).toBe('UsageBudgetFilter');
    await Promise.all([other.end(first), ground.end(first), ground.end(second)]);
    expect(await ground.taken()).toEqual(['0']);
  });

  it('records nothing for a caller that has given up, and serves the next one', async () => {
    const ground = await grounds({ budget: '48' });
    const before = await ground.everything();
    const over = new AbortController();
    const wait = { signal: over.signal, throwIfOver: () => over.signal.throwIfAborted() };
    const request = { context: ground.context(), lease: leaseOf() };
    over.abort(new Error('nobody waits'));
    await expect(ground.chain.commit(request, ground.claimants, by('create'), wait)).rejects.toThrow(
      'nobody waits',
    );
    expect(await ground.everything()).toEqual(before);
    expect((await ground.create(leaseOf())).refusal).toBeUndefined();
  });

  it('gives up after its timeout while another process locks the ledger, and recovers', async () => {
    const ground = await grounds({ budget: '48' });
    // On a busy machine, what nobody stands in the way of may take as long.
    const withLockTimeouts = await vi.waitFor(
      () => ledgerAt(ground.connection, { now: () => ground.now, timeout: 0.2 }),
      PATIENT,
    );
    const which = { projectId: ground.project, userId: null, validFrom: 1_767_225_600n };
    const remove = () => removeBudget(withLockTimeouts, which, { who: 'operator', reason: null }, NO_WAIT);
    const release = await hold(ground);
    await Promise.all(
      // More than there are connections: none may be lost.
      Array.from({ length: 6 }, () =>
        expect(remove()).rejects.toMatchObject({ name: 'LedgerUnavailableError' }),
      ),
    );
    await release();
    await vi.waitFor(remove, PATIENT);
    expect(await ground.taken()).toEqual([]);
    await withLockTimeouts.close();
  });
}

/** Begins a transaction of the project that goes on until the result is called. */
async function hold({ connection, project }: Ground): Promise<() => Promise<void>> {
  if (connection.startsWith('sqlite:')) {
    const holder = openSqlite(connection.slice('sqlite://'.length));
    holder.exec('BEGIN IMMEDIATE');
    return async () => {
      holder.close();
    };
  }
  const holder = new pg.Client({ connectionString: connection });
  await holder.connect();
  await holder.query('BEGIN');
  await holder.query('UPDATE projects SET revision = revision WHERE project_id = $1', [project]);
  return () => holder.end();
}
