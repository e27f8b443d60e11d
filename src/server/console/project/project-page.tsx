/** The page of a project. */
import { budgetUnit } from '../../../enforcement/configuration.ts';
import { formatUnitHours } from '../../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import { type BudgetView, pageOfBudgets } from '../../../ledger/budgets/view.ts';
import { foldedOfProject } from '../../../ledger/folding/totals.ts';
import { listProjectLeases } from '../../../ledger/reports/leases.ts';
import { usageOf } from '../../../ledger/reports/usage.ts';
import { budgetsOverTime } from '../../../ledger/reports/usage-over-time.ts';
import { limitsFor } from '../../api/project-limits.ts';
import { pathId } from '../../api/shown.ts';
import { ledgerFor } from '../../budgets/named-accounts.ts';
import { may } from '../../users/caller.ts';
import { AWAY, type FoundDecision, findDecisions } from '../decisions/found-decisions.ts';
import { type ConsolePage, type PageRequest, pathWith, projectPath } from '../page.ts';
import { listPage, Pager } from '../parts/pager.tsx';
import {
  Account,
  type Column,
  column,
  learnNames,
  Message,
  nameOfFor,
  Section,
  Span,
  Table,
  Whose,
} from '../parts/parts.tsx';
import { BudgetBar, Patterns } from '../parts/pictures.tsx';
import { shownDate } from '../parts/time-scale.ts';
import { BudgetChart } from './budget-chart.tsx';
import { calendarPath } from './calendar-page.tsx';
import { FoldedLeases, LeasesTable, LimitsTable, RefusalsTable, UsageTables } from './tables.tsx';
import { type TimeWindow, timeWindow } from './time-window.ts';
import { Timeline, type TimelineRow } from './timeline.tsx';

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
  const { caller, params, query, generation, deadline } = request;
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
  const usage = {
    byUser: await usageOf(ledger, { ...seconds, groupBy: 'user' }, deadline),
    byType: await usageOf(ledger, { ...seconds, groupBy: 'resource_type' }, deadline),
  };
  // As members see them, whoever the caller is.
  const refusals = await findDecisions(request, {
    visible: [projectId],
    projects: [projectId],
    limit: REFUSALS,
    outcomes: ['rejected', 'failed'],
  });
  await learnNames(generation, [
    { projectId },
    ...budgets.items,
    ...leases.items,
    ...usage.byUser.groups.map(({ key }) => ({ userId: key })),
    ...refusals.items.map(({ record }) => ({ userId: record.user_id })),
  ]);
  return {
    projectId,
    named: nameOfFor(generation, caller)('project', projectId),
    unit: budgetUnit(generation.configuration),
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
          <a href={pathWith('/budgets/requests', { project: projectId })}>Requests for budget</a>
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
        <UsageTables {...data.usage} unit={unit} />
      </Section>
      <Section id="refusals" title="Refusals" isLive>
        {data.refusals.of === 'away' && <Message kind="error">{AWAY}</Message>}
        <RefusalsTable refusals={data.refusals.items} />
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
    column('Whose', 'who', ({ userId }) => <Whose userId={userId} />),
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
