import fc from 'fast-check';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { DecisionRecord } from '../../../src/decisions/record.ts';
import { isSelected } from '../../../src/decisions/selection.ts';
import type { DecisionsQuery, StoredDecision } from '../../../src/decisions/store/contract.ts';
import { memberView } from '../../../src/decisions/store/member-view.ts';
import { rowJson } from '../../../src/decisions/store/rows.ts';
import { DecisionTable } from '../../../src/decisions/store/table.ts';
import type { Ledger } from '../../../src/ledger/ledger.ts';
import { CursorError, cursorOf } from '../../../src/ledger/reports/pages.ts';
import { rows } from '../../../src/ledger/storage/database.ts';
import { aRecord, saidBy } from '../../support/decision-logs.ts';
import { DIALECTS, giveBudget, ledgerAt, NO_WAIT, newLedgers, openedLedger } from '../../support/ledgers.ts';

const newLedger = newLedgers();
const FIRST: Pick<DecisionsQuery, 'limit' | 'after'> = { limit: 50, after: undefined };
const START = Date.parse('2026-11-20T08:00:00.000Z');

const at = (milliseconds: number) => new Date(START + milliseconds).toISOString();
const requestIds = (found: readonly StoredDecision[]) => found.map(({ record }) => record.request_id);
const rejectedBy = (filter: string): Partial<DecisionRecord> => ({
  allowed: false,
  outcome: 'rejected',
  filter,
  message: 'No.',
  filters: [saidBy(filter, 'rejected', { message: 'No.', duration_ms: 0.1 })],
});

/** All kinds of decisions: their ids tell their order. */
const KINDS: readonly Partial<DecisionRecord>[] = [
  {},
  rejectedBy('MaxLeasesFilter'),
  { ...rejectedBy('MaxLeasesFilter'), project_id: 'physics', user_id: 'bob' },
  { user_id: 'bob', lease_id: 'lease-1', operation: 'update' },
  { project_name: 'weather', project_domain: 'Default', user_name: 'al', user_domain: 'Default' },
  {
    outcome: 'audit',
    filter: 'TriedFilter',
    lease_id: 'lease-1',
    filters: [
      saidBy('TriedFilter', 'rejected', { audit: true, message: 'Not yet.' }),
      saidBy('OtherFilter', 'allowed'),
    ],
  },
  {
    outcome: 'allowed-on-error',
    filter: 'OtherFilter',
    filters: [saidBy('OtherFilter', 'allowed-on-error')],
  },
  {
    operation: 'end',
    outcome: 'failed',
    filter: 'OtherFilter',
    failed: true,
    filters: [saidBy('OtherFilter', 'failed', { message: 'Not told.' })],
    warnings: ['OtherFilter: Not told.'],
  },
  { operation: 'skypilot.launch' as never, project_id: 'climate' },
  { operation: 'kubernetes.admission', project_id: 'climate', ...rejectedBy('SchedulingPolicy') },
  { project_id: null, user_id: null, operation: 'end' },
];

for (const dialect of DIALECTS) {
  // One ledger is filled from test to test.
  describe(`decisions in a ledger on ${dialect}`, { shuffle: false }, () => {
    let connection: string;
    let ledger: Ledger;
    let table: DecisionTable;
    const written: DecisionRecord[] = [];

    beforeAll(async () => {
      connection = await newLedger(dialect);
      ledger = await ledgerAt(connection);
      table = new DecisionTable(ledger.database, 'host/1');
      const all = Array.from({ length: 90 }, (_, index) =>
        aRecord({
          request_id: `req-${index}`,
          // Some are of the same millisecond.
          time: at(Math.floor(index / 4)),
          ...KINDS[index % KINDS.length],
          ...(KINDS[index % KINDS.length]?.operation?.startsWith('skypilot') && {
            operation: 'skypilot.other',
          }),
        }),
      );
      written.push(...all);
      const json = all.map((record) => rowJson(record, undefined));
      await table.write(json.slice(0, 40), NO_WAIT);
      await table.write(json.slice(40), NO_WAIT);
    });
    afterAll(() => ledger.close());

    const everything = async (query: Partial<DecisionsQuery>, limit = 7) => {
      const found: StoredDecision[] = [];
      for (let after: string | undefined; ; ) {
        const page = await table.search({ ...query, limit, after }, NO_WAIT);
        found.push(...page.items);
        expect(page.items.length).toBeLessThanOrEqual(limit);
        after = page.next;
        if (after === undefined) {
          return found;
        }
      }
    };

    it('are found again as they were, the newest first', async () => {
      const found = await everything({});
      expect(found.map(({ record }) => record)).toEqual([...written].reverse());
      expect(new Set(found.map(({ replica }) => replica))).toEqual(new Set(['host/1']));
    });

    it('are found by what was asked, in pages of any length, as the log is searched', async () => {
      const some = <Value>(...values: Value[]) =>
        fc.option(fc.uniqueArray(fc.constantFrom(...values), { minLength: 1 }), { nil: undefined });
      await fc.assert(
        fc.asyncProperty(
          fc.record({
            projects: some('climate', 'physics', 'weather@Default', 'nobody'),
            users: some('alice', 'bob', 'al@Default'),
            filters: some('MaxLeasesFilter', 'TriedFilter', 'OtherFilter', 'SchedulingPolicy'),
            outcomes: some<DecisionRecord['outcome']>('allowed', 'rejected', 'audit', 'failed'),
            operations: some<DecisionRecord['operation']>('create', 'update', 'end', 'skypilot.other'),
            since: fc.option(fc.integer({ min: START - 1, max: START + 24 }), { nil: undefined }),
            until: fc.option(fc.integer({ min: START - 1, max: START + 24 }), { nil: undefined }),
            leaseId: fc.constantFrom(undefined, undefined, 'lease-1'),
            visible: some('climate', 'physics'),
            limit: fc.integer({ min: 1, max: 30 }),
          }),
          async ({ limit, leaseId, visible, ...selection }) => {
            const seen = visible === undefined ? written : written.map(memberView);
            const expected = seen.filter(
              (record) =>
                isSelected(record, selection) &&
                (leaseId === undefined || record.lease_id === leaseId) &&
                (visible === undefined ||
                  (record.project_id !== null &&
                    visible.includes(record.project_id) &&
                    !/\./.test(record.operation))),
            );
            const found = await everything({ ...selection, leaseId, visible }, limit);
            expect(found.map(({ record }) => record)).toEqual(expected.reverse());
          },
        ),
        { numRuns: 60 },
      );
    });

    it('are found by request id, and by what is newer', async () => {
      const [found] = (await table.search({ ...FIRST, requestId: 'req-17' }, NO_WAIT)).items;
      expect(found?.record).toEqual(written[17]);
      const newest = await table.newest(NO_WAIT);
      await table.write([rowJson(aRecord({ request_id: 'late', time: at(-1000) }), undefined)], NO_WAIT);
      expect(await table.newest(NO_WAIT)).toBeGreaterThan(newest);
      const newer = await table.search({ ...FIRST, newerThan: newest }, NO_WAIT);
      expect(requestIds(newer.items)).toEqual(['late']);
      // By the clocks, it is the oldest.
      expect((await everything({})).at(-1)?.record.request_id).toBe('late');
    });

    it('of other replicas are changes, and their own are none', async () => {
      const after = await table.newest(NO_WAIT);
      const other = new DecisionTable(ledger.database, 'other/1');
      await table.write([rowJson(aRecord({ request_id: 'own', time: at(-3000) }), undefined)], NO_WAIT);
      expect(await table.changesSince(after, NO_WAIT)).toEqual({ newest: after + 1n, decided: [] });
      expect(await other.changesSince(after, NO_WAIT)).toEqual({
        newest: after + 1n,
        decided: [{ operation: 'create', project_id: 'climate' }],
      });
      expect((await other.changesSince(after + 1n, NO_WAIT)).decided).toEqual([]);
    });

    it('are not all that tells which projects were written last', async () => {
      const before = await table.revisions(NO_WAIT);
      await giveBudget(ledger, { projectId: 'late', amount: '5' });
      const after = await table.revisions(NO_WAIT);
      expect([before.get('late'), after.get('late')]).toEqual([undefined, 1n]);
      expect([ledger.hasSeen('late', 1n), ledger.hasSeen('late', 2n)]).toEqual([true, false]);
    });

    it('are kept with the replicas that are there, until they go or are not heard of', async () => {
      const facts = { version: '1.2.3', generation: 1, digest: 'abc' };
      const { database } = await ledgerAt(connection);
      const other = new DecisionTable(database, 'other/1');
      await table.present(facts, NO_WAIT);
      await other.present({ ...facts, generation: 7 }, NO_WAIT);
      const own = { ...facts, name: 'host/1', isSelf: true };
      const second = { ...facts, generation: 7, name: 'other/1', isSelf: false };
      expect(await table.replicas(NO_WAIT)).toEqual([own, second]);
      await table.present({ ...facts, generation: 2 }, NO_WAIT);
      expect(await table.replicas(NO_WAIT)).toEqual([{ ...own, generation: 2 }, second]);
      await other.close();
      expect(await table.replicas(NO_WAIT)).toEqual([{ ...own, generation: 2 }]);
      const silent = ledger.database.queries
        .updateTable('replicas')
        .set({ seen_at: sql<bigint>`seen_at - 30000000` });
      await ledger.database.transact(() => rows(silent.compile()), NO_WAIT);
      expect(await table.replicas(NO_WAIT)).toEqual([]);
      await table.present(facts, NO_WAIT);
      expect(await table.replicas(NO_WAIT)).toEqual([own]);
    });

    it('have what a refused lease asked for, as far as it was kept', async () => {
      const asked = { start: 1_764_000_000_000_000n, end: 253_402_300_799_999_999n };
      const host = (properties: string) => [
        { resource_type: 'physical:host', min: 1, resource_properties: properties },
      ];
      const whole = aRecord({ request_id: 'whole', time: at(-2000) });
      await table.write([rowJson(whole, { ...asked, reservations: host('["=", "\ud800\0"]') })], NO_WAIT);
      const [kept] = (await table.search({ ...FIRST, requestId: 'whole' }, NO_WAIT)).items;
      expect(kept?.record).toEqual(whole);
      expect(kept?.asked).toEqual({ ...asked, reservations: host('["=", "\ufffd\ufffd"]') });
      const dated = aRecord({ request_id: 'dated', time: at(-2000) });
      await table.write([rowJson(dated, asked)], NO_WAIT);
      const [found] = (await table.search({ ...FIRST, requestId: 'dated' }, NO_WAIT)).items;
      expect(found?.asked).toEqual(asked);
      const isThere = (record: DecisionRecord) => table.has(rowJson(record, undefined), NO_WAIT);
      expect(await isThere(dated)).toBe(true);
      expect(await isThere({ ...dated, time: at(-2001) })).toBe(false);
    });

    it('are none where nothing is visible, and for texts that no database keeps', async () => {
      for (const query of [
        { visible: [] },
        { projects: ['physics'], visible: ['climate'] },
        { projects: ['clim\0ate'] },
        { users: ['\ud800'] },
        { requestId: 'req-1\0' },
        { filters: [] },
      ]) {
        expect(await table.search({ ...FIRST, ...query }, NO_WAIT)).toEqual({ items: [], next: undefined });
      }
    });

    const WITHOUT_TIME = Buffer.from('[null,"#1"]').toString('base64url');

    it.each(['x', cursorOf(['a', 1n]), cursorOf([1n]), cursorOf([2n ** 63n, 1n]), WITHOUT_TIME])(
      'refuse the cursor %s',
      async (after) => {
        await expect(table.search({ limit: 1, after }, NO_WAIT)).rejects.toThrow(CursorError);
      },
    );

    it('keep hostile texts readable, and are not found by what these would become', async () => {
      const hostile = aRecord({
        request_id: 'hostile',
        project_id: 'cli\0mate',
        user_id: 'al\ud800ice',
        lease_name: "'; drop table decisions --",
        message: '\\u0000 \udc00 \u0000',
        filter: 'A\0B',
        outcome: 'failed',
        time: at(-3000),
        lease_id: `${'é'.repeat(255)}…`,
      });
      await table.write([rowJson(hostile, undefined)], NO_WAIT);
      const [found] = (await table.search({ ...FIRST, requestId: 'hostile' }, NO_WAIT)).items;
      expect(found?.record).toEqual({
        ...hostile,
        project_id: 'cli\ufffdmate',
        user_id: 'al\ufffdice',
        filter: 'A\ufffdB',
        message: '\\u0000 \ufffd \ufffd',
      });
      for (const query of [
        { visible: ['cli\ufffdmate'] },
        { projects: ['cli\ufffdmate'] },
        { users: ['al\ufffdice'] },
        { leaseId: hostile.lease_id ?? '' },
      ]) {
        expect((await table.search({ ...FIRST, ...query }, NO_WAIT)).items).toEqual([]);
      }
    });
  });
}

// SQLite prepares each statement once, and keeps it.
it('writing to SQLite uses few statements, whatever the size of a batch', async () => {
  const ledger = await openedLedger(await newLedger('sqlite'));
  const table = new DecisionTable(ledger.database, 'host/1');
  const statements = new Set<string>();
  const transact = ledger.database.transact.bind(ledger.database);
  vi.spyOn(ledger.database, 'transact').mockImplementation((work, wait) =>
    transact(function* () {
      const running = work();
      let step = running.next();
      while (step.done !== true) {
        statements.add(step.value.sql);
        step = running.next(yield step.value);
      }
      return step.value;
    }, wait),
  );
  const all: DecisionRecord[] = [];
  for (const size of [1, 2, 3, 7, 37, 64, 65, 127, 256]) {
    const batch = Array.from({ length: size }, (_, index) =>
      aRecord({ request_id: `${size}-${index}`, time: at(0), ...KINDS[(index + size) % KINDS.length] }),
    );
    all.push(...batch);
    await table.write(
      batch.map((record) => rowJson(record, undefined)),
      NO_WAIT,
    );
  }
  expect(statements.size).toBeLessThanOrEqual(14);
  for (const filters of [
    undefined,
    ...['MaxLeasesFilter', 'TriedFilter', 'OtherFilter'].map((one) => [one]),
  ]) {
    const { items } = await table.search({ filters, limit: 1000, after: undefined }, NO_WAIT);
    expect(items.map(({ record }) => record)).toEqual(
      all.filter((record) => isSelected(record, { filters })).reverse(),
    );
  }
});

it.each(DIALECTS)(
  'old decisions on %s are removed in parts, those that are too old and those that are too many',
  async (dialect) => {
    const ledger = await ledgerAt(await newLedger(dialect));
    try {
      const table = new DecisionTable(ledger.database, 'host/1');
      const aged = (days: number, index: number) =>
        rowJson(
          aRecord({
            request_id: `${days}-${index}`,
            time: new Date(Date.now() - days * 86_400_000).toISOString(),
            ...rejectedBy('MaxLeasesFilter'),
          }),
          undefined,
        );
      for (const [days, length] of [
        [3, 400],
        [1, 30],
      ] as const) {
        const batch = Array.from({ length }, (_, index) => aged(days, index));
        await table.write(batch, NO_WAIT);
      }
      const removed: number[] = [];
      const trim = async (days: number, most: number) => {
        removed.length = 0;
        for (let more = -1; more !== 0; removed.push(more)) {
          more = await table.trim({ days, most }, NO_WAIT);
        }
      };
      const left = async () => {
        const { items } = await table.search({ limit: 1000, after: undefined }, NO_WAIT);
        const filters = ledger.database.queries.selectFrom('decision_filters').select('decision').compile();
        expect(await ledger.database.read(() => rows(filters), NO_WAIT)).toHaveLength(items.length);
        return requestIds(items);
      };
      await trim(4, 430);
      expect(removed).toEqual([0]);
      await trim(2, 430);
      expect(removed).toEqual([...Array(8).fill(50), 0]);
      expect(await left()).toHaveLength(30);
      await trim(2, 5);
      expect(await left()).toEqual(['1-29', '1-28', '1-27', '1-26', '1-25']);
    } finally {
      await ledger.close();
    }
  },
);
