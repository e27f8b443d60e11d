/** The page of a project. */

import { formatUnitHours } from '../../../filter/claim.ts';
import type { Instant } from '../../../lease/dates.ts';
import type { BudgetView } from '../../../ledger/budgets/view.ts';
import type { FoldedTotals } from '../../../ledger/folding/totals.ts';
import type { LeaseRowView } from '../../../ledger/reports/leases.ts';
import type { PageOf } from '../../../ledger/reports/pages.ts';
import type { BudgetOverTime } from '../../../ledger/reports/usage-over-time.ts';
import type { FilterLimits } from '../../api/project-limits.ts';
import { pathWith, projectPath } from '../page.ts';
import { Pager } from '../parts/pager.tsx';
import { Account, LivePart, Message, type NameOf, Span, Table, Whose } from '../parts/parts.tsx';
import { BudgetBar, Patterns } from '../parts/pictures.tsx';
import { shownDate } from '../parts/time-scale.ts';
import { BudgetChart } from './budget-chart.tsx';
import { calendarPath } from './calendar-page.tsx';
import {
  FoldedLeases,
  LeasesTable,
  LimitsTable,
  type Refusal,
  RefusalsTable,
  type UsageData,
  UsageTables,
} from './tables.tsx';
import type { TimeWindow } from './time-window.ts';
import { Timeline, type TimelineRow } from './timeline.tsx';

export function ProjectView(data: ProjectData) {
  const { projectId, nameOf, window, may } = data;
  return (
    <>
      <Patterns />
      <div class="state">
        {nameOf('project', projectId) !== undefined && <Account kind="project" id={projectId} />}
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
      <LivePart name="budgets">
        <BudgetsNow {...data} />
      </LivePart>
      <LivePart name="course">
        <section aria-labelledby="course">
          <h2 id="course">Budgets over time</h2>
          <BudgetChart overTime={data.overTime} folded={data.folded} unit={data.unit} />
        </section>
      </LivePart>
      <LivePart name="leases">
        <LeasesSection {...data} />
      </LivePart>
      <LivePart name="usage">
        <section aria-labelledby="usage">
          <h2 id="usage">Usage</h2>
          <p class="hint">
            Past and planned, from {shownDate(window.from)} to {shownDate(window.until)}.
          </p>
          <UsageTables {...data.usage} unit={data.unit} />
        </section>
      </LivePart>
      <LivePart name="refusals">
        <section aria-labelledby="refusals">
          <h2 id="refusals">Refusals</h2>
          {data.refusals.length === 0 ? (
            <p>No refusal is recorded.</p>
          ) : (
            <RefusalsTable refusals={data.refusals} />
          )}
          <p>
            <a href={data.allRefusalsPath}>Search decisions of this project</a>
          </p>
        </section>
      </LivePart>
      <section aria-labelledby="limits">
        <h2 id="limits">Limits</h2>
        <LimitsTable limits={data.limits} isExempt={data.isExempt} showsOrigins={may.seeConfiguration} />
      </section>
    </>
  );
}

function BudgetsNow({ projectId, budgets, unit }: ProjectData) {
  return (
    <section aria-labelledby="budgets">
      <h2 id="budgets">Budgets in force</h2>
      {budgets.items.length === 0 ? (
        <p>No budget of this project, or of a user in it, is in force.</p>
      ) : (
        <Table
          label="Budgets in force now"
          columns={[
            ['Whose', 'who', ({ userId }) => <Whose userId={userId} />],
            ['Left', undefined, (budget) => <BudgetBar {...budget} unit={unit} />],
            [`Budget (${unit})`, 'number', ({ amount }) => formatUnitHours(amount)],
            ['Valid (UTC)', 'time', (budget) => <Span from={budget.validFrom} until={budget.validUntil} />],
          ]}
          rows={budgets.items}
        />
      )}
      {budgets.next !== undefined && (
        <p>
          <a href={pathWith('/budgets', { project: projectId })}>All budgets of this project</a>
        </p>
      )}
    </section>
  );
}

function LeasesSection(data: ProjectData) {
  const { projectId, window, now, leases, folded, refusals, unit } = data;
  const here = projectPath(projectId);
  return (
    <section aria-labelledby="leases" data-part="leases">
      <h2 id="leases">Leases</h2>
      <Timeline
        window={window}
        now={now}
        rows={[...leases.items.map(laneOf), ...refusedLanes(refusals, window)]}
        href={(parameters) => pathWith(here, parameters, 'leases')}
      />
      {folded !== undefined && window.from < folded.until && <FoldedLeases {...folded} />}
      {leases.items.length > 0 && <LeasesTable leases={leases.items} unit={unit} />}
      <Pager label="leases" path={here} query={data.query} next={leases.next} />
    </section>
  );
}

function laneOf({ name, userId, start, end, state }: ProjectData['leases']['items'][number]): TimelineRow {
  return { name, userId, start, end, look: state };
}

/** Maximum number of refusals on the time line. */
const DRAWN = 10;

function refusedLanes(refusals: readonly Refusal[], window: ProjectData['window']): TimelineRow[] {
  return refusals
    .flatMap(({ record, start, end }): TimelineRow[] =>
      start === undefined || end === undefined || end <= window.from || start >= window.until
        ? []
        : [
            {
              ...{ name: record.lease_name ?? '', userId: record.user_id, start, end },
              ...{ look: 'refused', reason: record.message ?? undefined },
            },
          ],
    )
    .slice(0, DRAWN);
}

interface ProjectData {
  readonly projectId: string;
  readonly unit: string;
  readonly nameOf: NameOf;
  /** Microseconds of the epoch. */
  readonly now: Instant;
  readonly window: TimeWindow & { readonly mistake?: string | undefined };
  /** Those in force now, the project's own first; the first page. */
  readonly budgets: PageOf<BudgetView>;
  readonly overTime: readonly BudgetOverTime[];
  /** Of the window, a page. */
  readonly leases: PageOf<LeaseRowView>;
  /** Leases that no list has any more. `undefined` = none. */
  readonly folded: FoldedTotals | undefined;
  readonly query: URLSearchParams;
  readonly usage: UsageData;
  /** The latest. */
  readonly refusals: readonly Refusal[];
  /** Where all refusals of the project are. */
  readonly allRefusalsPath: string;
  readonly limits: readonly FilterLimits[];
  readonly isExempt: boolean;
  /** What the caller may do here. */
  readonly may: {
    readonly estimate: boolean;
    readonly seeConfiguration: boolean;
    readonly setBudgets: boolean;
  };
}
