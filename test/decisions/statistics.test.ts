import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DecisionRecord, FilterRecord } from '../../src/decisions/record.ts';
import { Durations, Statistics, Tally } from '../../src/decisions/statistics.ts';
import { aRecord, saidBy } from '../support/decision-logs.ts';

function summaryOf(records: readonly DecisionRecord[], listed = 10) {
  const statistics = new Statistics();
  for (const record of records) {
    statistics.add(record);
  }
  return statistics.summary(listed);
}

const said = (outcome: FilterRecord['outcome'], changes: Partial<FilterRecord> = {}) =>
  saidBy('AFilter', outcome, changes);
const refused = { allowed: false, filter: 'AFilter', message: 'no' } as const;

describe('Statistics', () => {
  it('of nothing are nothing', () => {
    expect(summaryOf([])).toMatchObject({
      decisions: 0,
      refused: 0,
      from: null,
      to: null,
      outcomes: [],
      filters: [],
      projects: { rows: [], others: { decisions: 0 } },
      cut: [],
    });
  });

  it('say by whom and why leases were refused', () => {
    const summary = summaryOf([
      aRecord(),
      aRecord({ ...refused, outcome: 'rejected' }),
      aRecord({ ...refused, outcome: 'rejected', user_id: 'bob', project_id: 'genomics' }),
      aRecord({ ...refused, outcome: 'failed', failed: true, message: 'it broke', user_id: 'bob' }),
    ]);
    expect(summary).toMatchObject({
      decisions: 4,
      refused: 3,
      outcomes: [
        { name: ['rejected', 'AFilter'], decisions: 2, refused: 2 },
        { name: ['failed', 'AFilter'], decisions: 1, refused: 1 },
        { name: ['allowed', null], decisions: 1, refused: 0 },
      ],
      projects: {
        rows: [
          { name: 'climate', decisions: 3, refused: 2 },
          { name: 'genomics', decisions: 1, refused: 1 },
        ],
      },
      users: {
        rows: [
          { name: 'bob', decisions: 2, refused: 2 },
          { name: 'alice', decisions: 2, refused: 1 },
        ],
      },
      messages: {
        rows: [
          {
            name: ['AFilter', 'no'],
            decisions: 2,
            users: [
              { user_id: 'alice', decisions: 1 },
              { user_id: 'bob', decisions: 1 },
            ],
          },
          { name: ['AFilter', 'it broke'], decisions: 1, users: [{ user_id: 'bob', decisions: 1 }] },
        ],
      },
    });
  });

  it('say what every audited filter would have told whom, also behind a rejection', () => {
    const tried = (filter: string) => said('rejected', { filter, audit: true, message: `${filter} says no` });
    const both = [said('allowed'), tried('First'), tried('Second')];
    const summary = summaryOf([
      aRecord({ filters: both, outcome: 'audit' }),
      aRecord({ filters: both, outcome: 'audit', user_id: 'bob' }),
      aRecord({ ...refused, filters: [tried('Second')], outcome: 'rejected', user_id: 'bob' }),
    ]);
    const told = summary.audited.rows.map(({ name, users }) => [
      ...name,
      ...users.map(({ user_id, decisions }) => `${user_id} ${decisions}`),
    ]);
    expect(told).toEqual([
      ['Second', 'Second says no', 'bob 2', 'alice 1'],
      ['First', 'First says no', 'alice 1', 'bob 1'],
    ]);
  });

  it('say what each filter did: asked, rejected, failed, allowed on error, would have rejected', () => {
    const audited = { filter: 'TriedFilter', audit: true };
    const summary = summaryOf([
      aRecord({ filters: [said('allowed'), said('allowed', audited)] }),
      aRecord({ filters: [said('allowed'), said('rejected', audited)], outcome: 'audit' }),
      aRecord({ filters: [said('rejected'), said('rejected', audited)], ...refused, outcome: 'rejected' }),
      aRecord({ filters: [said('failed'), said('failed', audited)], ...refused, outcome: 'failed' }),
      aRecord({ filters: [said('allowed-on-error')], outcome: 'allowed-on-error' }),
      aRecord({ filters: [], outcome: 'exempt' }),
    ]);
    const counted = summary.filters.map(
      ({ filter, asked, rejected, failed, allowedOnError, wouldHaveRejected }) =>
        [filter, asked, rejected, failed, allowedOnError, wouldHaveRejected].join(' '),
    );
    expect(counted).toEqual(['AFilter 5 1 1 1 0', 'TriedFilter 4 0 1 0 2']);
  });

  it('span from the first decision to the last, in whatever order the files come', () => {
    const times = ['2026-11-20T08:00:00.000Z', '2026-11-18T08:00:00.000Z', '2026-11-19T08:00:00.000Z'];
    expect(summaryOf(times.map((time) => aRecord({ time })))).toMatchObject({ from: times[1], to: times[0] });
  });

  it('say how long decisions and filters took', () => {
    const records = Array.from({ length: 100 }, (_, index) =>
      aRecord({ duration_ms: index + 1, filters: [said('allowed', { duration_ms: (index + 1) / 10 })] }),
    );
    const { durations, filters } = summaryOf(records);
    expect(durations.p50 / 50).toBeCloseTo(1, 1);
    expect(durations.p90 / 90).toBeCloseTo(1, 1);
    expect(durations.max).toBe(100);
    expect((filters[0]?.durations.p50 ?? 0) / 5).toBeCloseTo(1, 1);
    expect(filters[0]?.durations.max).toBe(10);
  });

  it('list as many names as asked for, and the rest together', () => {
    const records = ['a', 'b', 'b', 'c', 'c', 'c'].map((user_id) => aRecord({ user_id }));
    expect(summaryOf(records, 1).users).toEqual({
      rows: [{ name: 'c', decisions: 3, refused: 0, users: [] }],
      others: { decisions: 3, refused: 0 },
    });
  });

  it('count what nobody has asked for by name as a decision, and as nobody', () => {
    const ofNobody = { operation: 'skypilot.launch', project_id: null, user_id: null } as const;
    const summary = summaryOf([
      aRecord(ofNobody),
      aRecord({ ...ofNobody, outcome: 'changed', filter: 'APolicy' }),
    ]);
    expect(summary).toMatchObject({ decisions: 2, refused: 0, projects: { rows: [] }, users: { rows: [] } });
    expect(summary.outcomes).toContainEqual({
      name: ['changed', 'APolicy'],
      decisions: 1,
      refused: 0,
      users: [],
    });
  });

  it('say of what there was more than can be counted', () => {
    const many = Array.from({ length: 10_001 }, (_, index) =>
      aRecord({
        user_id: `u${index}`,
        project_id: `p${index}`,
        message: `m${index}`,
        filters: index <= 1000 ? [said('allowed', { filter: `F${index}` })] : [],
      }),
    );
    const summary = summaryOf(many);
    expect(summary.cut).toEqual(['filters', 'projects', 'users', 'messages']);
    expect(summary.filters).toHaveLength(1000);
    expect(summary.decisions).toBe(10_001);
    expect(summaryOf(many.slice(0, 1000)).cut).toEqual([]);
  });
});

function quantilesOf(values: readonly number[]) {
  const durations = new Durations();
  for (const value of values) {
    durations.add(value);
  }
  return durations.quantiles();
}

describe('Durations', () => {
  it('has quantiles within a thousandth of what sorting gives, and the longest as it is', () => {
    // The log holds whole microseconds.
    const duration = fc
      .oneof(fc.integer({ min: 1, max: 1000 }), fc.integer({ min: 1, max: 7_200_000_000 }))
      .map((microseconds) => microseconds / 1000);
    fc.assert(
      fc.property(fc.array(duration, { minLength: 1, maxLength: 300 }), (values) => {
        const sorted = values.toSorted((one, other) => one - other);
        const exact = (part: number) =>
          sorted[Math.max(Math.round(part * sorted.length), 1) - 1] ?? Number.NaN;
        const { p50, p90, p99, max } = quantilesOf(values);
        expect(max).toBe(sorted.at(-1));
        for (const [estimated, part] of [
          [p50, 0.5],
          [p90, 0.9],
          [p99, 0.99],
        ] as const) {
          expect(Math.abs(estimated - exact(part)) / exact(part)).toBeLessThanOrEqual(0.001);
        }
      }),
    );
  });

  it('knows a duration of nothing, and none at all', () => {
    expect(quantilesOf([0, 0, 0])).toEqual({ p50: 0, p90: 0, p99: 0, max: 0 });
    expect(quantilesOf([])).toEqual({ p50: 0, p90: 0, p99: 0, max: 0 });
  });

  it('takes durations that are longer than any decision', () => {
    expect(quantilesOf([1e300]).max).toBe(1e300);
    expect(quantilesOf([7_200_001]).p50).toBe(7_200_001);
  });

  it('takes no more memory for a million than for some thousand', () => {
    const durations = new Durations();
    for (let count = 0; count < 1_000_000; count += 1) {
      durations.add((count % 1000) + 0.5);
    }
    const { p50, p99, max } = durations.quantiles();
    expect(p50 / 500).toBeCloseTo(1, 1);
    expect(p99 / 990).toBeCloseTo(1, 1);
    expect(max).toBe(999.5);
  });
});

describe('Tally', () => {
  it('lists first who was refused most, then who has asked most; all others together', () => {
    const tally = new Tally<string>();
    const add = (name: string, decisions: number, refused: number) => {
      for (let count = 0; count < decisions; count += 1) {
        tally.add(name, count < refused);
      }
    };
    add('busy', 9, 0);
    add('lucky', 2, 0);
    add('refused', 3, 3);
    add('half', 4, 2);
    expect(tally.top(2)).toEqual({
      rows: [
        { name: 'refused', decisions: 3, refused: 3, users: [] },
        { name: 'half', decisions: 4, refused: 2, users: [] },
      ],
      others: { decisions: 11, refused: 0 },
    });
    expect(tally.top(10)).toMatchObject({
      rows: [{ name: 'refused' }, { name: 'half' }, { name: 'busy' }, { name: 'lucky' }],
      others: { decisions: 0, refused: 0 },
    });
    expect(tally.isCut).toBe(false);
  });

  it('tells names of several parts apart', () => {
    const tally = new Tally<readonly (string | null)[]>();
    for (const name of [
      ['a', 'b,c'],
      ['a,b', 'c'],
      ['a', null],
      ['a', 'null'],
      ['a', 'b,c'],
    ]) {
      tally.add(name, false);
    }
    expect(tally.top(10).rows.map(({ name, decisions }) => [name, decisions])).toEqual([
      [['a', 'b,c'], 2],
      [['a,b', 'c'], 1],
      [['a', null], 1],
      [['a', 'null'], 1],
    ]);
  });

  it('counts the users of each name, of ten at most', () => {
    const tally = new Tally<string>();
    for (let index = 0; index < 12; index += 1) {
      tally.add('busy', true, `u${index}`);
    }
    tally.add('busy', true, 'u3');
    tally.add('busy', true, null);
    const { rows } = tally.top(1);
    expect(rows[0]?.decisions).toBe(14);
    expect(rows[0]?.users).toHaveLength(10);
    expect(rows[0]?.users[0]).toEqual({ user_id: 'u3', decisions: 2 });
  });

  it('is not led astray by names that objects have', () => {
    const tally = new Tally<string>();
    for (const name of ['__proto__', 'constructor', '', 'toString']) {
      tally.add(name, true);
    }
    expect(tally.top(10).rows).toHaveLength(4);
  });

  it('counts no more than 10,000 names each by its own, and says that there were more', () => {
    const tally = new Tally<string>();
    for (let name = 0; name < 10_000; name += 1) {
      tally.add(String(name), false);
    }
    expect(tally.isCut).toBe(false);
    for (let name = 0; name < 20_000; name += 1) {
      tally.add(String(name), true);
    }
    expect(tally.isCut).toBe(true);
    const { rows, others } = tally.top(Number.POSITIVE_INFINITY);
    expect(rows).toHaveLength(10_000);
    expect(rows.every(({ decisions, refused }) => decisions === 2 && refused === 1)).toBe(true);
    expect(others).toEqual({ decisions: 10_000, refused: 10_000 });
  });
});
