/** Setting, changing and removing a budget. */
import { budgetUnit } from '../../../enforcement/budget-unit.ts';
import { formatInstant, MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import { budgetAmountText } from '../../../ledger/budgets/format.ts';
import { type BudgetView, pageOfBudgets } from '../../../ledger/budgets/view.ts';
import { ApiError } from '../../api/route.ts';
import { ledgerFor, notAllowed } from '../../budgets/asker.ts';
import { budgetEtag } from '../../budgets/budget-refusals.ts';
import {
  amendBudgetFor,
  budgetFor,
  createBudgetFor,
  mayChange,
  withdrawBudgetFor,
} from '../../budgets/change-budgets.ts';
import { may } from '../../users/access.ts';
import { learnNames, nameOfFor } from '../known-names.tsx';
import type { ConsolePage, PageAnswer, PageRequest } from '../page.ts';
import { pathWith } from '../paths.ts';
import { type BudgetValues, budgetValues, type FormMistake, isMendable, mistakeOf } from './budget-form.ts';
import { ChangeBudgetView, NewBudgetView, RemoveBudgetView } from './budget-forms-view.tsx';
import { ChooseProject } from './choose-project.tsx';

export const newBudgetPage: ConsolePage = {
  method: 'GET',
  path: '/budgets/new',
  action: 'set-user-budget',
  answer: (request) => {
    const { query } = request;
    const values = budgetValues(
      new URLSearchParams({ project_id: query.get('project') ?? '', user_id: query.get('user') ?? '' }),
    );
    return newBudget(request, values);
  },
};

export const newBudgetForm: ConsolePage = {
  method: 'POST',
  path: '/budgets/new',
  action: 'set-user-budget',
  answer: async (request) => {
    const values = budgetValues(request.form);
    return mended(
      async () => {
        const budget = await createBudgetFor(request, {
          projectId: values.project_id,
          userId: values.user_id === '' ? null : values.user_id,
          validFrom: values.valid_from,
          validUntil: values.valid_until,
          amount: values.amount,
          reason: values.reason,
        });
        return { redirect: pathWith('/budgets', { project: budget.projectId, done: 'set' }) };
      },
      ({ status, ...mistake }) => newBudget(request, values, mistake, status),
    );
  },
};

/** Asks whether `work` can be mended by the person; anything else is an error of its own. */
async function mended(
  work: () => Promise<PageAnswer>,
  mend: (mistake: FormMistake & { readonly status: number }) => Promise<PageAnswer>,
): Promise<PageAnswer> {
  try {
    return await work();
  } catch (thrown) {
    if (!(thrown instanceof ApiError) || !isMendable(thrown)) {
      throw thrown;
    }
    return mend({ ...mistakeOf(thrown), status: thrown.status });
  }
}

async function newBudget(
  request: PageRequest,
  given: BudgetValues,
  mistake?: FormMistake,
  status = 200,
): Promise<PageAnswer> {
  const { person, generation, csrf } = request;
  const title = 'Set a budget';
  const nameOf = nameOfFor(generation, person);
  const maySetProject = may(person, 'set-project-budget');
  const managed = person.memberships.filter(({ isManager }) => isManager).map(({ projectId }) => projectId);
  const project = given.project_id || (!maySetProject && managed.length === 1 ? (managed[0] ?? '') : '');
  if (!maySetProject && project === '') {
    return { title, main: <ChooseProject projects={managed} nameOf={nameOf} /> };
  }
  if (project !== '' && !may(person, 'set-user-budget', project)) {
    throw notAllowed();
  }
  const within = project === '' ? undefined : await budgetInForce(request, project);
  const values = mistake === undefined ? withDefaults({ ...given, project_id: project }, within) : given;
  return {
    status,
    title,
    main: (
      <NewBudgetView
        {...{ values, mistake, csrf, nameOf, maySetProject, within }}
        unit={budgetUnit(generation.configuration)}
        choosesProject={maySetProject}
      />
    ),
  };
}

/** The project's own, now. */
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

export const changeBudgetPage: ConsolePage = {
  method: 'GET',
  path: PATH,
  action: 'set-user-budget',
  answer: async (request) => changeBudget(request, await changeable(request), undefined),
};

export const changeBudgetForm: ConsolePage = {
  method: 'POST',
  path: PATH,
  action: 'set-user-budget',
  answer: async (request) => {
    const { form, params } = request;
    const values = budgetValues(form);
    return mended(
      async () => {
        const { amount, valid_until: validUntil, reason } = values;
        const amendment = { amount, validUntil, reason };
        const { projectId } = await amendBudgetFor(
          request,
          params.budget_id ?? '',
          form.get('etag') ?? '',
          amendment,
        );
        return { redirect: pathWith('/budgets', { project: projectId, done: 'changed' }) };
      },
      async (mistake) => changeBudget(request, await changeable(request), { values, ...mistake }),
    );
  },
};

export const removeBudgetPage: ConsolePage = {
  method: 'GET',
  path: `${PATH}/remove`,
  action: 'set-user-budget',
  answer: async (request) => removeBudget(request, await changeable(request), undefined),
};

export const removeBudgetForm: ConsolePage = {
  method: 'POST',
  path: `${PATH}/remove`,
  action: 'set-user-budget',
  answer: async (request) => {
    const { form, params } = request;
    const values = budgetValues(form);
    return mended(
      async () => {
        const etag = form.get('etag') ?? '';
        const { projectId } = await withdrawBudgetFor(request, params.budget_id ?? '', etag, values.reason);
        return { redirect: pathWith('/budgets', { project: projectId, done: 'removed' }) };
      },
      async (mistake) => removeBudget(request, await changeable(request), { values, ...mistake }),
    );
  },
};

async function changeable(request: PageRequest): Promise<BudgetView> {
  const budget = await budgetFor(request, request.params.budget_id ?? '');
  if (!mayChange(request.person, budget)) {
    throw notAllowed();
  }
  return budget;
}

/** What was sent, and why it was not done. */
type Sent = FormMistake & { readonly values: BudgetValues; readonly status: number };

const CONFLICT = 412;

async function common(request: PageRequest, budget: BudgetView, sent: Sent | undefined) {
  const { generation, person, csrf, form } = request;
  const isChanged = sent?.status === CONFLICT;
  await learnNames(generation, [budget.projectId], budget.userId === null ? [] : [budget.userId]);
  return {
    ...{ budget, csrf, mistake: sent },
    unit: budgetUnit(generation.configuration),
    nameOf: nameOfFor(generation, person),
    isChanged,
    // Who mends another mistake has not been told yet of what others did meanwhile.
    etag: sent === undefined || isChanged ? budgetEtag(budget) : (form.get('etag') ?? ''),
  };
}

async function changeBudget(
  request: PageRequest,
  budget: BudgetView,
  sent: Sent | undefined,
): Promise<PageAnswer> {
  const values = sent?.values ?? {
    ...budgetValues(new URLSearchParams()),
    amount: budgetAmountText(budget.amount),
    valid_until: local(budget.validUntil),
  };
  return {
    status: sent?.status ?? 200,
    title: 'Change a budget',
    main: <ChangeBudgetView {...(await common(request, budget, sent))} values={values} />,
  };
}

async function removeBudget(
  request: PageRequest,
  budget: BudgetView,
  sent: Sent | undefined,
): Promise<PageAnswer> {
  const values = sent?.values ?? budgetValues(new URLSearchParams());
  return {
    status: sent?.status ?? 200,
    title: 'Remove a budget',
    main: <RemoveBudgetView {...(await common(request, budget, sent))} values={values} />,
  };
}

/** As a field of type `datetime-local` has it; seconds only where there are some. */
function local(second: bigint): string {
  return formatInstant(second * MICROSECONDS_PER_SECOND)
    .replace(/Z$/, '')
    .replace(/(T\d\d:\d\d):00$/, '$1');
}
