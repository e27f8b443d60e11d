/** Totals of earlier reports: what is kept, and how much. */
import { expect, it } from 'vitest';
import { TotalsCache } from '../../../../src/ledger/reports/usage/report.ts';
import type { Totals, UsageReportQuery, UsageRow } from '../../../../src/ledger/reports/usage/sums.ts';

const ROW: UsageRow = {
  projectId: null,
  userId: null,
  resourceType: null,
  from: 0n,
  until: 100n,
  amount: 1n,
  userAmount: 0n,
  resourceSeconds: 0n,
  leases: 1,
  endedEarly: 0,
  unusedSeconds: 0n,
};
const TOTALS: Totals = { rows: [ROW], unknown: 0, first: undefined, last: undefined };
const QUERY: UsageReportQuery = { projectIds: undefined, from: 0n, until: 100n, by: 'project' };

const of = (kept: TotalsCache) => kept.of({ query: QUERY, budgets: new Map() });
const block = (after: bigint) => ({
  range: { after, last: after + 10n },
  checksum: '1',
  from: 10n,
  until: 20n,
  mayCount: true,
});

it('keeps no more than so many rows: those that were used last', () => {
  const kept = new TotalsCache(4);
  of(kept).keep(undefined, block(1n), TOTALS);
  of(kept).keep(undefined, block(2n), TOTALS);
  expect(of(kept).find(undefined, block(1n))).toBe(TOTALS);
  expect(of(kept).find('climate', block(1n))).toBeUndefined();
  of(kept).keep(undefined, block(3n), TOTALS);
  expect([1n, 2n, 3n].map((after) => of(kept).find(undefined, block(after)))).toEqual([
    TOTALS,
    undefined,
    TOTALS,
  ]);
  // Also those without any rows, or with too many.
  for (let after = 4n; after < 9n; after += 1n) {
    of(kept).keep(undefined, block(after), { ...TOTALS, rows: [] });
  }
  expect(of(kept).find(undefined, block(4n))).toBeUndefined();
  of(kept).keep(undefined, block(9n), { ...TOTALS, rows: [ROW, ROW, ROW, ROW] });
  expect([8n, 9n].map((after) => of(kept).find(undefined, block(after)))).toEqual([undefined, undefined]);
});
