/** Budgets over time: taken, planned and left, as a chart and as a table. */
import { formatUnitHours } from '../../../filter/amount.ts';
import type { FoldedTotals } from '../../../ledger/folding/totals.ts';
import type { BudgetCourse } from '../../../ledger/reports/usage-over-time.ts';
import { Chart } from '../chart.tsx';
import { courseRows, courseSeries } from './course-series.ts';
import { PartOnly } from './folded-leases.tsx';

interface CourseChartProps {
  readonly courses: readonly BudgetCourse[];
  readonly folded: FoldedTotals | undefined;
  readonly unit: string;
}

export function CourseChart({ courses, folded, unit }: CourseChartProps) {
  const rows = courseRows(courses);
  const last = rows.at(-1);
  const partial = courses.filter(({ isPartial }) => isPartial);
  const from = partial
    .flatMap(({ points }) => points[0]?.at ?? [])
    .reduce<bigint | undefined>(least, undefined);
  const notice = partial.length > 0 && <PartOnly from={from} folded={folded} />;
  if (last === undefined) {
    return notice || <p>The project has no budget of its own in this time.</p>;
  }
  const { times, taken, planned, left, budget } = courseSeries(rows);
  const end = `At the end of what is shown, ${formatUnitHours(last.used)} of ${formatUnitHours(last.amount)} ${unit} are taken or planned, and ${formatUnitHours(last.left, 'down')} left.`;
  return (
    <>
      {notice}
      <Chart
        id="budget-course"
        title="Taken, planned and left of the budgets of the project"
        description={end}
        times={times}
        unit={unit}
        now={Number(courses[0]?.now ?? 0n)}
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
