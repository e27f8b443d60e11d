import { budgetUnit } from '../../../enforcement/configuration.ts';
import { MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import { pageOfBudgets } from '../../../ledger/budgets/view.ts';
import { foldedOfProject } from '../../../ledger/folding/totals.ts';
import { listProjectLeases } from '../../../ledger/reports/leases.ts';
import { usageOf } from '../../../ledger/reports/usage.ts';
import { budgetsOverTime } from '../../../ledger/reports/usage-over-time.ts';
import { isExempt, projectLimits } from '../../api/project-limits.ts';
import { pathId } from '../../api/shown.ts';
import { ledgerFor } from '../../budgets/named-accounts.ts';
import { may } from '../../users/caller.ts';
import { type FoundDecisions, findDecisions } from '../decisions/found-decisions.ts';
import type { ConsolePage, PageRequest } from '../page.ts';
import { listPage } from '../parts/pager.tsx';
import { learnNames, nameOfFor } from '../parts/parts.tsx';
import { ProjectView } from './project-view.tsx';
import { timeWindow } from './time-window.ts';

/** Leases per page. */
const LEASES = 50;
const BUDGETS = 20;
/** Per budget: as many as a chart can show. */
const POINTS = 120;

export const projectPage: ConsolePage = {
  method: 'GET',
  path: '/projects/{project_id}',
  action: 'see-project',
  answer: async (request) => {
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
    const refusals = await refusalsOf(request, projectId);
    await learnNames(generation, [
      { projectId },
      ...budgets.items,
      ...leases.items,
      ...usage.byUser.groups.map(({ key }) => ({ userId: key })),
      ...refusals.items.map(({ record }) => ({ userId: record.user_id })),
    ]);
    const named = nameOfFor(generation, caller)('project', projectId);
    return {
      title: `Project ${named?.name ?? projectId}`,
      main: (
        <ProjectView
          projectId={projectId}
          now={now}
          window={window}
          budgets={budgets}
          overTime={overTime}
          leases={leases}
          folded={folded}
          query={query}
          usage={usage}
          refusals={refusals}
          isNamed={named !== undefined}
          unit={budgetUnit(generation.configuration)}
          {...limitsOf(request, projectId)}
          may={{
            estimate: may(caller, 'estimate', projectId),
            seeConfiguration: may(caller, 'see-configuration'),
            setBudgets: may(caller, 'set-user-budget', projectId),
          }}
        />
      ),
    };
  },
};

function limitsOf({ generation, caller }: PageRequest, projectId: string) {
  const { configuration, enforcement } = generation;
  const names = enforcement.names?.known({ project_id: projectId, user_id: caller.userId ?? '' });
  const viewer = { isMember: caller.kind === 'member', userId: caller.userId };
  return {
    limits: projectLimits(configuration, projectId, names, viewer),
    isExempt: isExempt(configuration, projectId, names),
  };
}

const SHOWN = 20;

/** As members see them, whoever the caller is. */
function refusalsOf(request: PageRequest, projectId: string): Promise<FoundDecisions> {
  return findDecisions(request, {
    visible: [projectId],
    projects: [projectId],
    limit: SHOWN,
    outcomes: ['rejected', 'failed'],
  });
}
