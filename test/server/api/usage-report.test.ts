/** `GET /v1/reports/usage`: what was used, to each caller of their projects. */
import { beforeAll, describe, expect, it } from 'vitest';
import { recordLease } from '../../ledger/recorded-leases.ts';
import { DIALECTS, giveBudget, ledgerAt } from '../../support/ledgers.ts';
import { budgetFixtures, type Token } from './budget-fixture.ts';

const fixtures = budgetFixtures();
const WINTER = 'from=2026-12-01&until=2027-02-01';

describe.each(DIALECTS)('reports of usage over the API, on %s', (dialect) => {
  const get = (query: string, who: Token = 'operator') =>
    fixtures(dialect).ask(who, 'GET', `/v1/reports/usage?${query}`);
  const rowsOf = async (query: string, who?: Token) => {
    const { status, json } = await get(query, who);
    expect({ query, status }).toEqual({ query, status: 200 });
    return json.rows;
  };

  beforeAll(async () => {
    const ledger = await ledgerAt(fixtures(dialect).connection);
    await giveBudget(ledger, { amount: '1000' });
    await recordLease(ledger, { name: 'a', end: '2026-12-03' });
    await recordLease(ledger, { name: 'b', userId: '=cmd()', start: '2026-12-31', end: '2027-01-02' });
    await recordLease(ledger, { name: 'p', projectId: 'physics' });
    await recordLease(ledger, { name: 'o', projectId: 'ocean' });
    await ledger.close();
  });

  it('have rows by project, user, month and type', async () => {
    const { json } = await get(WINTER);
    expect(json).toMatchObject({
      from: '2026-12-01T00:00:00Z',
      until: '2027-02-01T00:00:00Z',
      by: 'project',
      rows: [
        { project: { id: 'climate' }, amount: '96', exact: { amount: '345600000000' }, leases: 2 },
        { amount: '24' },
        { amount: '24' },
      ],
      undated: { amount: '0' },
    });
    const users = await rowsOf(`${WINTER}&by=user&project_id=climate`);
    expect(users.map(({ user }: { user: { id: string } }) => user.id)).toEqual(['=cmd()', 'alice']);
    expect((await rowsOf(`${WINTER}&by=month`)).map(({ month }: { month: string }) => month)).toEqual([
      '2026-12',
      '2027-01',
    ]);
    expect(await rowsOf(`${WINTER}&by=resource_type`)).toEqual([]);
    expect(await rowsOf('from=2020-01-01&until=2021-01-01')).toEqual([]);
  });

  it('are of their own projects for members, and of all for operators and readers', async () => {
    const projects = async (who: Token, query = '') =>
      (await rowsOf(`${WINTER}${query}`, who))
        .map(({ project }: { project: { id: string } }) => project.id)
        .sort();
    expect(await projects('operator')).toEqual(['climate', 'ocean', 'physics']);
    expect(await projects('reader')).toEqual(['climate', 'ocean', 'physics']);
    expect(await projects('mona')).toEqual(['climate', 'physics']);
    expect(await projects('meg')).toEqual(['climate']);
    expect(await projects('meg', '&project_id=ocean')).toEqual([]);
    const { text } = await get(`${WINTER}&format=focus`, 'meg');
    expect(text).not.toMatch(/ocean|physics/);
  });

  it('are files that a spreadsheet does not run', async () => {
    const csv = await get(`${WINTER}&by=user&format=csv`, 'meg');
    expect([csv.headers.get('Content-Type'), csv.headers.get('Content-Disposition')]).toEqual([
      expect.stringContaining('text/csv'),
      'attachment; filename="usage.csv"',
    ]);
    expect(csv.text).toContain("\r\nclimate,'=cmd(),48,0,node-hours,0,1,0,0,172800000000,0\r\n");
    const focus = await get(`${WINTER}&by=user&format=focus`, 'meg');
    expect(focus.headers.get('Content-Disposition')).toBe('attachment; filename="usage-focus.csv"');
    expect(focus.text.trim().split('\r\n')).toHaveLength(4);
  });

  it('say which parameter is wrong', async () => {
    for (const [query, field] of [
      ['by=day', 'by'],
      ['format=xml', 'format'],
      ['from=2990-01-01', 'from'],
      ['from=1990-01-01&until=2026-01-01', 'from'],
    ]) {
      const { status, json } = await get(query ?? '');
      expect({ query, status, field: json.field }).toEqual({ query, status: 400, field });
    }
  });
});
