import { describe, expect, it } from 'vitest';
import type { DecisionRecord, FilterRecord } from '../../src/decisions/record.ts';
import { Statistics } from '../../src/decisions/statistics.ts';
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
