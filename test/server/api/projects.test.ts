/** Projects, their leases and usage, and the entries of the ledger over the API. */
import { beforeAll, describe, expect, it } from 'vitest';
import { giveBudget, ledgerAt } from '../../support/ledgers.ts';
import { type BudgetFixture, budgetFixtures, serving, type Token } from './budget-fixture.ts';

const fixtures = budgetFixtures();

/** A day of the year 2090: what is recorded then is still to come. */
const on = (day: number, hour = 0) =>
  `2090-01-${String(day).padStart(2, '0')} ${String(hour).padStart(2, '0')}:00`;

async function lease(
  { generation }: BudgetFixture,
  {
    name,
    project = 'climate',
    user = 'id-of-meg',
    from = 1,
    until = 2,
    hosts = 1,
  }: Readonly<Record<string, unknown>> = {},
) {
  const { allowed, message } = await generation.enforcement.checkCreate({
    context: { project_id: String(project), user_id: String(user) },
    lease: {
      name: String(name),
      start_date: typeof from === 'string' ? from : on(Number(from)),
      end_date: typeof until === 'string' ? until : on(Number(until)),
      reservations: [{ resource_type: 'physical:host', min: 1, max: Number(hosts) }],
    },
  });
  expect({ allowed, message }).toMatchObject({ allowed: true });
}

/** `described-answers.proof.test.ts` holds the answers against the description. */
async function get(fixture: BudgetFixture, path: string, who: Token = 'operator') {
  const told = await fixture.ask(who, 'GET', path);
  expect(told.headers.get('Cache-Control')).toBe('no-store');
  return told;
}

// One ledger is filled from test to test.
describe('the routes of projects', { shuffle: false }, () => {
  const fixture = () => fixtures('sqlite');
  const items = async (path: string, who?: Token) => (await get(fixture(), path, who)).json.items;

  beforeAll(async () => {
    const ledger = await ledgerAt(fixture().connection);
    for (const projectId of ['climate', 'physics', 'ocean', 'desert']) {
      await giveBudget(ledger, { projectId, from: '2020-01-01', until: '2100-01-01', amount: '100000' });
    }
    await giveBudget(ledger, {
      userId: 'id-of-meg',
      from: '2020-01-01',
      until: '2100-01-01',
      amount: '500',
    });
    await ledger.close();
    await lease(fixture(), { name: 'a', hosts: 2 });
    await lease(fixture(), { name: 'b', user: 'id-of-max', from: 3, until: 5 });
    await lease(fixture(), { name: '<b>\u202e', from: 4, until: 6 });
    await lease(fixture(), { name: 'wet', project: 'ocean' });
  });

  it('lists projects with their budgets, to each caller their own', async () => {
    const [climate, desert] = await items('/v1/projects?limit=2');
    expect(climate).toEqual({
      project: { id: 'climate', name: null, domain: null },
      open_leases: 3,
      budget: { amount: '100000', taken: '144', left: '99856', until: '2100-01-01T00:00:00Z' },
    });
    expect(desert.project.id).toBe('desert');
    const ids = async (who: Token, query = '') =>
      (await items(`/v1/projects${query}`, who)).map(
        ({ project }: { project: { id: string } }) => project.id,
      );
    expect(await ids('reader')).toEqual(['climate', 'desert', 'ocean', 'physics']);
    expect(await ids('meg')).toEqual(['climate']);
    expect(await ids('mona')).toEqual(['climate', 'physics']);
    expect(await ids('meg', '?search=ocean')).toEqual([]);
    expect(await ids('reader', '?search=CEA')).toEqual(['ocean']);
  });

  it('lists leases in pages that stay as they are while leases are added', async () => {
    const first = (await get(fixture(), '/v1/projects/ocean/leases?limit=1')).json;
    expect(first).toMatchObject({
      items: [
        {
          name: 'wet',
          user: { id: 'id-of-meg' },
          end: '2090-01-02T00:00:00Z',
          state: 'pending',
          cost: '24',
          resources: { 'physical:host': 1 },
        },
      ],
      next: null,
      folded: null,
    });
    const page = (await get(fixture(), '/v1/projects/climate/leases?limit=2', 'meg')).json;
    await lease(fixture(), { name: 'later' });
    const rest = (await get(fixture(), `/v1/projects/climate/leases?limit=2&after=${page.next}`, 'meg')).json;
    const names = [...page.items, ...rest.items].map(({ name }: { name: string }) => name);
    expect(names).toEqual(['<b>\u202e', 'b', 'a']);
    expect(rest.next).toBeNull();
    const names_ = async (query: string) =>
      (await items(`/v1/projects/climate/leases?${query}`)).map(({ name }: { name: string }) => name);
    expect(await names_('user_id=id-of-max')).toEqual(['b']);
    expect(await names_('state=active')).toEqual([]);
    expect(await names_('from=2090-01-05&until=2090-01-06')).toEqual(['<b>\u202e']);
    // The fifth at one o'clock there is the fourth at 23:00 in UTC.
    expect(await names_('from=2090-01-05T01:00:00%2B02:00')).toEqual(['<b>\u202e', 'b']);
  });

  it('tells usage by user, type and day, in the time that is asked for', async () => {
    const usage = async (query: string) => (await get(fixture(), `/v1/projects/physics/usage?${query}`)).json;
    await lease(fixture(), { name: 'u', project: 'physics', from: 10, until: 12, hosts: 3 });
    expect(await usage('from=2090-01-01&until=2090-02-01')).toMatchObject({
      from: '2090-01-01T00:00:00Z',
      until: '2090-02-01T00:00:00Z',
      is_partial: false,
      groups: [{ user: { id: 'id-of-meg' }, amount: '144', resource_hours: '144', leases: 1 }],
      others: null,
    });
    expect((await usage('from=2090-01-01&until=2090-02-01&group_by=resource_type')).groups).toEqual([
      { resource_type: 'physical:host', amount: null, resource_hours: '144', leases: 1 },
    ]);
    const days = await usage('from=2090-01-11T00:00:01-01:00&until=2090-02-01&group_by=day');
    expect(days.from).toBe('2090-01-11T01:00:01Z');
    expect(days.groups).toEqual([
      { day: '2090-01-11', amount: '68.9992', resource_hours: '68.9992', leases: 1 },
    ]);
    expect((await usage('')).groups).toEqual([]);
  });

  it('shows a project with budgets, usage, open leases and limits', async () => {
    const soon = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();
    await lease(fixture(), { name: 'soon', project: 'desert', from: soon(1), until: soon(2) });
    const { json } = await get(fixture(), '/v1/projects/desert');
    const aDay = expect.stringMatching(/^24/);
    expect(json).toMatchObject({
      project: { id: 'desert' },
      exempt: false,
      budgets: [{ user: null, amount: '100000', taken: aDay, planned: aDay }],
      usage: {
        by_user: { groups: [{ user: { id: 'id-of-meg' }, amount: aDay }] },
        by_resource_type: { groups: [{ resource_type: 'physical:host', resource_hours: aDay }] },
      },
      open_leases: [{ name: 'soon', cost: aDay }],
      has_more_open_leases: false,
    });
    const { json: climate } = await get(fixture(), '/v1/projects/climate', 'meg');
    expect(climate.budgets).toMatchObject([{ user: null }, { user: { id: 'id-of-meg' }, planned: '120' }]);
    expect((await get(fixture(), '/v1/projects/unknown%2F%C3%84')).json).toMatchObject({
      project: { id: 'unknown/Ä' },
      budgets: [],
      open_leases: [],
      usage: { by_user: { groups: [] } },
    });
  });

  it('lists entries of the ledger to those who may see all of it', async () => {
    const page = (await get(fixture(), '/v1/ledger/entries?project_id=ocean', 'reader')).json;
    expect(page).toMatchObject({
      items: [
        {
          project: { id: 'ocean' },
          operation: 'create',
          account: expect.stringMatching(/^usage_budget/),
          unit_hours: '24',
        },
      ],
      next: null,
    });
    const [entry] = page.items;
    expect(entry.delta).toBe(String(24n * 3_600_000_000n));
    const all = await items('/v1/ledger/entries?limit=1000');
    const first = (await get(fixture(), '/v1/ledger/entries?limit=2')).json;
    await lease(fixture(), { name: 'more', project: 'physics', from: 20, until: 21 });
    const second = (await get(fixture(), `/v1/ledger/entries?limit=1000&after=${first.next}`)).json;
    expect([...first.items, ...second.items]).toEqual(all);
    const count = async (query: string) => (await items(`/v1/ledger/entries?limit=1000&${query}`)).length;
    expect(await count(`account=${entry.account}`)).toBe(1);
    expect(await count('operation=end')).toBe(0);
    expect(await count('lease_id=unknown')).toBe(0);
    expect(await count('until=2026-01-01')).toBe(0);
    expect(await count('from=2026-01-01&operation=create&project_id=ocean')).toBe(1);
    // The name that it had in version 1.0.
    expect(await count('since=2026-01-01&operation=create&project_id=ocean')).toBe(1);
    expect(await count('from=2099-01-01')).toBe(0);
    expect(await count('since=2099-01-01')).toBe(0);
    expect(await count(`request_id=${encodeURIComponent("' or 1=1 --")}`)).toBe(0);
    for (const who of ['meg', 'mona'] as const) {
      expect((await fixture().ask(who, 'GET', '/v1/ledger/entries')).status).toBe(403);
    }
  });

  it.each(['', '/leases', '/usage'])('shows members nothing of another project at %s', async (part) => {
    for (const project of ['ocean', 'nobody', '__proto__', 'climate%00', 'x'.repeat(10_000)]) {
      expect((await fixture().ask('meg', 'GET', `/v1/projects/${project}${part}`)).status).toBe(403);
    }
  });

  it('says so where no filter keeps a ledger', async () => {
    const without = await serving(fixture().connection, {
      enforcement: { enabled_filters: ['MaxLeaseDurationFilter'], max_lease_duration: 60 },
    });
    for (const path of [
      '/v1/budgets',
      '/v1/projects',
      '/v1/projects/climate',
      '/v1/projects/climate/leases',
      '/v1/projects/climate/usage',
      '/v1/ledger/entries',
    ]) {
      expect(await get(without, path)).toMatchObject({
        status: 404,
        json: { message: 'this service keeps no ledger: no filter or policy that needs one is enabled' },
      });
    }
  });
});

describe('the API of projects', () => {
  it.each([
    ['/v1/projects?after=__proto__', 'after'],
    [`/v1/projects?after=${Buffer.from('["=\\u0000"]').toString('base64url')}`, 'after'],
    ['/v1/projects?search=%00', 'search'],
    ['/v1/projects?__proto__=x', '__proto__'],
    ['/v1/projects/climate%00', 'project_id'],
    ['/v1/projects/climate/leases?state=done', 'state'],
    ['/v1/projects/climate/leases?from=2090-01-05T01:00:00+02:00', 'from'],
    ['/v1/projects/climate/usage?group_by=project', 'group_by'],
    ['/v1/projects/climate/usage?from=2090-01-01', 'from'],
    ['/v1/projects/climate/usage?from=2026-01-01&until=2027-06-01', 'from'],
    ['/v1/projects/climate/usage?from=2026-01-01T00:00:00.1Z&until=2026-01-01T00:00:00.2Z', 'from'],
    ['/v1/ledger/entries?request_id=%ED%A0%80%00', 'request_id'],
    ['/v1/ledger/entries?from=2026-01-02&since=2026-01-02', 'since'],
  ])('refuses %s', async (path, field) => {
    const told = await get(fixtures('sqlite'), path);
    expect({ status: told.status, field: told.json.field }).toEqual({ status: 400, field });
    expect(told.text.length).toBeLessThan(500);
  });
});
