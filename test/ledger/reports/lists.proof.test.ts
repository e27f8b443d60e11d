/** Projects and leases in pages, on both databases. */
import { describe, expect, it } from 'vitest';
import type { Ledger } from '../../../src/ledger/ledger.ts';
import { type LeasesQuery, listProjectLeases } from '../../../src/ledger/reports/leases.ts';
import { CursorError, cursorOf, type PageOf } from '../../../src/ledger/reports/pages.ts';
import { listProjects } from '../../../src/ledger/reports/projects.ts';
import { rows } from '../../../src/ledger/storage/database.ts';
import { DIALECTS, NO_WAIT } from '../../support/ledgers.ts';
import { type LedgerFixture, leaseOf, newFixtures } from '../fixture.ts';

const newGround = newFixtures(true);

/** All pages of a list. */
async function paged<Item>(page: (after: string | undefined) => Promise<PageOf<Item>>): Promise<Item[]> {
  const items: Item[] = [];
  let after: string | undefined;
  do {
    const { items: some, next } = await page(after);
    items.push(...some);
    after = next;
  } while (after !== undefined);
  return items;
}

function leasesOf(fixture: LedgerFixture, query: Partial<LeasesQuery> = {}) {
  const projectId = fixture.project;
  return (after: string | undefined) =>
    listProjectLeases(fixture.ledger, { projectId, limit: 2, ...query, after }, NO_WAIT);
}

async function names(fixture: LedgerFixture, query: Partial<LeasesQuery> = {}): Promise<string[]> {
  return (await paged(leasesOf(fixture, query))).map(({ name }) => name);
}

/** A row that was recorded long ago. */
async function copyLeases(ledger: Ledger, name: string, times: number): Promise<void> {
  const { queries } = ledger.database;
  for (let left = times; left > 0; left -= 1) {
    const query = queries
      .insertInto('leases')
      .columns(COPIED)
      .expression(queries.selectFrom('leases').select(COPIED).where('name', '=', name));
    await ledger.transact('commit', () => rows(query.compile()), NO_WAIT);
  }
}

const COPIED = [
  'region',
  'project_id',
  'user_id',
  'name',
  'starts_at',
  'ends_at',
  'state',
  'demand',
  'claims',
  'revision',
  'recorded_at',
  'touched_at',
] as const;

describe.each(DIALECTS)('the projects of a ledger on %s', (dialect) => {
  it('come sorted, in pages that what is added does not move, with budget and open leases', async () => {
    const fixtures: LedgerFixture[] = [];
    for (const projectId of ['list-c', 'list-a', 'list-b']) {
      fixtures.push(await newGround(dialect, { projectId, budget: '1000' }));
    }
    const [first] = fixtures;
    await first?.create(leaseOf({ name: 'one', hosts: 2 }));
    await first?.create(leaseOf({ name: 'two' }));
    const ledger = first?.ledger as Ledger;
    const page = (after: string | undefined, limit = 2) =>
      listProjects(ledger, { projectIds: undefined, search: 'LIST-', limit, after }, NO_WAIT);
    const { items, next } = await page(undefined);
    expect(items.map(({ projectId }) => projectId)).toEqual(['list-a', 'list-b']);
    await newGround(dialect, { projectId: 'list-aa', budget: '1' });
    const rest = await page(next);
    expect(rest).toEqual({
      items: [
        {
          projectId: 'list-c',
          openLeases: 2,
          budget: {
            amount: 1000n * 3_600_000_000n,
            taken: 72n * 3_600_000_000n,
            left: 928n * 3_600_000_000n,
            validUntil: BigInt(Date.parse('2028-01-01') / 1000),
          },
        },
      ],
      next: undefined,
    });
    expect((await paged((after) => page(after, 1))).map(({ projectId }) => projectId)).toEqual([
      'list-a',
      'list-aa',
      'list-b',
      'list-c',
    ]);
  });

  it('are narrowed to those that somebody may see, and to those that contain a text', async () => {
    const { ledger } = await newGround(dialect, { projectId: 'Narrow_100%', budget: '1' });
    await newGround(dialect, { projectId: 'narrow-Ärger', budget: '1' });
    const found = async (search: string | undefined, projectIds?: string[]) => {
      const { items } = await listProjects(
        ledger,
        { projectIds, search, limit: 1000, after: undefined },
        NO_WAIT,
      );
      return items.map(({ projectId }) => projectId);
    };
    expect((await found('NARROW')).sort()).toEqual(['Narrow_100%', 'narrow-Ärger']);
    expect(await found('_100%')).toEqual(['Narrow_100%']);
    expect(await found('w%1')).toEqual([]);
    expect(await found('Ä')).toEqual(['narrow-Ärger']);
    expect(await found(undefined, [])).toEqual([]);
    expect(await found(undefined, ['nobody', 'Narrow_100%', "';--", '__proto__'])).toEqual(['Narrow_100%']);
    expect(await found('Ärger', ['Narrow_100%'])).toEqual([]);
  });
});

describe.each(DIALECTS)('the leases of a project on %s', (dialect) => {
  it('come newest first, in pages that what is recorded meanwhile does not move', async () => {
    const fixture = await newGround(dialect, { budget: '1000' });
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      await fixture.create(leaseOf({ name }));
    }
    const first = await leasesOf(fixture)(undefined);
    await fixture.create(leaseOf({ name: 'later' }));
    const second = await leasesOf(fixture)(first.next);
    const third = await leasesOf(fixture)(second.next);
    expect([first, second, third].map(({ items }) => items.map(({ name }) => name))).toEqual([
      ['e', 'd'],
      ['c', 'b'],
      ['a'],
    ]);
    expect(third.next).toBeUndefined();
  });

  it('tell what they take, how they are and what they reserve', async () => {
    const fixture = await newGround(dialect, { budget: '1000' });
    await fixture.create(leaseOf({ id: 'A', name: 'mine', hosts: 2 }), 'bob');
    const [lease] = (await leasesOf(fixture)(undefined)).items;
    expect(lease).toMatchObject({
      leaseId: fixture.idOf('A'),
      projectId: fixture.project,
      userId: 'bob',
      name: 'mine',
      state: 'pending',
      cost: 48n * 3_600_000_000n,
      resources: new Map([['physical:host', 2]]),
    });
    fixture.now = '2026-12-01T06:00:00Z';
    expect((await leasesOf(fixture)(undefined)).items[0]).toMatchObject({ state: 'active' });
    await fixture.end(leaseOf({ id: 'A', hosts: 2 }), 'bob');
    expect((await leasesOf(fixture)(undefined)).items[0]).toMatchObject({
      state: 'ended',
      end: BigInt(Date.parse('2026-12-01T06:00:00Z')) * 1000n,
      cost: 12n * 3_600_000_000n,
    });
  });

  it('are found by user, state and time', async () => {
    const fixture = await newGround(dialect, { budget: '9000' });
    fixture.now = '2026-12-10T00:00:00Z';
    await fixture.create(leaseOf({ name: 'over', from: '2026-12-01', until: '2026-12-11' }));
    await fixture.create(leaseOf({ name: 'now', from: '2026-12-09', until: '2026-12-20' }), 'bob');
    await fixture.create(leaseOf({ id: 'E', name: 'early', from: '2026-12-09', until: '2026-12-20' }), 'bob');
    await fixture.create(leaseOf({ name: 'soon', from: '2026-12-18', until: '2026-12-19' }));
    await fixture.end(leaseOf({ id: 'E', name: 'early', from: '2026-12-09', until: '2026-12-20' }), 'bob');
    // Nobody has noticed the end of the first.
    fixture.now = '2026-12-12T00:00:00Z';
    const at = (date: string) => BigInt(Date.parse(date)) * 1000n;
    expect(await names(fixture, { userId: 'bob' })).toEqual(['early', 'now']);
    expect(await names(fixture, { userId: '__proto__' })).toEqual([]);
    expect(await names(fixture, { state: 'open', limit: 1 })).toEqual(['soon', 'now']);
    expect(await names(fixture, { state: 'active' })).toEqual(['now']);
    expect(await names(fixture, { state: 'pending' })).toEqual(['soon']);
    expect(await names(fixture, { state: 'ended', limit: 1 })).toEqual(['early', 'over']);
    // One that ended on the tenth is not there on the eleventh; ends do not belong to a lease.
    expect(await names(fixture, { from: at('2026-12-11') })).toEqual(['soon', 'now']);
    expect(await names(fixture, { until: at('2026-12-09') })).toEqual(['over']);
    expect(await names(fixture, { from: at('2026-12-09'), until: at('2026-12-10'), limit: 1 })).toEqual([
      'early',
      'now',
      'over',
    ]);
    expect(await names(fixture, { from: at('2026-12-12'), state: 'open', userId: 'alice' })).toEqual([
      'soon',
    ]);
  });

  it('come in pages of bounded work where few of many match', async () => {
    const fixture = await newGround(dialect, { budget: '1000' });
    await fixture.create(leaseOf({ name: `rare ${dialect}` }), 'rare');
    await fixture.create(leaseOf({ name: `copied ${dialect}` }));
    await copyLeases(fixture.ledger, `copied ${dialect}`, 15);
    const first = await leasesOf(fixture, { userId: 'rare' })(undefined);
    expect(first.items).toEqual([]);
    expect(first.next).toBeDefined();
    expect(await names(fixture, { userId: 'rare' })).toEqual([`rare ${dialect}`]);
    // Those of older versions tell no resources.
    const [{ resources } = { resources: undefined }] = (await leasesOf(fixture)(undefined)).items;
    expect(resources).toEqual(new Map());
  });
});

it.each(['', 'x', cursorOf(['1', '1']), cursorOf([2n ** 63n]), cursorOf(['\0'])])(
  'lists refuse the cursor %j',
  async (after) => {
    const fixture = await newGround('sqlite');
    const projects = { projectIds: undefined, search: undefined, limit: 1, after };
    await expect(leasesOf(fixture)(after)).rejects.toThrow(CursorError);
    await expect(leasesOf(fixture, { state: 'open' })(after)).rejects.toThrow(CursorError);
    await expect(listProjects(fixture.ledger, projects, NO_WAIT)).rejects.toThrow(CursorError);
  },
);
