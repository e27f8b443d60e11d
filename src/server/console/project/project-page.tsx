/** The page of a project. */

import { REFUSED } from '../../../decisions/selection.ts';
import { formatUnitHours, unitHours } from '../../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import { type BudgetView, pageOfBudgets } from '../../../ledger/budgets/view.ts';
import { type FoldedTotals, foldedOfProject } from '../../../ledger/folding/totals.ts';
import { listProjectLeases } from '../../../ledger/reports/leases.ts';
import { usagesOf } from '../../../ledger/reports/usage.ts';
import { type BudgetOverTime, budgetsOverTime } from '../../../ledger/reports/usage-over-time.ts';
import { limitsFor } from '../../api/project-limits.ts';
import { learnNames, pathId } from '../../api/shown.ts';
import { ledgerFor } from '../../budgets/named-accounts.ts';
import type { FoundDecision } from '../../leases/lease-history.ts';
import { may } from '../../users/caller.ts';
import { DecisionTable } from '../decisions/decision-table.tsx';
import { AWAY, findDecisions } from '../decisions/found-decisions.ts';
import { type ConsolePage, type PageRequest, pathWith, projectPath } from '../page.ts';
import { listPage, Pager } from '../parts/pager.tsx';
import {
  Account,
  BudgetOwner,
  type Column,
  column,
  Message,
  nameOfFor,
  Section,
  Span,
  Table,
} from '../parts/parts.tsx';
import { BudgetBar, Chart, Patterns } from '../parts/pictures.tsx';
import { shownDate } from '../parts/time-scale.ts';
import { calendarPath } from './calendar-page.tsx';
import { FoldedLeases, LeasesTable, LimitsTable, PartOnly, UsageTables } from './tables.tsx';
import { Timeline, type TimelineRow, type TimeWindow, timeWindow } from './timeline.tsx';

const LEASES = 50;
const BUDGETS = 20;
/** Per budget: as many as a chart can show. */
const POINTS = 120;
const REFUSALS = 20;

export const projectPage: ConsolePage = {
  method: 'GET',
  path: '/projects/{project_id}',
  action: 'see-project',
  answer: async (request) => {
    const data = await dataOf(request);
    return { title: `Project ${data.named?.name ?? data.projectId}`, main: <ProjectView {...data} /> };
  },
};

async function dataOf(request: PageRequest) {
  const { caller, params, query, generation, deadline, unit } = request;
  const projectId = pathId(params, 'project_id');
  const ledger = await ledgerFor(request);
  const now = ledger.now();
  const window = timeWindow(query, now);
  const { after } = listPage(query);
  // Sequential: a page must not take several database connections from lease requests.
  const wanted = { projectId, limit: LEASES, after, from: window.from, until: window.until };
  const leases = await listProjectLeases(ledger, wanted, deadline);
  const inForce = { projectIds: [projectId], validAt: now / MICROSECONDS_PER_SECOND };
  const folded = await foldedOfProject(ledger, projectId, deadline);
  const budgets = await pageOfBudgets(ledger, { ...inForce, limit: BUDGETS, after: undefined }, deadline);
  const seconds = {
    projectId,
    from: window.from / MICROSECONDS_PER_SECOND,
    until: window.until / MICROSECONDS_PER_SECOND,
  };
  const overTime = await budgetsOverTime(ledger, { ...seconds, points: POINTS }, deadline);
  const usage = await usagesOf(ledger, seconds, ['user', 'resource_type'], deadline);
  // As members see them, whoever the caller is.
  const refusals = await findDecisions(request, {
    visible: [projectId],
    projects: [projectId],
    limit: REFUSALS,
    outcomes: REFUSED,
  });
  await learnNames(request, [
    { projectId },
    ...budgets.items,
    ...leases.items,
    ...usage.user.groups.map(({ key }) => ({ userId: key })),
    ...refusals.items.map(({ record }) => ({ userId: record.user_id })),
  ]);
  return {
    projectId,
    named: nameOfFor(generation, caller)('project', projectId),
    unit,
    caller,
    query,
    now,
    window,
    leases,
    folded,
    budgets,
    overTime,
    usage,
    refusals,
    limits: limitsFor(request, projectId),
  };
}

type ProjectData = Awaited<ReturnType<typeof dataOf>>;

function ProjectView(data: ProjectData) {
  const { projectId, caller, window, unit } = data;
  return (
    <>
      <Patterns />
      <div class="state">
        {data.named !== undefined && <Account kind="project" id={projectId} />}
        <nav aria-label="This project" class="pages">
          {may(caller, 'estimate', projectId) && (
            <a href={pathWith('/try', { project: projectId })}>Try a lease</a>
          )}
          <a href={pathWith('/budgets', { project: projectId })}>
            {may(caller, 'set-user-budget', projectId) ? 'Set budgets' : 'All budgets'}
          </a>
          <a href={pathWith('/budgets/requests', { project: projectId })}>Budget requests</a>
          <a href={calendarPath(projectId)}>Calendar</a>
          <a href="/projects">All projects</a>
        </nav>
        {window.mistake !== undefined && <Message kind="error">{window.mistake}</Message>}
      </div>
      <BudgetsNow {...data} />
      <Section id="course" title="Budgets over time" isLive>
        <BudgetChart overTime={data.overTime} folded={data.folded} unit={unit} />
      </Section>
      <LeasesSection {...data} />
      <Section id="usage" title="Usage" isLive>
        <p class="hint">
          Past and planned, from {shownDate(window.from)} to {shownDate(window.until)}.
        </p>
        <UsageTables usage={data.usage} unit={unit} />
      </Section>
      <Section id="refusals" title="Refusals" isLive>
        {data.refusals.of === 'away' && <Message kind="error">{AWAY}</Message>}
        <DecisionTable
          label="Refused leases"
          decisions={data.refusals.items}
          isForMember
          empty="No refusal is recorded."
        />
        <p>
          <a href={pathWith('/decisions', { project: projectId })}>Search decisions of this project</a>
        </p>
      </Section>
      <Section id="limits" title="Limits">
        <LimitsTable {...data.limits} showsOrigins={may(caller, 'see-configuration')} />
      </Section>
    </>
  );
}

function BudgetsNow({ projectId, budgets, unit }: ProjectData) {
  const columns: readonly Column<BudgetView>[] = [
    column('Owner', 'who', ({ userId }) => <BudgetOwner userId={userId} />),
    column('Left', undefined, (budget) => <BudgetBar {...budget} unit={unit} />),
    column(`Budget (${unit})`, 'number', ({ amount }) => formatUnitHours(amount)),
    column('Valid (UTC)', 'time', (budget) => <Span from={budget.validFrom} until={budget.validUntil} />),
  ];
  return (
    <Section id="budgets" title="Budgets in force" isLive>
      <Table
        label="Budgets in force now"
        columns={columns}
        rows={budgets.items}
        empty="No budget of this project, or of a user in it, is in force."
      />
      {budgets.next !== undefined && (
        <p>
          <a href={pathWith('/budgets', { project: projectId })}>All budgets of this project</a>
        </p>
      )}
    </Section>
  );
}

function LeasesSection(data: ProjectData) {
  const { projectId, window, now, leases, folded, refusals, unit } = data;
  const here = projectPath(projectId);
  return (
    <Section id="leases" title="Leases" isLive>
      <Timeline
        window={window}
        now={now}
        rows={[
          ...leases.items.map((one) => ({ ...one, look: one.state })),
          ...refusedLanes(refusals.items, window),
        ]}
        href={(parameters) => pathWith(here, parameters, 'leases')}
      />
      {folded !== undefined && window.from < folded.until && <FoldedLeases {...folded} />}
      {leases.items.length > 0 && <LeasesTable leases={leases.items} unit={unit} />}
      <Pager label="leases" path={here} query={data.query} next={leases.next} />
    </Section>
  );
}

const DRAWN = 10;

function refusedLanes(refusals: readonly FoundDecision[], window: TimeWindow): TimelineRow[] {
  return refusals
    .flatMap(({ record: { lease_name: name, user_id: userId, message }, asked }): TimelineRow[] =>
      asked === undefined || asked.end <= window.from || asked.start >= window.until
        ? []
        : [
            {
              name: name ?? '',
              userId,
              start: asked.start,
              end: asked.end,
              look: 'refused',
              reason: message ?? undefined,
            },
          ],
    )
    .slice(0, DRAWN);
}

interface BudgetChartProps {
  readonly overTime: readonly BudgetOverTime[];
  readonly folded: FoldedTotals | undefined;
  readonly unit: string;
}

function BudgetChart({ overTime, folded, unit }: BudgetChartProps) {
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
  const end = `At the end of the chart, ${formatUnitHours(used)} of ${formatUnitHours(last.amount)} ${unit} are taken or planned, and ${formatUnitHours(last.amount - used, 'down')} left.`;
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
