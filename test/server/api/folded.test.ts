/** Leases that are folded into totals: no list of the API can be taken for complete, and no usage for all of it. */
import { beforeAll, describe, expect, it } from 'vitest';
import { fold, instant, restore } from '../../ledger/folding/folded-ledgers.ts';
import { recordLease } from '../../ledger/recorded-leases.ts';
import { giveBudget, ledgerAt } from '../../support/ledgers.ts';
import { budgetFixtures } from './budget-fixture.ts';

const fixtures = budgetFixtures();
const BEFORE = '2017-01-01';
const FOLDED = { leases: 2, before: '2017-01-01T00:00:00Z' };

describe('the API beside folded leases', () => {
  const get = async (path: string) => {
    const { status, json } = await fixtures('sqlite').ask('operator', 'GET', path);
    expect({ path, status }).toEqual({ path, status: 200 });
    return json;
  };
  const usage = (from: string, until: string) =>
    get(`/v1/projects/climate/usage?from=${from}&until=${until}`);

  beforeAll(async () => {
    let now = '2016-01-01T00:00:00Z';
    const ledger = await ledgerAt(fixtures('sqlite').connection, { now: () => now });
    await giveBudget(ledger, { from: '2016-01-01', until: '2018-01-01', amount: '1000' });
    for (const [projectId, month] of [
      ['climate', 11],
      ['climate', 12],
      ['ocean', 11],
    ] as const) {
      const day = `2016-${month}-01`;
      await recordLease(ledger, { name: day, projectId, start: day, end: `2016-${month}-02` });
    }
    now = '2017-02-01T00:00:00Z';
    for (const projectId of ['climate', 'ocean']) {
      await recordLease(ledger, { name: 'now', projectId, start: '2017-03-01', end: '2017-03-02' });
    }
    await fold(ledger, BEFORE);
    await ledger.close();
  });

  it('tells of leases and entries how many are missing, and since when', async () => {
    const leases = await get('/v1/projects/climate/leases');
    expect(leases).toMatchObject({ items: [{ name: 'now' }], next: null, folded: FOLDED });
    expect((await get('/v1/projects/ocean/leases')).folded).toEqual({ ...FOLDED, leases: 1 });
    expect((await get('/v1/projects/desert/leases')).folded).toBeNull();
    expect((await get('/v1/ledger/entries')).folded).toEqual({ ...FOLDED, leases: 3 });
    expect((await get('/v1/ledger/entries?project_id=climate')).folded).toEqual(FOLDED);
    expect((await get('/v1/ledger/entries?project_id=desert')).folded).toBeNull();
  });

  it('begins usage at the date, says so, and takes nothing for used that is folded', async () => {
    expect(await usage('2016-06-01', '2017-06-01')).toMatchObject({
      from: '2017-01-01T00:00:00Z',
      is_partial: true,
      folded: FOLDED,
      groups: [{ amount: '24', leases: 1 }],
    });
    expect(await usage('2017-01-01', '2017-06-01')).toMatchObject({ is_partial: false, folded: FOLDED });
    // All of it is folded: the usage of no time is told.
    expect(await usage('2016-06-01', '2016-12-31')).toMatchObject({
      from: '2016-12-31T00:00:00Z',
      until: '2016-12-31T00:00:00Z',
      is_partial: true,
      groups: [],
    });
  });

  it('counts what is folded to what is taken of the budget', async () => {
    const { items } = await get('/v1/budgets?project_id=climate');
    expect(items).toMatchObject([{ taken: '72', left: '928' }]);
  });
});

it('tells of everything again when all of it is restored', async () => {
  const { connection, ask } = fixtures('sqlite');
  const ledger = await ledgerAt(connection, { now: () => '2018-06-01T00:00:00Z' });
  await recordLease(ledger, { name: 'old', projectId: 'desert', start: '2018-01-01', end: '2018-01-02' });
  await recordLease(ledger, { name: 'new', projectId: 'desert', start: '2018-07-01', end: '2018-07-02' });
  const kept = await fold(ledger, '2018-02-01');
  const folded = async () => (await ask('operator', 'GET', '/v1/projects/desert/leases')).json.folded;
  expect(await folded()).toEqual({ leases: 1, before: '2018-02-01T00:00:00Z' });
  await restore(ledger, '2018-02-01', kept);
  expect(await folded()).toBeNull();
  expect(instant('2018-02-01')).toBeGreaterThan(0n);
  await ledger.close();
});
