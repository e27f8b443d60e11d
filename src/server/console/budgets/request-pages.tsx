/** Requests for more budget: the list, the form for a new one, and one request with its steps. */
import { budgetUnit } from '../../../enforcement/configuration.ts';
import { missingBudget } from '../../../filter/budget-claims.ts';
import { MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import { isOpen } from '../../../ledger/budgets/requests/rows.ts';
import type { RequestStep } from '../../../ledger/budgets/requests/steps.ts';
import { budgetAmountText } from '../../../ledger/budgets/terms.ts';
import { BUDGET_REQUEST_STATES, OPEN_STATES } from '../../../ledger/storage/service-tables.ts';
import { ApiError } from '../../api/route.ts';
import { notAllowed } from '../../budgets/named-accounts.ts';
import {
  askForBudgetFor,
  mayTake,
  requestFor,
  requestsFor,
  stepRequestFor,
} from '../../budgets/request-budgets.ts';
import { may, visibleProjects } from '../../users/caller.ts';
import type { FoundDecision } from '../decisions/found-decisions.ts';
import { type ConsolePage, type PageAnswer, type PageRequest, pathWith, queryText } from '../page.ts';
import { listPage } from '../parts/pager.tsx';
import { learnNames } from '../parts/parts.tsx';
import { ChooseProject } from './budget-forms-view.tsx';
import { budgetValues, formPages, local, type Sent } from './form-pages.tsx';
import { AskView, OneRequest, RequestList } from './request-views.tsx';

const REQUESTS_PATH = '/budgets/requests';
const NEW_PATH = `${REQUESTS_PATH}/new`;
const ROWS = 50;

export const requestsPage: ConsolePage = {
  method: 'GET',
  path: REQUESTS_PATH,
  action: 'list-budgets',
  answer: async (request) => {
    const { caller, query, generation } = request;
    const project = queryText(query, 'project');
    const asked = query.get('state') ?? 'open';
    const state = [...BUDGET_REQUEST_STATES, 'all'].find((one) => one === asked) ?? 'open';
    const states = BUDGET_REQUEST_STATES.filter((one) => one === state);
    const page = await requestsFor(request, {
      limit: ROWS,
      after: listPage(query).after,
      projectId: project || undefined,
      states: state === 'all' ? undefined : state === 'open' ? OPEN_STATES : states,
    });
    await learnNames(generation, page.items);
    return {
      title: 'Requests for more budget',
      main: (
        <RequestList
          page={page}
          query={query}
          project={project}
          state={state}
          unit={budgetUnit(generation.configuration)}
          askPath={
            may(caller, 'request-budget', project || undefined) ? pathWith(NEW_PATH, { project }) : undefined
          }
        />
      ),
    };
  },
};

export const ASK_PAGES = formPages(
  NEW_PATH,
  { GET: 'request-budget', POST: 'request-budget' },
  askForMore,
  async (request, values) => {
    const { id } = await askForBudgetFor(request, {
      ...values,
      user_id: values.user_id === '' ? null : values.user_id,
    });
    return pathWith(`${REQUESTS_PATH}/${id}`, { done: 'requested' });
  },
);

async function askForMore(request: PageRequest, sent: Sent | undefined): Promise<PageAnswer> {
  const { caller, csrf, query, generation } = request;
  const title = 'Ask for more budget';
  const own = visibleProjects(caller);
  const linked = {
    project_id: query.get('project') ?? '',
    user_id: query.get('user') ?? '',
    amount: query.get('amount') ?? '',
    valid_until: query.get('until') ?? '',
    reason: query.get('reason') ?? '',
  };
  const given = sent?.values ?? budgetValues(new URLSearchParams(linked));
  const project = given.project_id || (own?.length === 1 ? (own[0] ?? '') : '');
  if (own !== undefined && project === '') {
    return { title, main: <ChooseProject projects={own} path={NEW_PATH} /> };
  }
  if (project !== '' && !may(caller, 'request-budget', project)) {
    throw notAllowed();
  }
  await learnNames(generation, [{ projectId: project || undefined }]);
  return {
    status: sent?.status ?? 200,
    title,
    main: (
      <AskView
        csrf={csrf}
        mistake={sent}
        values={{ ...given, project_id: project }}
        unit={budgetUnit(generation.configuration)}
        isProjectTyped={own === undefined}
        mayNameUsers={may(caller, 'set-user-budget', project === '' ? undefined : project)}
        ownId={caller.userId}
      />
    ),
  };
}

const STEPS = ['endorse', 'grant', 'refuse', 'withdraw'] as const satisfies readonly RequestStep['kind'][];
const idOf = ({ params }: PageRequest) => params.request_id ?? '';

export const REQUEST_PAGES = formPages(
  `${REQUESTS_PATH}/{request_id}`,
  { GET: 'list-budgets', POST: 'request-budget' },
  oneRequest,
  async (request, { amount, valid_until, reason }) => {
    const kind = STEPS.find((one) => one === request.form.get('step'));
    if (kind === undefined) {
      throw new ApiError(400, 'expected one of the buttons of the form');
    }
    const terms = kind === 'grant' ? { amount, valid_until } : {};
    const { id, state } = await stepRequestFor(request, idOf(request), kind, { reason, ...terms });
    return pathWith(`${REQUESTS_PATH}/${id}`, { done: state });
  },
);

async function oneRequest(request: PageRequest, sent: Sent | undefined): Promise<PageAnswer> {
  const { caller, csrf, query, generation } = request;
  const found = await requestFor(request, idOf(request));
  await learnNames(generation, [found]);
  const asked = { amount: budgetAmountText(found.amount), valid_until: local(found.validUntil) };
  const steps = STEPS.filter(
    (kind) =>
      isOpen(found) && mayTake(caller, found, kind) && !(kind === 'endorse' && found.state === 'endorsed'),
  );
  return {
    status: sent?.status ?? 200,
    title: `Request ${found.id}`,
    main: (
      <OneRequest
        csrf={csrf}
        steps={steps}
        mistake={sent}
        request={found}
        done={query.get('done') === found.state}
        values={sent?.values ?? budgetValues(new URLSearchParams(asked))}
        unit={budgetUnit(generation.configuration)}
      />
    ),
  };
}

const MAX_NAME = 200;

/**
 * The path of the request form, filled in with what a refused lease lacked; `undefined` = no budget was
 * lacking, or the caller may not request it.
 */
export function askPathOf(
  { caller }: Pick<PageRequest, 'caller'>,
  { record, asked }: Pick<FoundDecision, 'record' | 'asked'>,
): string | undefined {
  const { project_id: project, user_id: user, lease_name: name, outcome, operation, filters } = record;
  const [missing] = filters.flatMap(({ outcome: of, audit, message }) =>
    of === 'rejected' && !audit && message !== null ? (missingBudget(message) ?? []) : [],
  );
  if (
    missing === undefined ||
    project === null ||
    outcome !== 'rejected' ||
    operation.includes('.') ||
    !may(caller, 'request-budget', project) ||
    (missing.isOfUser && user !== caller.userId && !may(caller, 'set-user-budget', project))
  ) {
    return undefined;
  }
  const { amount, isOfUser } = missing;
  return pathWith(NEW_PATH, {
    project,
    user: isOfUser ? (user ?? undefined) : undefined,
    amount: amount === undefined || amount <= 0n ? undefined : budgetAmountText(amount),
    until: asked && local((asked.end + MICROSECONDS_PER_SECOND - 1n) / MICROSECONDS_PER_SECOND),
    reason: name === null || name === '' ? undefined : `Lease ${name.slice(0, MAX_NAME).toWellFormed()}`,
  });
}
