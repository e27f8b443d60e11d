import { describe, expect, it } from 'vitest';
import { DIALECTS } from '../../support/ledgers.ts';
import { type BudgetFixture, budgetFixtures, serving, type Token, wanted } from './budget-fixture.ts';

const fixture = budgetFixtures();
const PATH = '/v1/budget-requests';
let count = 0;

/** What is asked for; a reason of its own for each, so that none is taken for another. */
function wish(project_id = 'climate', more: object = {}) {
  count += 1;
  return { project_id, amount: '50', valid_until: '2027-06-01T00:00:00Z', reason: `run ${count}`, ...more };
}

type Ask = BudgetFixture['ask'];

async function asked(ask: Ask, who: Token = 'meg', body: object = wish()) {
  const { status, json } = await ask(who, 'POST', PATH, { body });
  expect({ status, json }).toMatchObject({ status: 201 });
  return { ...json, path: `${PATH}/${json.id}` };
}

async function step(ask: Ask, who: Token, path: string, kind: string, body: object = { reason: 'fine' }) {
  return ask(who, 'POST', `${path}/${kind}`, { body });
}

/** Budgets of the project for the year 2027, and none else. */
async function withBudgets(ask: Ask, ...more: Readonly<Record<string, unknown>>[]) {
  const { json } = await ask('operator', 'GET', '/v1/budgets?project_id=climate');
  for (const { id, etag } of json.items) {
    await ask('operator', 'DELETE', `/v1/budgets/${id}?reason=over`, { etag });
  }
  for (const one of more) {
    expect((await ask('operator', 'POST', '/v1/budgets', { body: wanted('climate', one) })).status).toBe(201);
  }
}

async function amounts(ask: Ask): Promise<string[]> {
  const { json } = await ask('reader', 'GET', '/v1/budgets?project_id=climate');
  return json.items.map(({ amount }: { amount: string }) => amount);
}

describe.each(DIALECTS)('requests for more budget over the API, on %s', (dialect) => {
  it('are asked for, endorsed and granted, and the history of the budget says so', async () => {
    const { ask } = fixture(dialect);
    await withBudgets(ask, {});
    const body = wish();
    const { path, ...request } = await asked(ask, 'meg', body);
    expect(request).toMatchObject({
      project: { id: 'climate' },
      user: null,
      amount: '50',
      reason: body.reason,
      state: 'requested',
      asked: { who: expect.stringContaining('meg') },
      endorsed: null,
      granted: null,
    });
    const endorsed = await step(ask, 'mona', path, 'endorse');
    expect(endorsed.json).toMatchObject({
      state: 'endorsed',
      endorsed: { who: expect.stringContaining('mona'), reason: 'fine' },
    });
    const granted = await step(ask, 'operator', path, 'grant');
    expect(granted.json).toMatchObject({
      state: 'granted',
      settled: { who: 'operator token', reason: 'fine' },
      granted: { amount: '50', valid_until: '2027-06-01T00:00:00Z' },
    });
    expect(await amounts(ask)).toEqual(['150']);
    expect((await ask('meg', 'GET', path)).json).toEqual(granted.json);
    const history = await ask('meg', 'GET', `/v1/budgets/${granted.json.granted.budget_id}/changes?limit=1`);
    expect(history.json.items).toMatchObject([
      { who: 'operator token', reason: expect.stringMatching(/^request \d+ by .*meg.*: fine$/) },
    ]);
  });

  it('are granted once by many at once, at two replicas', async () => {
    const first = fixture(dialect);
    const second = await serving(first.connection);
    await withBudgets(first.ask, {});
    const { path } = await asked(first.ask);
    const told = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        index % 4 === 3
          ? step((index % 2 === 0 ? first : second).ask, 'mona', path, 'refuse')
          : step((index % 2 === 0 ? first : second).ask, 'operator', path, 'grant'),
      ),
    );
    const { state } = (await first.ask('reader', 'GET', path)).json;
    expect(['granted', 'refused']).toContain(state);
    expect(await amounts(first.ask)).toEqual([state === 'granted' ? '150' : '100']);
    for (const { status, json } of told) {
      expect(status === 200 ? json.state : status).toBe(status === 200 ? state : 409);
    }
  });
});

describe('requests for more budget over the API', () => {
  const dialect = 'sqlite';

  it('may be taken each step by whom the table of rights says', async () => {
    const { ask } = fixture(dialect);
    await withBudgets(ask, {});
    // Max manages the project too; Mona is only a member of physics, and Meg has asked.
    const table: Readonly<Record<string, readonly Token[]>> = {
      endorse: ['operator', 'mona', 'max'],
      refuse: ['operator', 'mona', 'max'],
      grant: ['operator'],
      withdraw: ['meg'],
    };
    for (const [kind, allowed] of Object.entries(table)) {
      for (const who of ['operator', 'reader', 'mona', 'max', 'meg'] as const) {
        const { path } = await asked(ask);
        const { status } = await step(ask, who, path, kind);
        expect({ kind, who, status }).toEqual({ kind, who, status: allowed.includes(who) ? 200 : 403 });
        await step(ask, 'operator', path, 'refuse');
      }
    }
    const asking = { operator: 201, reader: 403, mona: 201, max: 201, meg: 201 } as const;
    for (const [who, status] of Object.entries(asking)) {
      expect([who, (await ask(who as Token, 'POST', PATH, { body: wish() })).status]).toEqual([who, status]);
    }
    const { items } = (await ask('reader', 'GET', `${PATH}?state=open`)).json;
    for (const { id } of items) {
      await step(ask, 'operator', `${PATH}/${id}`, 'refuse');
    }
  });

  it('of another project are as if they did not exist', async () => {
    const { ask } = fixture(dialect);
    const { path, id } = await asked(ask, 'operator', wish('secret'));
    const none = `${PATH}/999999`;
    for (const who of ['meg', 'mona', 'max'] as const) {
      for (const kind of ['', 'endorse', 'grant', 'refuse', 'withdraw']) {
        const ofKind = (at: string) => (kind === '' ? ask(who, 'GET', at) : step(ask, who, at, kind));
        const there = await ofKind(path);
        const absent = await ofKind(none);
        expect([there.status, there.text]).toEqual([absent.status, absent.text]);
        expect([403, 404]).toContain(there.status);
      }
      for (const project of ['secret', 'no-such-project']) {
        const refused = await ask(who, 'POST', PATH, { body: wish(project) });
        expect([refused.status, refused.json.message]).toEqual([
          403,
          'expected a caller with more rights: see "Who may do what" in the documentation',
        ]);
        expect((await ask(who, 'GET', `${PATH}?project_id=${project}`)).json).toEqual({
          items: [],
          next: null,
        });
      }
      expect((await ask(who, 'GET', `${PATH}?limit=1000`)).text).not.toContain('secret');
    }
    // Mona manages climate, and is a member of physics: she sees its requests, and decides none.
    const physics = await asked(ask, 'operator', wish('physics'));
    expect((await ask('mona', 'GET', physics.path)).status).toBe(200);
    expect((await step(ask, 'mona', physics.path, 'endorse')).status).toBe(403);
    expect((await ask('reader', 'GET', `${PATH}?project_id=secret`)).json.items).toMatchObject([{ id }]);
  });

  it('for a user are made by that user or a manager, and granted by a manager within the budget of the project', async () => {
    const { ask } = fixture(dialect);
    const ofUser = { amount: '80' };
    await withBudgets(ask, {}, { ...ofUser, user_id: 'id-of-meg' }, { ...ofUser, user_id: 'id-of-max' });
    const forOther = wish('climate', { user_id: 'id-of-max' });
    expect((await ask('meg', 'POST', PATH, { body: forOther })).status).toBe(403);
    const without = await ask('mona', 'POST', PATH, { body: wish('climate', { user_id: 'zoe' }) });
    expect(without).toMatchObject({ status: 422, json: { field: 'user_id' } });
    const forMax = await asked(ask, 'mona', wish('climate', { user_id: 'id-of-max', amount: '30' }));
    expect(await step(ask, 'max', forMax.path, 'grant')).toMatchObject({
      status: 422,
      json: { field: 'amount', message: expect.stringContaining('100 node-hours') },
    });
    const { path, user } = await asked(ask, 'meg', wish('climate', { user_id: 'meg@Default' }));
    expect(user.id).toBe('id-of-meg');
    const own = await ask('meg', 'GET', `${PATH}?user_id=meg%40Default&state=open`);
    expect(own.json.items).toMatchObject([{ user: { id: 'id-of-meg' } }]);
    const grant = { amount: 20, reason: 'what there is' };
    expect(await step(ask, 'mona', path, 'grant', grant)).toMatchObject({
      status: 200,
      json: {
        state: 'changed',
        endorsed: { who: expect.stringContaining('mona') },
        granted: { amount: '20' },
      },
    });
    expect(await amounts(ask)).toEqual(['100', '80', '100']);
  });

  it('say what is wrong with what was sent', async () => {
    const { ask } = fixture(dialect);
    await withBudgets(ask, {});
    for (const [more, status, field] of [
      [{ amount: '0' }, 422, 'amount'],
      [{ amount: '1e3' }, 422, 'amount'],
      [{ valid_until: '2020-01-01' }, 422, 'valid_until'],
      [{ reason: ' ' }, 422, 'reason'],
      [{ user_id: '' }, 403, undefined],
      [{ user_id: { __proto__: 1 } }, 400, 'user_id'],
      [{ hours: 1 }, 400, 'hours'],
    ] as const) {
      const answer = await ask('meg', 'POST', PATH, { body: wish('climate', more) });
      expect([more, answer.status, answer.json.field]).toEqual([more, status, field]);
    }
    expect((await ask('meg', 'GET', `${PATH}?state=lost`)).json).toMatchObject({
      field: 'state',
      message: expect.stringMatching(/^expected requested or .* or open, got "lost"$/),
    });
    const { path } = await asked(ask);
    for (const [kind, body, field] of [
      ['grant', { reason: '' }, 'reason'],
      ['grant', { reason: 'x', amount: '0' }, 'amount'],
      ['grant', { reason: 'x', valid_until: '2020-01-01' }, 'valid_until'],
    ] as const) {
      expect(await step(ask, 'operator', path, kind, body)).toMatchObject({ status: 422, json: { field } });
    }
    for (const id of ['0', 'x', '1'.repeat(30), '%00', '..%2fbudgets']) {
      expect((await ask('operator', 'GET', `${PATH}/${id}`)).status).toBe(404);
    }
    expect((await step(ask, 'meg', path, 'withdraw', {})).json).toMatchObject({ state: 'withdrawn' });
    expect(await step(ask, 'operator', path, 'grant')).toMatchObject({
      status: 409,
      json: { message: expect.stringMatching(/^the request was withdrawn already, by .*meg/) },
    });
    expect(await amounts(ask)).toEqual(['100']);
  });

  it('keep hostile texts as they are', async () => {
    const { ask } = fixture(dialect);
    await withBudgets(ask, {});
    const reason = `'; DROP TABLE budgets; -- <script>\u202e${'💥'.repeat(400)}`;
    const { path, id } = await asked(ask, 'meg', wish('climate', { reason }));
    expect((await ask('mona', 'GET', path)).json.reason).toBe(reason);
    const again = await asked(ask, 'meg', wish('climate', { reason }));
    expect(again.id).toBe(id);
    await step(ask, 'operator', path, 'refuse', { reason });
    expect((await ask('meg', 'GET', `${PATH}?state=refused&limit=1`)).json.items).toMatchObject([
      { id, settled: { reason } },
    ]);
  });
});
