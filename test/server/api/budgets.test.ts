import { describe, expect, it } from 'vitest';
import { DIALECTS } from '../../support/ledgers.ts';
import { budgetFixtures, serving, USERS, wanted } from './budget-fixture.ts';

const fixture = budgetFixtures();
let count = 0;
/** A project of its own for each test: they share the ledgers. */
const newProject = () => `project-${++count}`;

describe.each(DIALECTS)('budgets over the API, on %s', (dialect) => {
  it('are changed by one of many who have seen the same version', async () => {
    const first = fixture(dialect);
    const second = await serving(first.connection);
    const project = newProject();
    const { json } = await first.ask('operator', 'POST', '/v1/budgets', { body: wanted(project) });
    const path = `/v1/budgets/${json.id}`;
    const told = await Promise.all(
      Array.from({ length: 10 }, (_, index) => {
        const { ask } = index % 2 === 0 ? first : second;
        return index % 3 === 2
          ? ask('operator', 'DELETE', `${path}?reason=race`, { etag: json.etag })
          : ask('operator', 'PATCH', path, { etag: json.etag, body: { amount: index, reason: 'race' } });
      }),
    );
    const winners = told.filter(({ status }) => status === 200 || status === 204);
    expect(winners).toHaveLength(1);
    const losers = told.map(({ status }) => status).filter((status) => status >= 300);
    expect(new Set(losers.map((status) => (status === 404 ? 412 : status)))).toEqual(new Set([412]));
    const changes = await first.ask('reader', 'GET', `${path}/changes`);
    expect(changes.json.items).toHaveLength(2);
  });

  it('stay within those of the project while others change these', async () => {
    const { ask } = fixture(dialect);
    await cleared(ask, 'climate');
    const project = await ask('operator', 'POST', '/v1/budgets', { body: wanted('climate') });
    const give = (user_id: string) =>
      ask('mona', 'POST', '/v1/budgets', { body: wanted('climate', { user_id }) });
    const [shrunk] = await Promise.all([
      ask('operator', 'PATCH', `/v1/budgets/${project.json.id}`, {
        etag: project.json.etag,
        body: { amount: '10', reason: 'less' },
      }),
      ...Array.from({ length: 6 }, (_, index) => give(`user-${index}`)),
    ]);
    expect(shrunk.status).toBe(200);
    // Whoever came after it was refused.
    const latest = await ask('reader', 'GET', '/v1/budgets/changes?project_id=climate&limit=1');
    expect(latest.json.items).toMatchObject([{ user: null, amount: '10' }]);
  });
});

describe('budgets over the API', () => {
  const dialect = 'sqlite';

  it('are set, shown, changed and removed, with who and why', async () => {
    const { ask } = fixture(dialect);
    const project = newProject();
    const set = await ask('operator', 'POST', '/v1/budgets', { body: wanted(project) });
    const path = `/v1/budgets/${set.json.id}`;
    expect([set.status, set.headers.get('Location')]).toEqual([201, path]);
    expect(set.json).toMatchObject({
      valid_until: '2028-01-01T00:00:00Z',
      left: '100',
      exact: { amount: '360000000000', taken: '0' },
      etag: set.headers.get('ETag'),
      changed: { who: 'operator token', reason: 'the grant' },
    });
    const got = await ask('reader', 'GET', path);
    expect([got.json, got.headers.get('ETag')]).toEqual([set.json, set.json.etag]);
    const change = { amount: 0.000001, valid_until: '2027-07-01', reason: ' less ' };
    const amended = await ask('operator', 'PATCH', path, { etag: set.json.etag, body: change });
    expect(amended.json).toMatchObject({ amount: '0.000001', valid_until: '2027-07-01T00:00:00Z' });
    expect(amended.headers.get('ETag')).not.toBe(set.json.etag);
    const removed = await ask('operator', 'DELETE', `${path}?reason=over`, { etag: amended.json.etag });
    expect(removed).toMatchObject({ status: 204, text: '' });
    expect((await ask('operator', 'GET', path)).status).toBe(404);
    const history = await ask('reader', 'GET', `${path}/changes`);
    expect(history.json).toMatchObject({
      items: [
        { operation: 'removed', reason: 'over', budget_id: set.json.id },
        { operation: 'set', amount: '0.000001', reason: 'less' },
        { operation: 'set', amount: '100', who: 'operator token', project: { id: project } },
      ],
      next: null,
    });
    const two = `/v1/budgets/changes?project_id=${project}&order=oldest&limit=2`;
    const oldest = await ask('reader', 'GET', two);
    expect(oldest.json.items).toMatchObject([{ reason: 'the grant' }, { reason: 'less' }]);
    const rest = await ask('reader', 'GET', `${two}&after=${oldest.json.next}`);
    expect(rest.json).toMatchObject({ items: [{ operation: 'removed' }], next: null });
  });

  it('are not replaced by the same request sent again, nor by one that overlaps', async () => {
    const { ask } = fixture(dialect);
    const project = newProject();
    const { json } = await ask('operator', 'POST', '/v1/budgets', { body: wanted(project) });
    const overlapping = [{}, { amount: '1' }, { valid_from: '2026-01-01' }, { valid_from: '2027-12-31' }];
    for (const more of overlapping) {
      const again = await ask('operator', 'POST', '/v1/budgets', { body: wanted(project, more) });
      const message = `it would overlap with budget ${json.id} of project ${project}, from 2027-01-01T00:00:00Z until 2028-01-01T00:00:00Z`;
      expect(again).toMatchObject({ status: 409, json: { field: 'valid_from', message } });
      expect(again.headers.get('Location')).toBe(`/v1/budgets/${json.id}`);
    }
    const next = { valid_from: '2028-01-01', valid_until: '2029-01-01' };
    const after = await ask('operator', 'POST', '/v1/budgets', { body: wanted(project, next) });
    const longer = { etag: json.etag, body: { valid_until: '2028-06-01', reason: 'longer' } };
    expect(await ask('operator', 'PATCH', `/v1/budgets/${json.id}`, longer)).toMatchObject({ status: 409 });
    expect((await ask('operator', 'GET', `/v1/budgets/${json.id}`)).json).toEqual(json);
    expect(after.status).toBe(201);
  });

  it('come back with their id after they were removed', async () => {
    const { ask } = fixture(dialect);
    const project = newProject();
    const { json } = await ask('operator', 'POST', '/v1/budgets', { body: wanted(project) });
    await ask('operator', 'DELETE', `/v1/budgets/${json.id}?reason=x`, { etag: json.etag });
    const again = await ask('operator', 'POST', '/v1/budgets', { body: wanted(project, { amount: '7' }) });
    expect(again).toMatchObject({ status: 201, json: { id: json.id, amount: '7' } });
    expect(again.json.etag).not.toBe(json.etag);
  });

  it('need the version that is changed, as one strong ETag', async () => {
    const { ask } = fixture(dialect);
    const { json } = await ask('operator', 'POST', '/v1/budgets', { body: wanted(newProject()) });
    const path = `/v1/budgets/${json.id}`;
    const statusOf = async (etag?: string) => {
      const sent = { etag, body: { amount: '1', reason: 'x' } };
      const removed = await ask('operator', 'DELETE', `${path}?reason=x`, { etag });
      const changed = await ask('operator', 'PATCH', path, sent);
      expect(removed.status).toBe(changed.status);
      expect(changed.json.field).toBe('If-Match');
      expect(changed.headers.get('ETag')).toBe(changed.status === 412 ? json.etag : null);
      return changed.status;
    };
    expect(await statusOf()).toBe(428);
    expect(await statusOf('*')).toBe(428);
    expect(await statusOf('"1-1"')).toBe(412);
    expect(await statusOf(`W/${json.etag}`)).toBe(412);
    expect(await statusOf(json.etag.replaceAll('"', ''))).toBe(400);
    expect(await statusOf(`${json.etag}, "1-1"`)).toBe(400);
    expect((await ask('operator', 'GET', path)).json).toEqual(json);
  });

  it('are listed in pages by project, user and time, and found by all filters', async () => {
    const { ask } = fixture(dialect);
    const project = `${newProject()}_%\\x`;
    const owners = [
      [null, '2027'],
      [null, '2028'],
      ['alice', '2027'],
      ['bob', '2027'],
    ] as const;
    for (const [user_id, year] of owners) {
      const times = { valid_from: `${year}-01-01`, valid_until: `${Number(year) + 1}-01-01` };
      await ask('operator', 'POST', '/v1/budgets', { body: wanted(project, { user_id, ...times }) });
    }
    const named = (told: { json: { items: { user: { id: string } | null; valid_from: string }[] } }) =>
      told.json.items.map(({ user, valid_from }) => [user?.id ?? null, valid_from.slice(0, 4)]);
    const all = [];
    let after = '';
    do {
      const one = `/v1/budgets?limit=1&project_id=${encodeURIComponent(project)}`;
      const page = await ask('reader', 'GET', `${one}${after}`);
      all.push(...named(page));
      after = page.json.next === null ? '' : `&after=${page.json.next}`;
    } while (after !== '');
    expect(all).toEqual(owners);
    const found = async (query: string) => named(await ask('reader', 'GET', `/v1/budgets?${query}`));
    const search = encodeURIComponent(project.slice(-4).toUpperCase());
    expect(await found(`search=${search}&limit=1000`)).toEqual(owners);
    expect(await found(`search=${search}&user_id=bob`)).toEqual([['bob', '2027']]);
    expect(await found(`search=${search}&valid_at=2028-06-01`)).toEqual([[null, '2028']]);
    expect(await found(`search=${search}&valid_at=2028-01-01T00:00:00Z`)).toEqual([[null, '2028']]);
    expect(await found(`search=${search}&valid_at=2026-12-31T23:59:59.9Z`)).toEqual([]);
    expect(await found('search=nothing-has-this')).toEqual([]);
  });

  it('of users are given by managers within those of the project, and by operators beyond', async () => {
    const { ask } = fixture(dialect);
    await cleared(ask, 'climate');
    const half = { valid_until: '2027-07-01' };
    await ask('operator', 'POST', '/v1/budgets', { body: wanted('climate', half) });
    const rest = { valid_from: '2027-07-01', valid_until: '2027-12-01', amount: '30' };
    const late = await ask('operator', 'POST', '/v1/budgets', { body: wanted('climate', rest) });
    const give = (more: object, who: 'mona' | 'operator' = 'mona') =>
      ask(who, 'POST', '/v1/budgets', {
        body: wanted('climate', { user_id: 'alice', valid_until: '2027-12-01', amount: '130', ...more }),
      });
    expect(await give({ amount: '130.000001' })).toMatchObject({
      status: 422,
      json: {
        field: 'amount',
        message: 'expected at most the budget of the project in that time: 130 node-hours',
      },
    });
    expect(await give({ valid_until: '2027-12-01T00:00:01Z' })).toMatchObject({
      status: 422,
      json: {
        field: 'valid_until',
        message:
          'expected a time within the budgets of the project, which has none from 2027-12-01T00:00:00Z until 2027-12-01T00:00:01Z',
      },
    });
    expect(await give({ valid_from: '2026-12-31T23:59:59Z' })).toMatchObject({ status: 422 });
    expect(await give({ valid_until: '2027-07-01', amount: '100.1' })).toMatchObject({ status: 422 });
    const given = await give({});
    expect(given).toMatchObject({ status: 201, json: { changed: { who: USERS.mona?.who } } });
    // The operator takes from the project: nothing changes for the user, until somebody changes it.
    await ask('operator', 'PATCH', `/v1/budgets/${late.json.id}`, {
      etag: late.json.etag,
      body: { amount: '10', reason: 'less money' },
    });
    const path = `/v1/budgets/${given.json.id}`;
    expect((await ask('mona', 'GET', path)).json).toEqual(given.json);
    const patch = (body: object, etag: string, who: 'mona' | 'max' | 'operator' = 'mona') =>
      ask(who, 'PATCH', path, { etag, body: { reason: 'adjusted', ...body } });
    expect(await patch({ amount: '111' }, given.json.etag)).toMatchObject({ status: 422 });
    const lower = await patch({ amount: '110' }, given.json.etag, 'max');
    expect(lower).toMatchObject({ status: 200, json: { amount: '110' } });
    expect(await patch({ valid_until: '2027-12-02' }, lower.json.etag)).toMatchObject({ status: 422 });
    expect(await patch({ amount: '5000' }, lower.json.etag, 'operator')).toMatchObject({ status: 200 });
    await cleared(ask, 'climate');
    expect(await give({})).toMatchObject({ status: 422 });
    expect(await give({}, 'operator')).toMatchObject({ status: 201 });
    await cleared(ask, 'climate', 'max');
  });

  it('are shown and changed by nobody who may not', async () => {
    const { ask } = fixture(dialect);
    await cleared(ask, 'climate');
    const project = newProject();
    const other = await ask('operator', 'POST', '/v1/budgets', {
      body: wanted(project, { user_id: 'alice' }),
    });
    const own = await ask('operator', 'POST', '/v1/budgets', { body: wanted('climate') });
    const physics = await ask('operator', 'POST', '/v1/budgets', {
      body: wanted('physics', { user_id: newProject() }),
    });
    const change = { etag: own.json.etag, body: { amount: '1', reason: 'x' } };
    const statusOf = async (...of: Parameters<typeof ask>) => (await ask(...of)).status;
    const path = (id: string) => `/v1/budgets/${id}`;
    for (const who of ['mona', 'meg'] as const) {
      expect(await statusOf(who, 'GET', path(other.json.id))).toBe(404);
      expect((await ask(who, 'GET', `${path(other.json.id)}/changes`)).json.items).toEqual([]);
      expect((await ask(who, 'GET', `/v1/budgets?project_id=${project}`)).json.items).toEqual([]);
      expect((await ask(who, 'GET', `/v1/budgets/changes?project_id=${project}`)).json.items).toEqual([]);
      const shown = (await ask(who, 'GET', '/v1/budgets?limit=1000')).json.items;
      const projects: string[] = shown.map((one: { project: { id: string } }) => one.project.id);
      expect(projects.filter((id) => !['climate', 'physics'].includes(id))).toEqual([]);
      expect(await statusOf(who, 'GET', path(own.json.id))).toBe(200);
    }
    expect(await statusOf('mona', 'PATCH', path(other.json.id), { ...change, etag: other.json.etag })).toBe(
      404,
    );
    // A manager here is a member there, and sets no budget of a whole project.
    expect(
      await statusOf('mona', 'PATCH', path(physics.json.id), { ...change, etag: physics.json.etag }),
    ).toBe(403);
    expect(await statusOf('mona', 'PATCH', path(own.json.id), change)).toBe(403);
    expect(await statusOf('mona', 'DELETE', `${path(own.json.id)}?reason=x`, { etag: own.json.etag })).toBe(
      403,
    );
    for (const body of [
      wanted('climate', { valid_from: '2030-01-01', valid_until: '2031-01-01' }),
      wanted('physics', { user_id: 'bob' }),
      wanted(project, { user_id: 'bob' }),
      wanted('name-of-physics@Default', { user_id: 'bob' }),
      wanted('climate', { user_id: null }),
    ]) {
      expect(await statusOf('mona', 'POST', '/v1/budgets', { body })).toBe(403);
    }
    for (const who of ['meg', 'reader'] as const) {
      expect(
        await statusOf(who, 'POST', '/v1/budgets', { body: wanted('climate', { user_id: 'bob' }) }),
      ).toBe(403);
      expect(await statusOf(who, 'PATCH', path(own.json.id), change)).toBe(403);
    }
    const named = wanted('name-of-climate@Default', { user_id: 'bob', amount: '1' });
    expect(await ask('mona', 'POST', '/v1/budgets', { body: named })).toMatchObject({
      status: 201,
      json: { project: { id: 'climate' } },
    });
    expect((await ask('operator', 'GET', path(own.json.id))).json).toEqual(own.json);
  });
});

describe('a budget over the API', () => {
  it.each([
    [{ amount: '1e3' }, 'amount', 422],
    [{ amount: null }, 'amount', 400],
    [{ amount: '9'.repeat(1e5) }, 'amount', 422],
    [{ valid_until: '2027-01-01T00:00:00Z' }, 'valid_until', 422],
    [{ valid_until: '9999-12-31T23:59:59-23:00' }, 'valid_until', 422],
    [{ project_id: 'a\0b' }, 'project_id', 422],
    [{ user_id: '\u202ealice' }, 'user_id', 422],
    [{ user_id: 'x'.repeat(256) }, 'user_id', 422],
    [{ reason: 'x'.repeat(1001) }, 'reason', 422],
    [{ reason: undefined }, 'reason', 400],
  ])('with %j is refused, and nothing is set', async (more, field, status) => {
    const { ask } = fixture('sqlite');
    const project = newProject();
    const told = await ask('operator', 'POST', '/v1/budgets', { body: wanted(project, more) });
    expect({ status: told.status, field: told.json.field }).toEqual({ status, field });
    expect(told.text.length).toBeLessThan(500);
    expect((await ask('operator', 'GET', `/v1/budgets?project_id=${project}`)).json.items).toEqual([]);
  });

  it.each([
    [{ reason: undefined }, 'reason', 'required'],
    [{ reason: 5 }, 'reason', 'expected string, got 5'],
    [{ more: 1 }, 'more', 'unknown name'],
    [{ amount: undefined }, 'amount', 'required'],
    [{ amount: true }, 'amount', 'expected string or number, got true'],
  ])('with %j is told the mistake in plain words', async (more, field, message) => {
    const { ask } = fixture('sqlite');
    const told = await ask('operator', 'POST', '/v1/budgets', { body: wanted(newProject(), more) });
    expect(told.json).toMatchObject({ field, message });
  });

  it.each(['abc', '0', '1.5', '9'.repeat(30), '%00'])('%s is not there', async (id) => {
    const { ask } = fixture('sqlite');
    expect((await ask('operator', 'GET', `/v1/budgets/${id}`)).status).toBe(404);
  });
});

type Ask = Awaited<ReturnType<typeof serving>>['ask'];

/** Removes all budgets of a project: those of users as somebody else, too. */
async function cleared(ask: Ask, project: string, who: 'operator' | 'max' = 'operator'): Promise<void> {
  const { json } = await ask('operator', 'GET', `/v1/budgets?project_id=${project}&limit=1000`);
  for (const { id, etag, user } of json.items) {
    const by = user === null ? 'operator' : who;
    const removed = await ask(by, 'DELETE', `/v1/budgets/${id}?reason=clear`, { etag });
    expect(removed.status).toBe(204);
  }
}
