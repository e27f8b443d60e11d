/** Budgets over time: taken, planned and left, as a chart and as a table. */
import { type Amount, formatUnitHours } from '../../../filter/claim.ts';
import type { FoldedTotals } from '../../../ledger/folding/totals.ts';
import type { BudgetOverTime } from '../../../ledger/reports/usage-over-time.ts';
import { Chart } from '../parts/pictures.tsx';
import { PartOnly } from './tables.tsx';

interface BudgetChartProps {
  readonly overTime: readonly BudgetOverTime[];
  readonly folded: FoldedTotals | undefined;
  readonly unit: string;
}

export function BudgetChart({ overTime, folded, unit }: BudgetChartProps) {
  const rows = chartRows(overTime);
  const last = rows.at(-1);
  const partial = overTime.filter(({ isPartial }) => isPartial);
  const from = partial
    .flatMap(({ points }) => points[0]?.at ?? [])
    .reduce<bigint | undefined>(least, undefined);
  const notice = partial.length > 0 && <PartOnly from={from} folded={folded} />;
  if (last === undefined) {
    return notice || <p>The project has no budget of its own in this time.</p>;
  }
  const { times, taken, planned, left, budget } = budgetSeries(rows);
  const end = `At the end of what is shown, ${formatUnitHours(last.used)} of ${formatUnitHours(last.amount)} ${unit} are taken or planned, and ${formatUnitHours(last.left, 'down')} left.`;
  return (
    <>
      {notice}
      <Chart
        id="budget-course"
        title="Budget over time"
        description={end}
        times={times}
        unit={unit}
        now={Number(overTime[0]?.now ?? 0n)}
        series={[
          { label: 'Taken', look: 'used', form: 'area', values: taken },
          { label: 'Planned', look: 'planned', form: 'area', values: planned },
          { label: 'Left', look: 'left', form: 'line', values: left },
          { label: 'Budget', look: 'limit', form: 'steps', values: budget },
        ]}
      />
    </>
  );
}

function least(one: bigint | undefined, other: bigint): bigint {
  return one === undefined || other < one ? other : one;
}

/** One moment; amounts in millionths of a unit times seconds. */
interface ChartRow {
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
export function chartRows(overTime: readonly BudgetOverTime[]): ChartRow[] {
  return [...overTime]
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
function unitHours(amount: Amount): number {
  return Number(amount) / UNIT_HOUR;
}

interface BudgetSeries {
  /** Seconds of the epoch. */
  readonly times: readonly number[];
  /** `null` = nothing is drawn there. */
  readonly taken: readonly (number | null)[];
  readonly planned: readonly (number | null)[];
  readonly left: readonly (number | null)[];
  readonly budget: readonly (number | null)[];
}

/** Lines of one budget are not joined with those of the next: between them there is a time without a value. */
export function budgetSeries(rows: readonly ChartRow[]): BudgetSeries {
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
