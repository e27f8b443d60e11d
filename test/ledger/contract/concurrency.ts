import pg from 'pg';
import { expect, it, vi } from 'vitest';
import { removeBudget } from '../../../src/ledger/budgets/budgets.ts';
import { openSqlite } from '../../../src/ledger/storage/sqlite-driver.ts';
import { ledgerAt, NO_WAIT } from '../../support/ledgers.ts';
import { type LedgerFixture, type LedgerFixtures, leaseOf } from '../fixture.ts';
import { by } from '../recorded-leases.ts';

const PATIENT = { timeout: 120_000, interval: 20 };

/** Many at once: as if one came after the other. */
export function crowding(fixtures: LedgerFixtures): void {
  it.each([
    ['budget', { budget: '240' }],
    ['number of leases', { most: 10 }],
    ['number of leases of a user', { mostPerUser: 10 }],
  ])('grants ten of fifty leases at once when the %s allows ten', async (_, setup) => {
    const fixture = await fixtures(setup);
    const names = Array.from({ length: 50 }, (_, index) => `run ${index}`);
    const recordings = await Promise.all(names.map((name) => fixture.create(leaseOf({ name }))));
    expect(recordings.filter(({ refusal }) => refusal === undefined)).toHaveLength(10);
    expect(await fixture.count()).toBe(10n);
    expect(await fixture.rows('leases')).toHaveLength(10);
  });

  it('serves different projects at once, each with its own limits', async () => {
    const all = await Promise.all([1, 2, 3, 4].map((most) => fixtures({ most })));
    const names = Array.from({ length: 6 }, (_, index) => `run ${index}`);
    await Promise.all(names.flatMap((name) => all.map((fixture) => fixture.create(leaseOf({ name })))));
    expect(await Promise.all(all.map((fixture) => fixture.count()))).toEqual([1n, 2n, 3n, 4n]);
  });

  it('is the same ledger for every process that opens it', async () => {
    const fixture = await fixtures({ budget: '48' });
    const other = await fixtures({ budget: '48', projectId: fixture.project, isApart: true });
    const first = leaseOf({ name: 'first' });
    const second = leaseOf({ name: 'second' });
    await Promise.all([
      fixture.create(first),
      other.create(second),
      other.create(first),
      fixture.create(second),
    ]);
    expect(await other.taken()).toEqual(['48']);
    expect((await other.create(leaseOf({ name: 'third' }))).refusal?.filter).toBe('UsageBudgetFilter');
    await Promise.all([other.end(first), fixture.end(first), fixture.end(second)]);
    expect(await fixture.taken()).toEqual(['0']);
  });

  it('records nothing for a caller that has given up, and serves the next one', async () => {
    const fixture = await fixtures({ budget: '48' });
    const before = await fixture.everything();
    const over = new AbortController();
    const wait = { signal: over.signal, throwIfOver: () => over.signal.throwIfAborted() };
    const request = { context: fixture.context(), lease: leaseOf() };
    over.abort(new Error('nobody waits'));
    await expect(fixture.chain.commit(request, fixture.claimants, by('create'), wait)).rejects.toThrow(
      'nobody waits',
    );
    expect(await fixture.everything()).toEqual(before);
    expect((await fixture.create(leaseOf())).refusal).toBeUndefined();
  });

  it('gives up after its timeout while another process locks the ledger, and recovers', async () => {
    const fixture = await fixtures({ budget: '48' });
    // On a busy machine, what nobody stands in the way of may take as long.
    const withLockTimeouts = await vi.waitFor(
      () => ledgerAt(fixture.connection, { now: () => fixture.now, timeout: 0.2 }),
      PATIENT,
    );
    const which = { projectId: fixture.project, userId: null, validFrom: 1_767_225_600n };
    const remove = () => removeBudget(withLockTimeouts, which, { who: 'operator', reason: null }, NO_WAIT);
    const release = await hold(fixture);
    await Promise.all(
      // More than there are connections: none may be lost.
      Array.from({ length: 6 }, () =>
        expect(remove()).rejects.toMatchObject({ name: 'LedgerUnavailableError' }),
      ),
    );
    await release();
    await vi.waitFor(remove, PATIENT);
    expect(await fixture.taken()).toEqual([]);
    await withLockTimeouts.close();
  });
}

/** Begins a transaction of the project that goes on until the result is called. */
async function hold({ connection, project }: LedgerFixture): Promise<() => Promise<void>> {
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
