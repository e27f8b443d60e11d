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
  // Budgets of one owner never overlap.
  const budgets = overTime
    .filter(({ points }) => points.length > 0)
    .sort((a, b) => (a.validFrom < b.validFrom ? -1 : 1));
  const notice = overTime.some(({ isPartial }) => isPartial) && (
    <PartOnly from={budgets.find(({ isPartial }) => isPartial)?.points[0]?.at} folded={folded} />
  );
  const last = budgets.at(-1);
  if (last === undefined) {
    return notice || <p>The project has no budget of its own in this time.</p>;
  }
  const points = chartPoints(budgets);
  const used = last.points.at(-1)?.used ?? 0n;
  const end = `At the end of what is shown, ${formatUnitHours(used)} of ${formatUnitHours(last.amount)} ${unit} are taken or planned, and ${formatUnitHours(last.amount - used, 'down')} left.`;
  return (
    <>
      {notice}
      <Chart
        id="budget-course"
        title="Budget over time"
        description={end}
        times={points.map(({ time }) => time)}
        unit={unit}
        now={Number(last.now)}
        series={[
          { label: 'Taken', look: 'used', form: 'area', values: points.map(({ taken }) => taken) },
          { label: 'Planned', look: 'planned', form: 'area', values: points.map(({ planned }) => planned) },
          { label: 'Left', look: 'left', form: 'line', values: points.map(({ left }) => left) },
          { label: 'Budget', look: 'limit', form: 'steps', values: points.map(({ budget }) => budget) },
        ]}
      />
    </>
  );
}

/** The values of each line at a time; `null` = gap. */
interface ChartPoint {
  /** Seconds of the epoch. */
  readonly time: number;
  readonly taken: number | null;
  readonly planned: number | null;
  readonly left: number | null;
  readonly budget: number | null;
}

const NOTHING = { taken: null, planned: null, left: null, budget: null };

/** The points of all budgets in order. A point without values separates the lines of two budgets. */
export function chartPoints(budgets: readonly BudgetOverTime[]): ChartPoint[] {
  const found = budgets.flatMap((one, index) => {
    const points = pointsOf(one);
    const gap = { time: (points.at(-1)?.time ?? 0) + 1, ...NOTHING };
    return index === budgets.length - 1 ? points : [...points, gap];
  });
  // uPlot requires ascending times.
  let before = Number.NEGATIVE_INFINITY;
  return found.map((point) => {
    before = Math.max(point.time, before + 1);
    return { ...point, time: before };
  });
}

function pointsOf({ amount, now, points }: BudgetOverTime): ChartPoint[] {
  return points.map(({ at, used }, index) => {
    const isPlanned = at > now;
    // The planned line begins where the taken line ends.
    const isLastTaken = !isPlanned && (points[index + 1]?.at ?? now + 1n) > now;
    return {
      time: Number(at),
      taken: isPlanned ? null : unitHours(used),
      planned: isPlanned || isLastTaken ? unitHours(used) : null,
      left: unitHours(amount - used),
      budget: unitHours(amount),
    };
  });
}

const UNIT_HOUR = 3_600_000_000;

/** Only for charts: rounded to the precision of a number. */
function unitHours(amount: Amount): number {
  return Number(amount) / UNIT_HOUR;
}
