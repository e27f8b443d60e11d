/** The page of a project. */

import { formatUnitHours } from '../../../filter/claim.ts';
import type { Instant } from '../../../lease/dates.ts';
import type { BudgetView } from '../../../ledger/budgets/view.ts';
import type { FoldedTotals } from '../../../ledger/folding/totals.ts';
import type { LeaseRowView } from '../../../ledger/reports/leases.ts';
import type { PageOf } from '../../../ledger/reports/pages.ts';
import type { BudgetOverTime } from '../../../ledger/reports/usage-over-time.ts';
import type { FilterLimits } from '../../api/project-limits.ts';
import { AWAY, type FoundDecision, type FoundDecisions } from '../decisions/found-decisions.ts';
import { pathWith, projectPath } from '../page.ts';
import { Pager } from '../parts/pager.tsx';
import { Account, Message, Section, Span, Table, Whose } from '../parts/parts.tsx';
import { BudgetBar, Patterns } from '../parts/pictures.tsx';
import { shownDate } from '../parts/time-scale.ts';
import { BudgetChart } from './budget-chart.tsx';
import { calendarPath } from './calendar-page.tsx';
import {
  FoldedLeases,
  LeasesTable,
  LimitsTable,
  RefusalsTable,
  type UsageData,
  UsageTables,
} from './tables.tsx';
import type { TimeWindow } from './time-window.ts';
import { Timeline, type TimelineRow } from './timeline.tsx';

export function ProjectView(data: ProjectData) {
  const { projectId, isNamed, window, unit, may } = data;
  return (
    <>
      <Patterns />
      <div class="state">
        {isNamed && <Account kind="project" id={projectId} />}
        <nav aria-label="This project" class="pages">
          {may.estimate && <a href={pathWith('/try', { project: projectId })}>Try a lease</a>}
          <a href={pathWith('/budgets', { project: projectId })}>
            {may.setBudgets ? 'Set budgets' : 'All budgets'}
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
        <LimitsTable limits={data.limits} isExempt={data.isExempt} showsOrigins={may.seeConfiguration} />
      </Section>
    </>
  );
}

function BudgetsNow({ projectId, budgets, unit }: ProjectData) {
  return (
    <Section id="budgets" title="Budgets in force" isLive>
      <Table
        label="Budgets in force now"
        columns={[
          ['Whose', 'who', ({ userId }) => <Whose userId={userId} />],
          ['Left', undefined, (budget) => <BudgetBar {...budget} unit={unit} />],
          [`Budget (${unit})`, 'number', ({ amount }) => formatUnitHours(amount)],
          ['Valid (UTC)', 'time', (budget) => <Span from={budget.validFrom} until={budget.validUntil} />],
        ]}
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
        rows={[...leases.items.map(laneOf), ...refusedLanes(refusals.items, window)]}
        href={(parameters) => pathWith(here, parameters, 'leases')}
      />
      {folded !== undefined && window.from < folded.until && <FoldedLeases {...folded} />}
      {leases.items.length > 0 && <LeasesTable leases={leases.items} unit={unit} />}
      <Pager label="leases" path={here} query={data.query} next={leases.next} />
    </Section>
  );
}

function laneOf({ name, userId, start, end, state }: ProjectData['leases']['items'][number]): TimelineRow {
  return { name, userId, start, end, look: state };
}

/** Maximum number of refusals on the time line. */
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

interface ProjectData {
  readonly projectId: string;
  readonly unit: string;
  /** Whether the name of the project is known. */
  readonly isNamed: boolean;
  /** Microseconds of the epoch. */
  readonly now: Instant;
  readonly window: TimeWindow & { readonly mistake?: string | undefined };
  /** Budgets in force now, the project's own first; the first page. */
  readonly budgets: PageOf<BudgetView>;
  readonly overTime: readonly BudgetOverTime[];
  /** Leases in the window; one page. */
  readonly leases: PageOf<LeaseRowView>;
  /** Leases that are no longer listed. `undefined` = none. */
  readonly folded: FoldedTotals | undefined;
  readonly query: URLSearchParams;
  readonly usage: UsageData;
  /** The latest refusals. */
  readonly refusals: FoundDecisions;
  readonly limits: readonly FilterLimits[];
  readonly isExempt: boolean;
  /** The rights of the caller on this page. */
  readonly may: {
    readonly estimate: boolean;
    readonly seeConfiguration: boolean;
    readonly setBudgets: boolean;
  };
}
