/** Asking for more budget in the console, and what managers and operators do about it. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { DecisionRecord } from '../../../../src/decisions/record.ts';
import { listBudgets, removeBudget } from '../../../../src/ledger/budgets/budgets.ts';
import { budgetHistory } from '../../../../src/ledger/budgets/history.ts';
import type { Ledger } from '../../../../src/ledger/ledger.ts';
import { aRecord, saidBy } from '../../../support/decision-logs.ts';
import { type BudgetText, giveBudget, ledgerAt, NO_WAIT, newLedgers } from '../../../support/ledgers.ts';
import { type ConsoleFixture, consoleOn, type Name, type Seen } from '../console-fixture.ts';
import { rowsOf, textOf } from '../visitor.ts';

const HOUR = 3_600_000_000n;
const PATH = '/budgets/requests';
const newLedger = newLedgers();
let fixture: ConsoleFixture;
let ledger: Ledger;
let count = 0;

beforeAll(async () => {
  const connection = await newLedger('sqlite');
  fixture = await consoleOn(connection);
  ledger = await ledgerAt(connection, { now: () => new Date().toISOString() });
});
afterAll(async () => {
  await fixture.close();
  await ledger.close();
});
beforeEach(async () => {
  for (const budget of await listBudgets(ledger, undefined, NO_WAIT)) {
    await removeBudget(ledger, budget, { who: 'test', reason: null }, NO_WAIT);
  }
  await give({ amount: '100' });
});

function give(budget: Partial<BudgetText> & { amount: string }): Promise<void> {
  return giveBudget(ledger, { projectId: 'climate', from: '2026-01-01', until: '2099-01-01', ...budget });
}

/** Each with a reason of its own, so that none is taken for another. */
function wish(more: Readonly<Record<string, string>> = {}) {
  count += 1;
  return {
    project_id: 'climate',
    user_id: '',
    amount: '5',
    valid_until: '2098-01-01T00:00',
    reason: `run ${count}`,
    ...more,
  };
}

async function asked(who: Name = 'meg', fields = wish()): Promise<string> {
  const { status, location, html } = await fixture.send(who, `${PATH}/new`, fields);
  expect([status, textOf(html)]).toEqual([303, expect.any(String)]);
  expect(location).toMatch(/^\/budgets\/requests\/\d+\?done=requested$/);
  return location.split('?')[0] ?? '';
}

function step(who: Name, path: string, kind: string, fields: Readonly<Record<string, string>> = {}) {
  return fixture.send(who, path, { step: kind, reason: 'fine', ...fields });
}

async function hours(): Promise<bigint[]> {
  return (await listBudgets(ledger, 'climate', NO_WAIT)).map(({ amount }) => amount / HOUR);
}

function buttons({ html }: Seen): string[] {
  return [...html.matchAll(/<button type="submit" name="step" value="(\w+)">/g)].map(([, kind = '']) => kind);
}

function fieldOf({ html }: Seen, name: string): string {
  const [, value = ''] = new RegExp(`<input[^>]* name="${name}"[^>]* value="([^"]*)"`).exec(html) ?? [];
  return value;
}

describe('a request for more budget', () => {
  it('is asked for by a member, endorsed by the manager, and granted by an operator', async () => {
    const link = `${PATH}?project=climate`;
    expect((await fixture.get('meg', '/projects/climate')).html).toContain(link);
    const fields = wish();
    const path = await asked('meg', fields);
    const made = await fixture.get('meg', `${path}?done=requested`);
    expect(textOf(made.html)).toContain('The request is open.');
    expect(buttons(made)).toEqual(['withdraw']);
    const forMona = await fixture.get('mona', path);
    expect([buttons(forMona), fieldOf(forMona, 'amount')]).toEqual([['endorse', 'refuse'], '']);
    expect((await step('mona', path, 'endorse')).location).toBe(`${path}?done=endorsed`);
    const forOperator = await fixture.get('operator', path);
    expect(buttons(forOperator)).toEqual(['grant', 'refuse']);
    const terms = {
      amount: fieldOf(forOperator, 'amount'),
      valid_until: fieldOf(forOperator, 'valid_until'),
    };
    expect(terms).toEqual({ amount: '5', valid_until: '2098-01-01T00:00' });
    const listed = rowsOf((await fixture.get('reader', PATH)).html, 'Budget requests');
    expect(listed[0]?.join(' ')).toMatch(/endorsed .*climate.* 5 .*meg@Default/);
    expect((await step('operator', path, 'grant', terms)).location).toBe(`${path}?done=granted`);
    expect(await hours()).toEqual([105n]);
    for (const who of ['meg', 'mona', 'operator', 'reader'] as const) {
      const seen = await fixture.get(who, path);
      expect([seen.status, buttons(seen)]).toEqual([200, []]);
      expect(textOf(seen.html)).toMatch(
        /Endorsed by mona.* fine Decided by operator token.* fine Granted 5 node-hours/,
      );
    }
    const history = await fixture.get('meg', '/budgets/history?project=climate');
    expect(textOf(history.html)).toMatch(/request \d+ by meg@Default \(id-of-meg\): fine/);
  });

  it('is one, and is granted once, when forms are sent twice', async () => {
    const fields = wish();
    const [path, again] = await Promise.all([asked('meg', fields), asked('meg', fields)]);
    expect(again).toBe(path);
    const terms = { amount: '4', valid_until: '2098-01-01T00:00' };
    const grants = await Promise.all([1, 2, 3].map(() => step('operator', path, 'grant', terms)));
    expect(grants.map(({ location }) => location)).toEqual([1, 2, 3].map(() => `${path}?done=changed`));
    expect(await hours()).toEqual([104n]);
    const late = await step('mona', path, 'refuse');
    expect([late.status, textOf(late.html)]).toEqual([
      409,
      expect.stringContaining('the request was granted with other terms already, by operator token'),
    ]);
    expect((await budgetHistory(ledger, 'climate', NO_WAIT)).at(-1)).toMatchObject({ who: 'operator token' });
  });

  it('shows what is wrong beside the field, and keeps what was written', async () => {
    for (const [more, expected] of [
      [{ amount: 'much' }, /expected a decimal number of node-hours/],
      [{ valid_until: '2020-01-01T00:00' }, /expected a time in the future/],
      [{ reason: ' ' }, /expected a reason, for the history/],
      [{ user_id: 'id-of-meg' }, /the user has no budget of their own/],
    ] as const) {
      const seen = await fixture.send('meg', `${PATH}/new`, wish({ reason: 'kept', ...more }));
      expect([seen.status, textOf(seen.html)]).toEqual([422, expect.stringMatching(expected)]);
      expect(seen.html).toMatch(/aria-invalid="true"/);
    }
    const path = await asked();
    const seen = await step('operator', path, 'grant', { amount: '7', valid_until: '', reason: '' });
    expect([seen.status, fieldOf(seen, 'amount')]).toEqual([422, '7']);
    expect((await step('operator', path, 'nonsense')).status).toBe(400);
    expect(await hours()).toEqual([100n]);
  });

  it('of another project is as if it did not exist, and rights are those of the table', async () => {
    const secret = await asked('operator', wish({ project_id: 'secret' }));
    const seenBy = async (path: string) => {
      const seen = [await fixture.get('meg', path)];
      for (const kind of ['endorse', 'grant', 'refuse', 'withdraw']) {
        seen.push(await step('mona', path, kind));
      }
      return seen.map(({ status, html }) => [status, textOf(html).replaceAll(/req-[0-9a-f-]+/g, '')]);
    };
    const there = await seenBy(secret);
    const absent = await seenBy(`${PATH}/999999`);
    expect(there).toEqual(absent);
    expect(new Set(there.map(([status]) => status))).toEqual(new Set([404]));
    for (const path of [PATH, `${PATH}?project=secret&state=all`]) {
      expect((await fixture.get('meg', path)).html).not.toContain(`${secret}"`);
    }
    for (const project_id of ['secret', 'no-such-project']) {
      expect((await fixture.send('meg', `${PATH}/new`, wish({ project_id }))).status).toBe(403);
      expect((await fixture.get('meg', `${PATH}/new?project=${project_id}`)).status).toBe(403);
    }
    const path = await asked();
    // Every step by everybody: `test/server/api/budget-requests.test.ts`.
    expect((await step('meg', path, 'endorse')).status).toBe(403);
    expect((await step('mona', path, 'grant')).status).toBe(403);
    expect((await fixture.send('reader', `${PATH}/new`, wish())).status).toBe(403);
    expect((await step('mona', path, 'endorse', { csrf: 'of another' })).status).toBe(403);
    expect((await fixture.send('meg', `${PATH}/new`, { ...wish(), csrf: '' })).status).toBe(403);
    expect(await hours()).toEqual([100n]);
  });

  it('names every invisible character of what people write, and runs none of it', async () => {
    const reason = `<script>alert(1)</script>"><img src=x>\u202e${'ü'.repeat(100)}`;
    const path = await asked('meg', wish({ reason }));
    await step('operator', path, 'refuse', { reason });
    for (const page of [path, `${PATH}?state=refused`]) {
      const { html } = await fixture.get('mona', page);
      expect(html).not.toMatch(/<script>|<img|\u202e/);
      expect(html).toContain('&lt;script>alert(1)');
      expect(html).toContain('[U+202E]');
    }
  });
});

describe('a refused lease', () => {
  const ID = 'req-7f1b2c3d-0000-4000-8000-0000000000bb';
  const refused = (message: string, more: Partial<DecisionRecord> = {}): DecisionRecord =>
    aRecord({
      time: new Date().toISOString(),
      request_id: ID,
      allowed: false,
      outcome: 'rejected',
      filter: 'UsageBudgetFilter',
      user_id: 'id-of-meg',
      lease_name: 'run & "7"',
      message,
      filters: [saidBy('UsageBudgetFilter', 'rejected', { message })],
      ...more,
    });
  const linksIn = ({ html }: Seen) =>
    [...html.matchAll(/<a href="(\/budgets\/requests\/new\?[^"]*)">(Request more budget[^<]*)/g)].map(
      ([, path = '', text = '']) => ({ path: path.replaceAll('&amp;', '&'), text }),
    );
  const linkIn = (seen: Seen) => linksIn(seen)[0]?.path;
  const LACKS = (whose: string, left = '12.5', until = '2099-01-01T00:00:00Z') =>
    `The lease would cost 48 node-hours; ${whose} has ${left} node-hours left, of a budget that is valid until ${until}.`;
  const END = '2096-10-04T07:06:41';
  const asked_at = { start: 4_000_000_000_000_000n, end: 4_000_172_800_000_001n };

  it.each([
    [LACKS('project climate'), '35.5', END, ''],
    [LACKS('project climate', '0'), '48', END, ''],
    [LACKS('user meg in project climate'), '35.5', END, 'id-of-meg'],
    [LACKS('project climate', '12.5', '2096-10-04T00:00:00Z'), '35.5', '2096-10-04T00:00', ''],
    ['Project climate has no budget.', '', END, ''],
  ])('leads to a form that says what lacked: %s', async (message, amount, until, user) => {
    await give({ userId: 'id-of-meg', amount: '10' });
    fixture.recorder.recent.add(refused(message), asked_at);
    const link = linkIn(await fixture.get('meg', `/decisions/${ID}`));
    const form = await fixture.get('meg', link ?? '');
    const fields = ['project_id', 'amount', 'valid_until', 'reason'].map((name) => fieldOf(form, name));
    expect(form.status).toBe(200);
    expect(fields).toEqual(['climate', amount, until, 'Lease run &amp; &quot;7&quot;']);
    expect(form.html).toMatch(user === '' ? /<option value selected/ : `<option value="${user}" selected`);
  });

  it('that several budgets refuse leads to a form for each', async () => {
    const [first, second] = [LACKS('project climate'), LACKS('user meg in project climate', '8')];
    fixture.recorder.recent.add(refused(`${first} ${second}`, { request_id: `${ID}-both` }), asked_at);
    const links = linksIn(await fixture.get('meg', `/decisions/${ID}-both`));
    expect(links.map(({ text }) => text)).toEqual([
      'Request more budget for the project until 2099-01-01T00:00:00Z',
      'Request more budget for the user until 2099-01-01T00:00:00Z',
    ]);
    const forms = await Promise.all(links.map(({ path }) => fixture.get('meg', path)));
    expect(forms.map((form) => fieldOf(form, 'amount'))).toEqual(['35.5', '40']);
  });

  it('that reaches into the next budget is granted what lacks by the budget that lacks it', async () => {
    const turn = '2096-10-04T00:00:00Z';
    await give({ amount: '12.5', until: turn });
    await give({ amount: '500', from: turn });
    fixture.recorder.recent.add(refused(LACKS('project climate', '12.5', turn)), asked_at);
    const form = await fixture.get('meg', linkIn(await fixture.get('meg', `/decisions/${ID}`)) ?? '');
    const terms = { amount: fieldOf(form, 'amount'), valid_until: fieldOf(form, 'valid_until') };
    expect((await step('operator', await asked('meg', wish(terms)), 'grant', terms)).status).toBe(303);
    expect(await hours()).toEqual([48n, 500n]);
  });

  it('leads nowhere where something else was wrong, and for those who may not ask', async () => {
    for (const record of [
      refused('The lease is too long.'),
      refused(LACKS('project climate'), { operation: 'skypilot.launch' as never }),
      refused(LACKS('project climate'), { allowed: true, outcome: 'audit' }),
      refused(LACKS('user bob in project climate'), { user_id: 'id-of-bob' }),
    ]) {
      count += 1;
      fixture.recorder.recent.add({ ...record, request_id: `${ID}${count}` });
      expect(linkIn(await fixture.get('meg', `/decisions/${ID}${count}`))).toBeUndefined();
    }
    fixture.recorder.recent.add(refused(LACKS('project climate')));
    expect(linkIn(await fixture.get('reader', `/decisions/${ID}`))).toBeUndefined();
  });
});
