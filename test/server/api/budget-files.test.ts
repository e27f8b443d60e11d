import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { DIALECTS } from '../../support/ledgers.ts';
import { type BudgetFixture, budgetFixtures, serving, type Told, wanted } from './budget-fixture.ts';

const fixture = budgetFixtures();
const HEAD = 'project_id,user_id,valid_from,valid_until,amount';
let count = 0;
const newProject = () => `file-${++count}`;

function file({ ask }: BudgetFixture, lines: readonly string[], query = 'reason=the+grant'): Promise<Told> {
  const text = { type: 'text/csv; charset=utf-8', text: [HEAD, ...lines].join('\r\n') };
  return ask('operator', 'POST', `/v1/budgets/import?${query}`, { text });
}

describe.each(DIALECTS)('budgets in files, on %s', (dialect) => {
  it('are set by one of two that come at once, or by both one after the other', async () => {
    const first = fixture(dialect);
    const second = await serving(first.connection);
    const projects = Array.from({ length: 40 }, newProject);
    const lines = (amount: string) => projects.map((one) => `${one},,2027-01-01,2028-01-01,${amount}`);
    const told = await Promise.all([
      file(first, lines('1')),
      file(second, lines('2').reverse()),
      file(first, lines('3')),
      file(second, lines('4').reverse()),
    ]);
    expect(told.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const shown = await first.ask('reader', 'GET', '/v1/budgets?limit=1000');
    const amounts = shown.json.items
      .filter(({ project }: { project: { id: string } }) => projects.includes(project.id))
      .map(({ amount }: { amount: string }) => amount);
    expect(amounts).toHaveLength(40);
    expect(new Set(amounts).size).toBe(1);
  });
});

describe('budgets in files', () => {
  const dialect = 'sqlite';

  it('are set, changed and left as they are, after a dry run that says so', async () => {
    const on = fixture(dialect);
    const a = newProject();
    const b = newProject();
    const c = newProject();
    const kept = await on.ask('operator', 'POST', '/v1/budgets', { body: wanted(a) });
    const other = await on.ask('operator', 'POST', '/v1/budgets', { body: wanted(b) });
    const removed = await on.ask('operator', 'POST', '/v1/budgets', { body: wanted(c) });
    await on.ask('operator', 'DELETE', `/v1/budgets/${removed.json.id}?reason=x`, {
      etag: removed.json.etag,
    });
    const lines = [
      `${a},,2027-01-01,2028-01-01,100`,
      `${b},,2027-01-01,2027-06-01,7.000001`,
      `${c},,2027-01-01,2028-01-01,5`,
      `${a},alice,2027-01-01,2028-01-01,1`,
      `${b},,2027-06-01,2028-01-01,2`,
    ];
    const tried = await file(on, lines, 'dry_run=true');
    expect(tried).toMatchObject({
      status: 200,
      json: { dry_run: true, set: 3, changed: 1, unchanged: 1, mistakes: [] },
    });
    expect(tried.json.lines[1]).toMatchObject({
      line: 3,
      outcome: 'changed',
      amount: '7.000001',
      before: { valid_until: '2028-01-01T00:00:00Z', amount: '100' },
    });
    expect((await on.ask('reader', 'GET', `/v1/budgets/${other.json.id}`)).json).toEqual(other.json);
    const done = await file(on, lines);
    expect(done.json).toEqual({ ...tried.json, dry_run: false });
    expect((await on.ask('reader', 'GET', `/v1/budgets/${kept.json.id}`)).json).toEqual(kept.json);
    expect((await on.ask('reader', 'GET', `/v1/budgets/${other.json.id}`)).json).toMatchObject({
      amount: '7.000001',
      changed: { who: 'operator token', reason: 'the grant' },
    });
    const back = await on.ask('reader', 'GET', `/v1/budgets/${removed.json.id}`);
    expect(back.json).toMatchObject({ id: removed.json.id, amount: '5' });
    expect((await file(on, lines)).json).toMatchObject({ set: 0, changed: 0, unchanged: 5 });
    const stale = { etag: other.json.etag, body: { amount: '1', reason: 'x' } };
    expect((await on.ask('operator', 'PATCH', `/v1/budgets/${other.json.id}`, stale)).status).toBe(412);
  });

  it('are all refused if one of them is wrong, with every mistake', async () => {
    const on = fixture(dialect);
    const a = newProject();
    const b = newProject();
    const there = await on.ask('operator', 'POST', '/v1/budgets', { body: wanted(b) });
    const lines = [
      `${a},,2027-01-01,2028-01-01,100`,
      `${a},,2027-01-01,2028-01-01,200`,
      `${a},,2027-12-31,2029-01-01,1`,
      `${b},,2026-01-01,2027-01-02,1`,
      `${b},,2030-01-01,2031-01-01,-1`,
    ];
    const mistakes = [
      { line: 3, field: 'valid_from', message: 'this budget is in line 2 already' },
      {
        line: 4,
        field: 'valid_from',
        message: 'it would overlap with line 2, from 2027-01-01T00:00:00Z until 2028-01-01T00:00:00Z',
      },
      {
        line: 5,
        field: 'valid_from',
        message: `it would overlap with budget ${there.json.id} of project ${b}, from 2027-01-01T00:00:00Z until 2028-01-01T00:00:00Z`,
      },
      { line: 6, field: 'amount', message: expect.stringContaining('got "-1"') },
    ];
    expect((await file(on, lines, 'dry_run=true')).json).toMatchObject({ dry_run: true, mistakes });
    expect(await file(on, lines)).toMatchObject({
      status: 422,
      json: { message: 'the file has 4 mistakes: nothing was set', mistakes },
    });
    // Only what the ledger has against it.
    expect((await file(on, lines.slice(0, 3))).json.mistakes).toEqual(mistakes.slice(0, 2));
    expect((await on.ask('reader', 'GET', `/v1/budgets?project_id=${a}`)).json.items).toEqual([]);
    expect((await on.ask('reader', 'GET', `/v1/budgets?project_id=${b}`)).json.items).toEqual([there.json]);
  });

  it('come out as they went in', async () => {
    const on = fixture(dialect);
    const projects = Array.from({ length: 5 }, (_, index) => `${newProject()};"=${index}' é`);
    for (const [index, project] of ['=1+1', "'=x", ...projects].entries()) {
      const body = wanted(project, { amount: `${index}.000001`, user_id: index % 2 === 0 ? null : '-a' });
      expect((await on.ask('operator', 'POST', '/v1/budgets', { body })).status).toBe(201);
    }
    for (const format of ['csv', 'json']) {
      const exported = await on.ask('operator', 'GET', `/v1/budgets/export?format=${format}`);
      expect(exported.headers.get('Content-Disposition')).toBe(`attachment; filename="budgets.${format}"`);
      const type = exported.headers.get('Content-Type') ?? '';
      expect(type).toMatch(format === 'csv' ? /^text\/csv; charset=utf-8$/ : /^application\/json/);
      const again = await on.ask('operator', 'POST', '/v1/budgets/import?reason=again', {
        text: { type, text: exported.text },
      });
      const { unchanged } = again.json;
      expect(again.json).toMatchObject({ set: 0, changed: 0, mistakes: [] });
      expect(unchanged).toBeGreaterThanOrEqual(7);
    }
    const csv = (await on.ask('reader', 'GET', `/v1/budgets/export?project_id=${encodeURIComponent('=1+1')}`))
      .text;
    expect(csv).toBe(
      `${HEAD},taken,left\r\n'=1+1,,2027-01-01T00:00:00Z,2028-01-01T00:00:00Z,0.000001,0,0\r\n`,
    );
  });
});

describe('a file of budgets', () => {
  it.each(['mona', 'meg', 'reader'] as const)(
    'is not taken from %s, and shows them only theirs',
    async (who) => {
      const { ask } = fixture('sqlite');
      const project = newProject();
      await ask('operator', 'POST', '/v1/budgets', { body: wanted(project) });
      const body = { budgets: [] };
      expect((await ask(who, 'POST', '/v1/budgets/import?reason=x', { body })).status).toBe(403);
      const { text } = await ask(who, 'GET', '/v1/budgets/export');
      expect(text.includes(project)).toBe(who === 'reader');
      expect((await ask(who, 'GET', `/v1/budgets/export?project_id=${project}`)).text.includes(project)).toBe(
        who === 'reader',
      );
    },
  );

  it.each([
    [{ body: [] }, 400, 'expected object'],
    [{ body: { budgets: Array(10_001).fill(0) } }, 422, 'mistake'],
    [{ body: { budgets: [{ project_id: 'a', user_id: 5 }] } }, 422, 'mistake'],
    [{ text: { type: 'text/csv', text: new Uint8Array([0xff, 0xfe]) } }, 400, 'UTF-8'],
    [{ text: { type: 'text/csv; charset=latin1', text: HEAD } }, 415, 'UTF-8'],
    [{ text: { type: 'text/csv', text: 'x'.repeat(8_388_609) } }, 413, '8388608'],
  ])('%#: that is none is refused', async (sent, status, message) => {
    const { ask } = fixture('sqlite');
    const told = await ask('operator', 'POST', '/v1/budgets/import?reason=x', sent);
    expect({ status: told.status, message: told.json.message }).toMatchObject({
      status,
      message: expect.stringContaining(message),
    });
  });

  it('needs a reason, unless it is a dry run', async () => {
    const on = fixture('sqlite');
    expect(await file(on, [], '')).toMatchObject({ status: 422, json: { field: 'reason' } });
    expect(await file(on, [], 'dry_run=true')).toMatchObject({ status: 200 });
  });

  it('of the longest kind lets others have their turn', async () => {
    const on = fixture('sqlite');
    const lines = Array.from({ length: 10_000 }, (_, index) => `long-${index},,2027-01-01,2028-01-01,1`);
    let turns = 0;
    let isOver = false;
    const others = (async () => {
      while (!isOver) {
        turns += 1;
        await pause(1);
      }
    })();
    const told = await file(on, lines, 'dry_run=true');
    isOver = true;
    await others;
    expect(told.json).toMatchObject({ set: 10_000 });
    expect(turns).toBeGreaterThan(5);
  });
});
