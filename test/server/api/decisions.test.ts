/** The routes of decisions: who finds what, and what they see of it. */
import { beforeAll, describe, expect, it } from 'vitest';
import type { DecisionRecord } from '../../../src/decisions/record.ts';
import { aRecord, saidBy } from '../../support/decision-logs.ts';
import { DIALECTS, ledgerAt, storeDecisions } from '../../support/ledgers.ts';
import { budgetFixtures, type Told } from './budget-fixture.ts';

const fixture = budgetFixtures();

const refusal: Partial<DecisionRecord> = {
  allowed: false,
  outcome: 'rejected',
  filter: 'MaxLeasesFilter',
  message: 'At most 1 lease.',
  warnings: ['TriedFilter: not yet'],
  filters: [
    saidBy('TriedFilter', 'rejected', { audit: true, message: 'not yet' }),
    saidBy('MaxLeasesFilter', 'rejected', { message: 'At most 1 lease.' }),
  ],
};
const at = (second: number) => `2026-11-20T08:00:0${second}.000Z`;
const RECORDS = [
  aRecord({
    request_id: 'req-1',
    time: at(1),
    user_name: 'alice',
    user_domain: 'Default',
    lease_id: 'lease-1',
  }),
  aRecord({ request_id: 'req-1', time: at(2), operation: 'commit-create', ...refusal }),
  aRecord({ request_id: 'req-2', time: at(3), project_id: 'physics', user_id: 'bob', ...refusal }),
  aRecord({ request_id: 'req-3', time: at(4), operation: 'kubernetes.admission', ...refusal }),
  aRecord({ request_id: 'req-4', time: at(5), project_id: 'secret', ...refusal }),
];
const ids = ({ json }: Told) => json.items.map((one: { request_id: string }) => one.request_id);

beforeAll(async () => {
  for (const dialect of DIALECTS) {
    const ledger = await ledgerAt(fixture(dialect).connection);
    const asked = { start: 1_796_119_200_000_000n, end: 1_796_122_800_000_000n };
    const reservations = [{ resource_type: 'physical:host', min: 1, max: 2 }];
    await storeDecisions(ledger, RECORDS.slice(0, 2), { ...asked, reservations });
    // A version before 1.1 kept the dates alone.
    await storeDecisions(ledger, RECORDS.slice(2), asked);
    await ledger.close();
  }
});

describe.each(DIALECTS)('decisions over the API on %s', (dialect) => {
  const get = (who: Parameters<ReturnType<typeof fixture>['ask']>[0], path: string) =>
    fixture(dialect).ask(who, 'GET', path);

  it('are all there for operators and readers, with everything', async () => {
    for (const who of ['operator', 'reader'] as const) {
      const all = await get(who, '/v1/decisions');
      expect(ids(all)).toEqual(['req-4', 'req-3', 'req-2', 'req-1', 'req-1']);
      expect(all.json.items[3]).toMatchObject({
        ...refusal,
        time: '2026-11-20T08:00:02.000Z',
        operation: 'commit-create',
        asked: {
          start: '2026-12-01T10:00:00Z',
          end: '2026-12-01T11:00:00Z',
          reservations: [{ resource_type: 'physical:host', min: 1, max: 2 }],
        },
        replica: 'host/7',
        duration_ms: 0.5,
      });
      expect(all.json.items[2].asked.reservations).toBeNull();
      expect(all.json.items[4].user).toEqual({ id: 'alice', name: 'alice', domain: 'Default' });
    }
  });

  it('are those of their projects for members, without what is only tried', async () => {
    const seen = await get('mona', '/v1/decisions');
    expect(ids(seen)).toEqual(['req-2', 'req-1', 'req-1']);
    expect(seen.text).not.toContain('Tried');
    expect(seen.json.items[0]).toMatchObject({
      replica: null,
      generation: null,
      duration_ms: null,
      warnings: [],
    });
    expect(ids(await get('meg', '/v1/decisions'))).toEqual(['req-1', 'req-1']);
    expect(ids(await get('meg', '/v1/projects/climate/decisions'))).toEqual(['req-1', 'req-1']);
    expect(ids(await get('meg', '/v1/decisions?filter=TriedFilter'))).toEqual([]);
    expect(ids(await get('meg', '/v1/decisions?project_id=physics'))).toEqual([]);
  });

  it('of another project cannot be told from none', async () => {
    const hidden = await get('meg', '/v1/decisions/req-4');
    const none = await get('meg', '/v1/decisions/req-none');
    expect([hidden.status, hidden.json]).toEqual([none.status, none.json]);
    expect(hidden.status).toBe(404);
    const foreign = await get('meg', '/v1/projects/secret/decisions');
    const absent = await get('meg', '/v1/projects/nowhere/decisions');
    expect([foreign.status, foreign.text]).toEqual([absent.status, absent.text]);
    expect(foreign.status).toBe(403);
    // Nor by an id that a stranger has sent as well.
    expect((await get('meg', '/v1/decisions/req-1')).json.items).toHaveLength(2);
  });

  // Every way to search: `test/decisions/store/table.test.ts`.
  it.each([
    ['outcome=refused', ['req-4', 'req-3', 'req-2', 'req-1']],
    ['project_id=physics', ['req-2']],
    ['user_id=alice%40Default', ['req-1']],
    ['filter=TriedFilter', ['req-4', 'req-3', 'req-2', 'req-1']],
    ['operation=commit-create', ['req-1']],
    ['from=2026-11-20T08:00:03Z&until=2026-11-20T08:00:05Z', ['req-3', 'req-2']],
  ])('are found by %s', async (query, expected) => {
    expect(ids(await get('operator', `/v1/decisions?${query}`))).toEqual(expected);
  });

  it.each([
    ['after=x', 'after'],
    ['outcome=maybe', 'outcome'],
    ['user_id=%00', 'user_id'],
    ['outcome=failed&outcome=rejected', 'outcome'],
  ])('refuse %s with the field', async (query, field) => {
    const answer = await get('operator', `/v1/decisions?${query}`);
    expect([answer.status, answer.json.field]).toEqual([400, field]);
  });
});
