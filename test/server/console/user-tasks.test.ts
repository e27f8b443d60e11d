import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { giveBudgets, newLedgers } from '../../support/ledgers.ts';
import { type ConsoleFixture, consoleOn } from './console-fixture.ts';
import { rowsOf, suggestedIn, textOf } from './visitor.ts';

const newLedger = newLedgers();
const NOW = '2026-11-22T12:00:00Z';
let fixture: ConsoleFixture;

beforeAll(async () => {
  const connection = await newLedger('sqlite');
  await giveBudgets(
    connection,
    [
      { amount: '100', until: '2027-01-01' },
      { projectId: 'physics', amount: '10' },
    ],
    { now: () => NOW },
  );
  fixture = await consoleOn(connection, {}, () => NOW);
});
afterAll(() => fixture.close());

/** A hidden field of the form. */
function hidden(html: string, name: string): string {
  const [, value = ''] = new RegExp(`name="${name}" value="([^"]*)"`).exec(html) ?? [];
  return value.replaceAll('&quot;', '"').replaceAll('&amp;', '&');
}

/** A lease that fits into the budget. */
const WISH = {
  project: 'climate',
  name: 'run',
  start: '2026-12-01T09:00',
  end: '2026-12-02T09:00',
  do: 'try',
  r0_type: 'physical:host',
  r0_min: '1',
  r0_max: '2',
};

describe('a member', () => {
  it('sees the own projects, and nothing of others', async () => {
    const { html } = await fixture.get('meg', '/projects');
    expect(rowsOf(html, 'Projects').map(([name]) => name)).toEqual(['name-of-climate@Default climate']);
    expect((await fixture.get('meg', '/projects/physics')).status).toBe(403);
    expect((await fixture.get('meg', '/projects/none')).status).toBe(403);
    const project = await fixture.get('meg', '/projects/climate');
    expect(project.status).toBe(200);
    expect(textOf(project.html)).toContain('100 of 100 node-hours left');
    expect(
      rowsOf((await fixture.get('meg', '/budgets')).html, 'Budgets')
        .flat()
        .join(),
    ).not.toContain('physics');
    expect(textOf((await fixture.get('meg', '/budgets/history')).html)).not.toContain('physics');
  });

  it('sees no form that sets anything, and can send none', async () => {
    const { html } = await fixture.get('meg', '/budgets');
    expect(html).not.toContain('/budgets/new');
    expect(html).not.toMatch(/>(Change|Remove|Import)</);
    // Every page: `test/server/users/who-may-do-what.test.ts`.
    const fields = { project_id: 'climate', amount: '1', reason: 'mine', etag: '"1"' };
    expect((await fixture.get('meg', '/budgets/1')).status).toBe(403);
    expect((await fixture.send('meg', '/budgets/1', fields)).status).toBe(403);
  });

  it('learns what a lease costs and what is left after it, and how to get it', async () => {
    const form = await fixture.get('meg', '/try?project=climate');
    expect(form.status).toBe(200);
    expect(form.html).not.toContain('name="user"');
    const { status, html } = await fixture.send('meg', '/try', WISH);
    const text = textOf(html);
    expect(status).toBe(200);
    expect(text).toContain('This lease would be allowed now');
    const [budget, ...cost] = rowsOf(html, 'Cost')[0] ?? [];
    expect(budget).toBe('Budget of the project, 2026-01-01 to 2027-01-01 UsageBudgetFilter · node-hours');
    expect(cost).toEqual(['at most 48', '100', '0', '52']);
    expect(text).toContain(
      "openstack reservation lease create \\ --start-date '2026-12-01 09:00' \\ --end-date '2026-12-02 09:00' \\ --reservation resource_type=physical:host,min=1,max=2 \\ run",
    );
    // Nothing is recorded.
    expect(fixture.recorder.recent.list()).toEqual([]);
    expect(textOf((await fixture.get('meg', '/projects/climate')).html)).toContain(
      '100 of 100 node-hours left',
    );
  });

  it('hears why a lease would be refused, and gets one that would be allowed with one button', async () => {
    const { html } = await fixture.send('meg', '/try', { ...WISH, end: '2026-12-11T09:00' });
    expect(textOf(html)).toContain('This lease would be refused by UsageBudgetFilter');
    const fields = suggestedIn(html);
    expect(fields).toMatchObject({ project: 'climate', name: 'run' });
    const again = await fixture.send('meg', '/try', { ...fields, do: 'try' });
    expect(textOf(again.html)).toContain('This lease would be allowed now');
  });

  it('keeps what was written, and is told at the field what is wrong', async () => {
    const sent = { ...WISH, name: '<b>"mine"', start: 'soon', end: '', r0_min: '3' };
    const { status, html } = await fixture.send('meg', '/try', sent);
    expect(status).toBe(400);
    expect(html).toContain('value="&lt;b>&quot;mine&quot;"');
    for (const field of ['start', 'end', 'r0_max']) {
      expect(html).toMatch(new RegExp(`id="${field}"[^>]* aria-describedby="[^"]*${field}-mistake`));
      expect(html).toContain(`id="${field}-mistake"`);
    }
    expect(html.match(/ autofocus/g)).toHaveLength(1);
  });

  it('cannot try for another project, nor as another user', async () => {
    const refused = await fixture.send('meg', '/try', { ...WISH, project: 'physics', user: 'id-of-mona' });
    expect(refused.status).toBe(403);
    expect(refused.html).not.toContain('Cost');
  });

  it('adds and removes reservations without a script, and loses nothing by it', async () => {
    const sent = { ...WISH, r0_max: '7' };
    const more = await fixture.send('meg', '/try', { ...sent, do: 'add virtual:floatingip' });
    expect(more.html).toContain('name="r1_network_id"');
    expect(more.html).toMatch(/name="r0_max"[^>]* value="7"/);
    const less = await fixture.send('meg', '/try', {
      ...sent,
      r1_type: 'virtual:floatingip',
      do: 'remove 0',
    });
    expect(less.html).toContain('name="r0_network_id"');
    expect(less.html).not.toContain('name="r0_max"');
  });
});

describe('a manager', () => {
  it('gives a user 50 hours, within the budget of the project', async () => {
    const { html } = await fixture.get('mona', '/budgets/new');
    expect(html).toContain('<small>manager</small>');
    expect(html).toMatch(/name="valid_until"[^>]* value="2027-01-01T00:00"/);
    const fields = {
      project_id: 'climate',
      user_id: 'id-of-mel',
      amount: '50',
      reason: 'a workshop',
      valid_from: '2026-01-01T00:00',
      valid_until: '2027-01-01T00:00',
    };
    expect((await fixture.send('mona', '/budgets/new', { ...fields, user_id: '' })).status).toBe(403);
    const tooMuch = await fixture.send('mona', '/budgets/new', { ...fields, amount: '500' });
    expect(tooMuch.status).toBe(422);
    expect(tooMuch.html).toContain('id="amount-mistake"');
    expect(tooMuch.html).toMatch(/name="reason"[^>]* value="a workshop"/);
    const done = await fixture.send('mona', '/budgets/new', fields);
    expect(done).toMatchObject({ status: 303, location: '/budgets?project=climate&done=set' });
    const list = await fixture.get('mona', done.location);
    expect(textOf(list.html)).toContain('The budget is set.');
    expect(rowsOf(list.html, 'Budgets').map((row) => row.slice(1, 3))).toContainEqual(['id-of-mel', '50']);
    const [latest] = rowsOf((await fixture.get('mona', '/budgets/history')).html, 'Changes of budgets');
    expect(latest?.slice(1, 3)).toEqual(['mona@Default (id-of-mona)', 'a workshop']);
  });

  it('is told when somebody else was faster, and overwrites nothing', async () => {
    const whose = { project_id: 'climate', user_id: 'id-of-bob', amount: '5', reason: 'first' };
    const when = { valid_from: '2026-11-01T00:00', valid_until: '2026-12-01T00:00' };
    await fixture.send('mona', '/budgets/new', { ...whose, ...when });
    const list = await fixture.get('mona', '/budgets?search=id-of-bob');
    const [, id = ''] = /href="\/budgets\/(\d+)"/.exec(list.html) ?? [];
    const form = await fixture.get('mona', `/budgets/${id}`);
    const etag = hidden(form.html, 'etag');
    const until = '2026-12-01T00:00';
    const other = { amount: '6', valid_until: until, reason: 'a colleague', etag };
    expect((await fixture.send('operator', `/budgets/${id}`, other)).status).toBe(303);
    // A mistake in the form does not make it forget what was seen.
    const change = (amount: string) =>
      fixture.send('mona', `/budgets/${id}`, { amount, valid_until: until, reason: 'r', etag });
    const mistaken = await change('x');
    expect(mistaken.status).toBe(422);
    expect(hidden(mistaken.html, 'etag')).toBe(etag);
    const late = await change('9');
    expect(late.status).toBe(412);
    expect(textOf(late.html)).toContain(
      'Nothing was changed: operator token has changed this budget since (a colleague).',
    );
    expect(textOf(late.html)).toContain('6 node-hours, 0 taken');
    expect(late.html).toMatch(/name="amount"[^>]* value="9"/);
    const gone = await fixture.send('mona', `/budgets/${id}/remove`, { reason: 'over', etag });
    expect(gone.status).toBe(412);
    const now = hidden(late.html, 'etag');
    const withoutReason = await fixture.send('mona', `/budgets/${id}/remove`, { reason: ' ', etag: now });
    expect(withoutReason.status).toBe(422);
    const removed = await fixture.send('mona', `/budgets/${id}/remove`, { reason: 'over', etag: now });
    expect(removed.location).toBe('/budgets?project=climate&done=removed');
    expect((await fixture.get('mona', `/budgets/${id}`)).status).toBe(404);
  });
});

describe('an operator', () => {
  const send = (fields: Readonly<Record<string, string>>) =>
    fixture.send('operator', '/budgets/import', { reason: 'r', ...fields });
  const header = 'project_id,user_id,valid_from,valid_until,amount';
  const csv = [header, 'chem,,2027-01-01,2028-01-01,10', 'chem,zoe,2027-01-01,2028-01-01,5'].join('\r\n');

  it('imports budgets after seeing what would change', async () => {
    const seen = await send({ csv, reason: 'the year', do: 'check' });
    expect(seen.status).toBe(200);
    expect(textOf(seen.html)).toContain('It would set 2 new budgets, change 0, and leave 0 unchanged.');
    expect(rowsOf(seen.html, 'Preview of the import').map((row) => row.slice(1, 5))).toEqual([
      ['+ new', 'chem', 'Project', '10'],
      ['+ new', 'chem', 'zoe', '5'],
    ]);
    expect(textOf((await fixture.get('operator', '/budgets?project=chem')).html)).toContain('No budgets.');
    const digest = hidden(seen.html, 'digest');
    const done = await send({ csv, reason: 'the year', digest, do: 'import' });
    expect(done).toMatchObject({ status: 303, location: '/budgets?done=imported' });
    const { html } = await fixture.get('operator', '/budgets/history?project=chem');
    expect(rowsOf(html, 'Changes of budgets').map((row) => row[2])).toEqual(['the year', 'the year']);
  });

  it('confirms exactly what was shown: another text, or another ledger, is shown again first', async () => {
    const first = [header, 'geo,,2027-01-01,2028-01-01,10'].join('\n');
    const seen = await send({ csv: first, do: 'check' });
    const digest = hidden(seen.html, 'digest');
    const other = first.replace(',10', ',1000');
    for (const [text, sent] of [
      [other, digest],
      [first, ''],
    ] as const) {
      expect((await send({ csv: text, digest: sent, do: 'import' })).status).toBe(412);
    }
    await fixture.send('operator', '/budgets/new', {
      project_id: 'geo',
      user_id: '',
      amount: '7',
      reason: 'meanwhile',
      valid_from: '2027-01-01',
      valid_until: '2028-01-01',
    });
    const late = await send({ csv: first, digest, do: 'import' });
    expect(late.status).toBe(412);
    const [row] = rowsOf(late.html, 'Preview of the import');
    expect(row?.slice(1, 6)).toEqual(['✎ changed', 'geo', 'Project', '10', '7']);
  });

  it('reads every mistake with its line, and nothing is set', async () => {
    const wrong = [header, 'bio,,2027-01-01,2028-01-01,10', 'bio,,soon,2028-01-01,-1', ''].join('\n');
    const { status, html } = await send({ csv: wrong, do: 'import' });
    expect(status).toBe(422);
    expect(rowsOf(html, 'Mistakes').every(([line]) => line === '3')).toBe(true);
    expect(html).not.toContain('value="import"');
    expect(textOf((await fixture.get('operator', '/budgets?project=bio')).html)).toContain('No budgets.');
    for (const text of ['', 'x', '"', 'a,b\n'.repeat(20_000)]) {
      expect([413, 422]).toContain((await send({ csv: text, do: 'import' })).status);
    }
  });
});
