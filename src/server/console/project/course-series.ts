/** Budgets over time as rows of numbers: for the chart, and for the table of the same. */
import type { Amount } from '../../../filter/amount.ts';
import type { BudgetCourse } from '../../../ledger/reports/usage-over-time.ts';

/** One moment; amounts in millionths of a unit times seconds. */
export interface CourseRow {
  /** Seconds of the epoch. */
  readonly at: bigint;
  /** What leases have used, or will have used at a later time. */
  readonly used: Amount;
  /** Whether this time is still to come: `used` is then as planned. */
  readonly isPlanned: boolean;
  readonly left: Amount;
  readonly amount: Amount;
  readonly budget: bigint;
}

/** In the order of time, one budget after the other: those of one owner never overlap. */
export function courseRows(courses: readonly BudgetCourse[]): CourseRow[] {
  return [...courses]
    .sort((a, b) => (a.validFrom < b.validFrom ? -1 : 1))
    .flatMap(({ budget, amount, now, points }) =>
      points.map(({ at, used }) => ({
        ...{ at, used, budget, amount },
        isPlanned: at > now,
        left: amount - used,
      })),
    );
}

const UNIT_HOUR = 3_600_000_000;

/** For a picture only: rounded to what a number holds. */
export function unitHours(amount: Amount): number {
  return Number(amount) / UNIT_HOUR;
}

export interface CourseSeries {
  /** Seconds of the epoch. */
  readonly times: readonly number[];
  /** `null` = nothing is drawn there. */
  readonly taken: readonly (number | null)[];
  readonly planned: readonly (number | null)[];
  readonly left: readonly (number | null)[];
  readonly budget: readonly (number | null)[];
}

/** Lines of one budget are not joined with those of the next: between them there is a time without a value. */
export function courseSeries(rows: readonly CourseRow[]): CourseSeries {
  const series = {
    times: [] as number[],
    taken: [] as (number | null)[],
    planned: [] as (number | null)[],
    left: [] as (number | null)[],
    budget: [] as (number | null)[],
  };
  const add = (
    time: number,
    values: readonly [number | null, number | null, number | null, number | null],
  ) => {
    // The library wants times that rise.
    const last = series.times.at(-1);
    series.times.push(last !== undefined && time <= last ? last + 1 : time);
    series.taken.push(values[0]);
    series.planned.push(values[1]);
    series.left.push(values[2]);
    series.budget.push(values[3]);
  };
  for (const [index, row] of rows.entries()) {
    const next = rows[index + 1];
    const used = unitHours(row.used);
    // The line of what is planned begins where that of what was taken ends.
    const isLastTaken =
      !row.isPlanned && (next === undefined || next.isPlanned || next.budget !== row.budget);
    add(Number(row.at), [
      row.isPlanned ? null : used,
      row.isPlanned || isLastTaken ? used : null,
      unitHours(row.left),
      unitHours(row.amount),
    ]);
    if (next !== undefined && next.budget !== row.budget) {
      add(Number(row.at) + 1, [null, null, null, null]);
    }
  }
  return series;
}
