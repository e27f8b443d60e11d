/** Pages that set, change and remove a budget. */
import { budgetUnit } from '../../../enforcement/configuration.ts';
import { formatInstant, MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import { budgetAmountText } from '../../../ledger/budgets/terms.ts';
import { type BudgetView, pageOfBudgets } from '../../../ledger/budgets/view.ts';
import { ApiError } from '../../api/route.ts';
import {
  amendBudgetFor,
  budgetEtag,
  budgetFor,
  createBudgetFor,
  mayChange,
  withdrawBudgetFor,
} from '../../budgets/change-budgets.ts';
import { ledgerFor, notAllowed } from '../../budgets/named-accounts.ts';
import { type Action, may } from '../../users/caller.ts';
import { type ConsolePage, type PageAnswer, type PageRequest, pathWith } from '../page.ts';
import { learnNames } from '../parts/parts.tsx';
import {
  BUDGET_FIELDS,
  type BudgetValues,
  ChooseProject,
  EditBudgetView,
  type FormMistake,
  NewBudgetView,
} from './budget-forms-view.tsx';

/** Maximum characters of a field: longer texts are truncated, and validation rejects them. */
const LONGEST = 2000;

export function budgetValues(form: URLSearchParams): BudgetValues {
  return Object.fromEntries(
    BUDGET_FIELDS.map((name) => [name, (form.get(name) ?? '').trim().slice(0, LONGEST)]),
  ) as unknown as BudgetValues;
}

const NOTHING = budgetValues(new URLSearchParams());

/** An error that the caller can correct: a mistake in the form, or a conflict with another change. */
export function isCorrectable(thrown: unknown): thrown is ApiError {
  return thrown instanceof ApiError && [400, 409, 412, 422].includes(thrown.status);
}

/** The submitted values, and the error. */
export interface Sent extends FormMistake {
  readonly values: BudgetValues;
  readonly status: number;
}

/**
 * A page with a form, and its submission. `actions`: the rights to show and to submit it. `work` resolves to
 * the path to redirect to.
 */
export function formPages(
  path: string,
  actions: Readonly<Record<ConsolePage['method'], Action>>,
  show: (request: PageRequest, sent: Sent | undefined) => Promise<PageAnswer>,
  work: (request: PageRequest, values: BudgetValues) => Promise<string>,
): readonly ConsolePage[] {
  return [
    { path, method: 'GET', action: actions.GET, answer: (request) => show(request, undefined) },
    {
      path,
      method: 'POST',
      action: actions.POST,
      answer: async (request) => {
        const values = budgetValues(request.form);
        try {
          return { redirect: await work(request, values) };
        } catch (thrown) {
          if (!isCorrectable(thrown)) {
            throw thrown;
          }
          const { status, message } = thrown;
          const field = BUDGET_FIELDS.find((name) => name === thrown.field);
          return show(request, { values, status, message, field });
        }
      },
    },
  ];
}

const SETTING = { GET: 'set-user-budget', POST: 'set-user-budget' } as const;

/** `done`: a word for the list of budgets. */
const toBudgets = ({ projectId: project }: Pick<BudgetView, 'projectId'>, done: string) =>
  pathWith('/budgets', { project, done });

export const NEW_BUDGET_PAGES = formPages('/budgets/new', SETTING, newBudget, async (request, values) =>
  toBudgets(
    await createBudgetFor(request, { ...values, user_id: values.user_id === '' ? null : values.user_id }),
    'set',
  ),
);

async function newBudget(request: PageRequest, sent: Sent | undefined): Promise<PageAnswer> {
  const { caller, generation, csrf, query } = request;
  const title = 'Set a budget';
  const maySetProject = may(caller, 'set-project-budget');
  const managed = caller.memberships.filter(({ isManager }) => isManager).map(({ projectId }) => projectId);
  const linked = { project_id: query.get('project') ?? '', user_id: query.get('user') ?? '' };
  const given = sent?.values ?? budgetValues(new URLSearchParams(linked));
  const project = given.project_id || (!maySetProject && managed.length === 1 ? (managed[0] ?? '') : '');
  if (!maySetProject && project === '') {
    return { title, main: <ChooseProject projects={managed} path="/budgets/new" /> };
  }
  if (project !== '' && !may(caller, 'set-user-budget', project)) {
    throw notAllowed();
  }
  const within = project === '' ? undefined : await budgetInForce(request, project);
  const values = sent === undefined ? withDefaults({ ...given, project_id: project }, within) : given;
  const unit = budgetUnit(generation.configuration);
  return {
    status: sent?.status ?? 200,
    title,
    main: (
      <NewBudgetView
        values={values}
        csrf={csrf}
        maySetProject={maySetProject}
        within={within}
        unit={unit}
        mistake={sent}
      />
    ),
  };
}

/** The project's own budget that is in force now. */
async function budgetInForce(request: PageRequest, projectId: string): Promise<BudgetView | undefined> {
  const ledger = await ledgerFor(request);
  const validAt = ledger.now() / MICROSECONDS_PER_SECOND;
  const query = { projectIds: [projectId], userId: null, validAt, limit: 1, after: undefined };
  return (await pageOfBudgets(ledger, query, request.deadline)).items[0];
}

function withDefaults(values: BudgetValues, within: BudgetView | undefined): BudgetValues {
  return within === undefined
    ? values
    : {
        ...values,
        valid_from: values.valid_from || local(within.validFrom),
        valid_until: values.valid_until || local(within.validUntil),
      };
}

const PATH = '/budgets/{budget_id}';
const idOf = ({ params }: PageRequest) => params.budget_id ?? '';
const etagOf = ({ form }: PageRequest) => form.get('etag') ?? '';

export const EDIT_BUDGET_PAGES = [
  ...formPages(PATH, SETTING, editBudget(false), async (request, values) => {
    return toBudgets(await amendBudgetFor(request, idOf(request), etagOf(request), values), 'changed');
  }),
  ...formPages(`${PATH}/remove`, SETTING, editBudget(true), async (request, { reason }) =>
    toBudgets(await withdrawBudgetFor(request, idOf(request), etagOf(request), reason), 'removed'),
  ),
];

const CONFLICT = 412;

function editBudget(isRemoval: boolean) {
  return async (request: PageRequest, sent: Sent | undefined): Promise<PageAnswer> => {
    const { generation, caller, csrf } = request;
    const budget = await budgetFor(request, idOf(request));
    if (!mayChange(caller, budget)) {
      throw notAllowed();
    }
    await learnNames(generation, [budget]);
    const isChanged = sent?.status === CONFLICT;
    const now = { amount: budgetAmountText(budget.amount), valid_until: local(budget.validUntil) };
    return {
      status: sent?.status ?? 200,
      title: isRemoval ? 'Remove a budget' : 'Change a budget',
      main: (
        <EditBudgetView
          isRemoval={isRemoval}
          budget={budget}
          csrf={csrf}
          isChanged={isChanged}
          values={sent?.values ?? { ...NOTHING, ...now }}
          mistake={sent}
          unit={budgetUnit(generation.configuration)}
          // After other mistakes the old ETag stays: the user has not been shown concurrent changes yet.
          etag={sent === undefined || isChanged ? budgetEtag(budget) : etagOf(request)}
        />
      ),
    };
  };
}

/** In the format of `datetime-local` fields; without seconds if they are 0. */
export function local(second: bigint): string {
  return formatInstant(second * MICROSECONDS_PER_SECOND)
    .replace(/Z$/, '')
    .replace(/(T\d\d:\d\d):00$/, '$1');
}
