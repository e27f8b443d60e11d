/** The page of a lease and its route in the API: what has happened to it, what it is charged, and who sees that. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DecisionRecord } from '../../../../src/decisions/record.ts';
import { aRecord } from '../../../support/decision-logs.ts';
import { DIALECTS, giveBudget, ledgerAt, newLedgers, storeDecisions } from '../../../support/ledgers.ts';
import { type ConsoleFixture, consoleOn, type Name } from '../console-fixture.ts';
import { rowsOf, textOf } from '../visitor.ts';

const newLedger = newLedgers();
const HISTORY = 'History, newest first';
const HOST = { resource_type: 'physical:host', min: 1, max: 1 };
const DATES = { start_date: '2026-12-01 00:00', end_date: '2026-12-02 00:00' };
const LONGER = { start_date: '2026-12-01 00:00', end_date: '2026-12-03 00:00' };
const REFUSED: Partial<DecisionRecord> = {
  operation: 'update',
  lease_id: 'lease-1',
  allowed: false,
  outcome: 'rejected',
  filter: 'UsageBudgetFilter',
  message: 'Too dear.',
  warnings: ['TriedFilter: not yet'],
};

for (const dialect of DIALECTS) {
  describe(`a lease on ${dialect}`, () => {
    let fixture: ConsoleFixture;
    let now = '2026-11-22T12:00:00Z';

    beforeAll(async () => {
      const connection = await newLedger(dialect);
      const ledger = await ledgerAt(connection, { now: () => now });
      await giveBudget(ledger, { amount: '1000', until: '2027-01-01' });
      await giveBudget(ledger, { projectId: 'physics', amount: '1000', until: '2027-01-01' });
      const filters = {
        enabled_filters: ['MaxLeasesFilter', 'UsageBudgetFilter'],
        max_leases_per_project: 9,
      };
      fixture = await consoleOn(connection, { enforcement: filters }, () => now, true);
      const { enforcement } = fixture.generation;
      const context = { user_id: 'alice', project_id: 'climate' };
      const lease = { name: 'run', ...DATES, reservations: [HOST] };
      const known = { ...lease, id: 'lease-1' };
      const create = (other: object, more: object = {}) =>
        enforcement.checkCreate(
          { context: { ...context, ...other }, lease: { ...lease, ...more } },
          { requestId: 'req-create' },
        );
      await create({});
      now = '2026-11-22T13:00:00Z';
      await enforcement.checkUpdate(
        { context, currentLease: known, lease: { ...known, ...LONGER } },
        { requestId: 'req-update' },
      );
      await create({ project_id: 'physics' }, { id: 'lease-p' });
      for (const region_name of ['one', 'two']) {
        await create({ region_name }, { id: 'twice', name: region_name });
      }
      await create(
        {},
        { name: 'unknown to Blazar', start_date: '2026-12-05 00:00', end_date: '2026-12-06 00:00' },
      );
      now = '2026-12-01T12:00:00Z';
      await enforcement.onEnd({ context, lease: { ...known, ...LONGER } });
      const at = (time: string) => ({ time: `2026-11-22T${time}.000Z` });
      const records = [
        aRecord({ ...at('12:00:01'), request_id: 'req-create', lease_name: 'run' }),
        // The same request id, sent again for other leases.
        aRecord({ ...at('12:00:02'), request_id: 'req-create', project_id: 'physics' }),
        aRecord({ ...at('12:00:02'), request_id: 'req-create', user_id: 'bob' }),
        aRecord({ ...at('12:00:03'), request_id: 'req-create', lease_id: 'lease-9' }),
        aRecord({ ...at('12:30:00'), ...REFUSED, request_id: 'req-refused' }),
        aRecord({ ...at('13:00:01'), request_id: 'req-update', operation: 'update', lease_id: 'lease-1' }),
        aRecord({ ...at('13:30:00'), ...REFUSED, request_id: 'req-physics', project_id: 'physics' }),
        aRecord({ ...at('13:30:00'), ...REFUSED, request_id: 'req-of-nobody', lease_id: 'no-row' }),
        aRecord({
          ...at('13:30:00'),
          ...REFUSED,
          request_id: 'req-p',
          lease_id: 'none-p',
          project_id: 'physics',
        }),
      ];
      const asked = { start: 1_796_083_200_000_000n, end: 1_796_256_000_000_000n };
      await storeDecisions(ledger, records, asked);
      await ledger.close();
    });
    afterAll(() => fixture?.close());

    const page = (who: Name, key: string) => fixture.get(who, `/leases/${encodeURIComponent(key)}`);
    const api = async (who: Name, key: string, query = '', project = 'climate') => {
      const path = `/v1/projects/${project}/leases/${encodeURIComponent(key)}${query}`;
      const { status, html } = await fixture.get(who, path);
      return { status, json: JSON.parse(html) };
    };

    /** Of entries, only those of budgets. */
    const shown = (html: string) =>
      rowsOf(html, HISTORY).filter(([, , details]) => !details?.includes('max_leases'));

    it('shows its decisions and entries in the order of time, with charges and request ids', async () => {
      const { status, html } = await page('operator', 'lease-1');
      expect(status).toBe(200);
      expect(shown(html)).toEqual([
        ['2026-12-01 12:00', 'ended', 'Budget 1 : -72 node-hours alice', ''],
        ['2026-11-22 13:00:01', '✓ allowed update', '', 'req-update'],
        ['2026-11-22 13:00', 'changed', 'Budget 1 : 72 node-hours alice', 'req-update'],
        [
          '2026-11-22 12:30',
          '✗ rejected update UsageBudgetFilter',
          'Too dear. requested 2026-12-01 to 2026-12-03 Warning: TriedFilter: not yet',
          'req-refused',
        ],
        ['2026-11-22 12:00:01', '✓ allowed create', '', 'req-create'],
        ['2026-11-22 12:00', 'recorded', 'Budget 1 : 24 node-hours alice', 'req-create'],
      ]);
      expect(rowsOf(html, 'Charges to budgets')).toEqual([
        ['Budget 1', '2026-12-01 to 2026-12-01 12:00', '2', '24'],
      ]);
      const text = textOf(html);
      expect(text).toContain(
        'Id lease-1 Project climate User alice State ended: 2026-12-01 to 2026-12-01 12:00 UTC',
      );
      expect(text).not.toContain('Change');
    });

    it('shows members of its project the same without other accounts, who wrote them, and filters that are tried', async () => {
      for (const who of ['meg', 'mona'] as const) {
        const { status, html } = await page(who, 'lease-1');
        expect(status).toBe(200);
        expect(
          rowsOf(html, HISTORY).map(([time, what, details]) => `${time} ${what} ${details}`.trim()),
        ).toEqual([
          '2026-12-01 12:00 ended Budget 1 : -72 node-hours',
          '2026-11-22 13:00:01 ✓ allowed update',
          '2026-11-22 13:00 changed Budget 1 : 72 node-hours',
          '2026-11-22 12:30 ✗ rejected update UsageBudgetFilter Too dear. requested 2026-12-01 to 2026-12-03',
          '2026-11-22 12:00:01 ✓ allowed create',
          '2026-11-22 12:00 recorded Budget 1 : 24 node-hours',
        ]);
        const { json } = await api(who, 'lease-1');
        expect(JSON.stringify(json)).not.toMatch(/max_leases|Tried|host\/7/);
        expect(json.items[0].entry).toMatchObject({ who: null, reason: null, operation: 'end' });
      }
    });

    it('is the same page for a lease of others as for none, whatever is asked for', async () => {
      const withoutIds = (html: string) => html.replaceAll(/req-[-0-9a-f]{36}/g, '');
      const unknown = await page('meg', 'no such lease');
      expect(unknown.status).toBe(404);
      const hostile = ['#', '__proto__', '\0', '%', '../try', 'x'.repeat(256), '\u202e'];
      for (const key of ['lease-p', '#2', '#99', 'none-p', ...hostile]) {
        const seen = await page('meg', key);
        expect([seen.status, withoutIds(seen.html)], key).toEqual([404, withoutIds(unknown.html)]);
      }
      expect((await api('meg', 'lease-p')).status).toBe(404);
      expect((await api('meg', 'lease-p', '', 'physics')).status).toBe(403);
      expect((await api('meg', 'lease-x', '', 'nowhere')).status).toBe(403);
      expect((await page('reader', 'lease-p')).status).toBe(200);
    });

    it('is found by its row while Blazar has told no id, and leads to its change', async () => {
      const project = await fixture.get('meg', '/projects/climate?from=2026-12-01');
      const [path = ''] = /\/leases\/%235(?=")/.exec(project.html) ?? [];
      const nameless = textOf((await fixture.get('meg', path)).html);
      expect(nameless).toContain('Lease unknown to Blazar');
      expect(nameless).toContain('Id not known yet');
      expect(nameless).not.toContain('Change');
      const pending = await page('meg', '#3');
      expect(pending.html).toContain('<a href="/leases/twice/change">Change</a>');
    });

    it('is chosen among several with the same id, and one that only decisions know is shown with them', async () => {
      const several = await page('meg', 'twice');
      expect(rowsOf(several.html, 'These leases').map((row) => row.slice(0, 2))).toEqual([
        ['two #4', 'two'],
        ['one #3', 'one'],
      ]);
      expect(await api('meg', 'twice')).toMatchObject({
        status: 409,
        json: { message: 'several leases have this id: request #4 or #3', field: 'lease_id' },
      });
      const { status, html } = await page('meg', 'no-row');
      expect(status).toBe(200);
      expect(textOf(html)).toContain('The ledger does not have this lease');
      expect(rowsOf(html, HISTORY).map(([, , , request]) => request)).toEqual(['req-of-nobody']);
      expect((await api('meg', 'no-row')).json).toMatchObject({ lease: null, next: null });
    });

    it('comes over the API in pages of any size, each step once', async () => {
      for (const who of ['operator', 'meg'] as const) {
        const whole = (await api(who, 'lease-1')).json;
        expect(whole.lease).toMatchObject({
          row: '1',
          lease_id: 'lease-1',
          state: 'ended',
          cost: '24',
          confirmed: true,
          charges: [{ account: 'usage_budget/1', amount: '24', until: '2026-12-01T12:00:00Z' }],
        });
        expect(whole.next).toBeNull();
        for (const limit of [1, 2, 3, 7]) {
          const items: unknown[] = [];
          let after = '';
          do {
            const { json } = await api(who, 'lease-1', `?limit=${limit}${after && `&after=${after}`}`);
            expect(json.items.length).toBeLessThanOrEqual(limit);
            items.push(...json.items);
            after = json.next ?? '';
          } while (after !== '');
          expect(items).toEqual(whole.items);
        }
      }
      for (const after of ['x', Buffer.from('["#1","#2"]').toString('base64url'), '%00']) {
        expect((await api('meg', 'lease-1', `?after=${after}`)).status).toBe(400);
      }
    });
  });
}
