/** Budgets: list, show, set, change and remove; and their history: who changed them, when and why. */
import { z } from 'zod';
import { charge } from '../../../ledger/accounting/recorded-claim.ts';
import { pageOfChargedLeases } from '../../../ledger/budgets/history.ts';
import type { BudgetView } from '../../../ledger/budgets/view.ts';
import type { LeaseReport } from '../../../ledger/reports/reports.ts';
import { budgetChangesFor, budgetsFor, projectsAsked } from '../../budgets/budget-lists.ts';
import {
  amendBudgetFor,
  budgetEtag,
  budgetFor,
  budgetPath,
  createBudgetFor,
  withdrawBudgetFor,
} from '../../budgets/change-budgets.ts';
import { amendmentInput, budgetInput, reasonSchema } from '../../budgets/inputs.ts';
import { ledgerFor, type Requester } from '../../budgets/named-accounts.ts';
import { chargeJson, chargeSchema, leaseSchema, listedLeaseJson } from '../leases.ts';
import { type ApiExample, type ApiRequest, type ApiRoute, route } from '../route.ts';
import {
  type Accounts,
  accountSchema,
  accountsOf,
  listQuery,
  namedPage,
  ofProject,
  ofUser,
  pageAnswer,
  pageQueryOf,
  refusedAs,
  rowNumber,
  secondOf,
  textParameter,
  textSchema,
  timeParameter,
  UNNAMED,
  WITHOUT_LEDGER,
} from '../shown.ts';
import { budgetChangeJson, budgetChangeSchema, budgetJson, budgetSchema } from './json.ts';

const ETAG = { ETag: { description: 'For `If-Match`: changes with each change of the budget.' } };
const shown = (status: number, description: string, more: object = {}): ApiExample => ({
  status,
  description,
  schema: budgetSchema,
  name: 'Budget',
  headers: { ...ETAG, ...more },
});
const OVERLAPS = refusedAs(
  409,
  'A budget of the owner, perhaps this one, already covers part of that time: nothing is replaced.',
  { Location: { description: 'The other budget.' } },
);
const NOT_THERE = refusedAs(
  404,
  'No such budget, or it was removed, or the caller may not see its project, or no enabled filter uses a ledger.',
);
const MISTAKEN = refusedAs(
  422,
  'A value is wrong: a date, an amount, a missing reason, or an account that Keystone does not have; or the budget of a manager is not within those of the project.',
);
const CHANGED = [
  refusedAs(412, 'The budget was changed since: the ETag is outdated.', ETAG),
  refusedAs(428, '`If-Match` is missing.'),
];

const IF_MATCH = {
  'If-Match': { description: 'The ETag of the budget, as the caller last read it.' },
};

const listBudgets = route({
  id: 'listBudgets',
  method: 'GET',
  path: '/v1/budgets',
  action: 'list-budgets',
  summary: 'List budgets',
  description:
    'Budgets in force or expired, sorted by project, user (budgets of the whole project first) and time. Members see budgets of their projects.',
  query: listQuery({
    project_id: ofProject(),
    user_id: ofUser(),
    valid_at: timeParameter('Only budgets in force at this time.'),
    search: textParameter('Only budgets whose project id or user id contains this text, ignoring case.'),
  }),
  answers: [pageAnswer(budgetSchema, 'Budgets'), WITHOUT_LEDGER, UNNAMED],
  async answer(request) {
    const { project_id, user_id, valid_at, search } = request.query;
    const page = await budgetsFor(request, {
      ...pageQueryOf(request.query),
      projectId: project_id,
      userId: user_id,
      search,
      validAt: valid_at && secondOf(valid_at),
    });
    return { json: await namedPage(request, page, budgetJson) };
  },
});

const getBudget = route({
  id: 'getBudget',
  method: 'GET',
  path: '/v1/budgets/{budget_id}',
  action: 'list-budgets',
  summary: 'Show a budget',
  description: 'A change of the budget must send its ETag in `If-Match`.',
  answers: [shown(200, 'The budget.'), NOT_THERE],
  async answer(request) {
    return answered(request, await budgetFor(request, idIn(request)));
  },
});

const createBudget = route({
  id: 'createBudget',
  method: 'POST',
  path: '/v1/budgets',
  action: 'set-user-budget',
  summary: 'Set a budget for a project, or for one user in it',
  description:
    'Replaces nothing: a repeated request is answered with 409. Operators may set every budget; managers those of users in their projects, within the budgets of the project: each second of the new budget must lie in one of them, and its size is at most the sum of those that it overlaps with.',
  body: {
    name: 'NewBudget',
    schema: budgetInput,
    example: {
      project_id: 'climate',
      user_id: 'alice',
      valid_from: '2026-12-01T00:00:00Z',
      valid_until: '2027-01-01T00:00:00Z',
      amount: '50',
      reason: 'A workshop',
    },
  },
  answers: [
    shown(201, 'The budget is in force.', { Location: { description: 'Its URL.' } }),
    OVERLAPS,
    WITHOUT_LEDGER,
    MISTAKEN,
  ],
  async answer(request) {
    const budget = await createBudgetFor(request, request.body);
    const answer = await answered(request, budget);
    return { ...answer, status: 201, headers: { ...answer.headers, Location: budgetPath(budget) } };
  },
});

const amendBudget = route({
  id: 'amendBudget',
  method: 'PATCH',
  path: '/v1/budgets/{budget_id}',
  action: 'set-user-budget',
  summary: 'Change the size or the end of a budget',
  description:
    'Requires the ETag of the budget in `If-Match`: of two concurrent changes, one succeeds. The owner and the start cannot be changed. For managers, the rule of createBudget applies to the result.',
  headers: IF_MATCH,
  body: {
    name: 'BudgetAmendment',
    schema: amendmentInput,
    example: { amount: '80', reason: 'More hosts than planned' },
  },
  answers: [shown(200, 'The budget as it is now.'), NOT_THERE, OVERLAPS, MISTAKEN, ...CHANGED],
  async answer(request) {
    const etag = request.header('if-match');
    return answered(request, await amendBudgetFor(request, idIn(request), etag, request.body));
  },
});

const removeBudget = route({
  id: 'removeBudget',
  method: 'DELETE',
  path: '/v1/budgets/{budget_id}',
  action: 'set-user-budget',
  summary: 'Remove a budget',
  description:
    'Requires the ETag of the budget in `If-Match`. Charges are kept, and count again if a budget of the same owner is set that starts at the same second.',
  headers: IF_MATCH,
  query: z.strictObject({ reason: reasonSchema.max(4000) }),
  answers: [
    { status: 204, description: 'The budget is removed.' },
    NOT_THERE,
    refusedAs(422, 'The reason is empty or too long.'),
    ...CHANGED,
  ],
  async answer(request) {
    await withdrawBudgetFor(request, idIn(request), request.header('if-match'), request.query.reason);
    return { status: 204 };
  },
});

export const BUDGET_ROUTES: readonly ApiRoute[] = [
  listBudgets,
  getBudget,
  createBudget,
  amendBudget,
  removeBudget,
];

function idIn({ params }: Pick<ApiRequest<unknown, unknown>, 'params'>): string {
  return params.budget_id ?? '';
}

async function answered(request: Requester, budget: BudgetView) {
  const accounts = await accountsOf(request, [budget]);
  return { json: budgetJson(budget, accounts), headers: { ETag: budgetEtag(budget) } };
}

const order = z.enum(['newest', 'oldest']).optional().meta({
  description: 'Sort order. Default: newest first.',
});
const changesPage = pageAnswer(budgetChangeSchema, 'BudgetChanges', 'A page.');

const listBudgetChanges = route({
  id: 'listBudgetChanges',
  method: 'GET',
  path: '/v1/budgets/changes',
  action: 'list-budgets',
  summary: 'List all changes of budgets',
  description: 'Includes changes of removed budgets. Members see changes in their projects.',
  query: listQuery({
    order,
    project_id: ofProject(),
    user_id: ofUser(),
  }),
  answers: [changesPage, WITHOUT_LEDGER, UNNAMED],
  async answer(request) {
    const { project_id: projectId, user_id: userId, order: first } = request.query;
    const wanted = { ...pageQueryOf(request.query), projectId, userId, order: first };
    return { json: await namedPage(request, await budgetChangesFor(request, wanted), budgetChangeJson) };
  },
});

const listChangesOfBudget = route({
  id: 'listChangesOfBudget',
  method: 'GET',
  path: '/v1/budgets/{budget_id}/changes',
  action: 'list-budgets',
  summary: 'List the changes of one budget',
  description:
    'Works for removed budgets, too. Empty = there never was such a budget, or the caller may not see its project.',
  query: listQuery({ order }),
  answers: [changesPage, WITHOUT_LEDGER],
  async answer(request) {
    const { budget_id: id = '' } = request.params;
    const { order: first } = request.query;
    const wanted = { ...pageQueryOf(request.query), budget: rowNumber(id), order: first };
    return { json: await namedPage(request, await budgetChangesFor(request, wanted), budgetChangeJson) };
  },
});

const chargedLeaseSchema = leaseSchema.omit({ cost: true, resources: true }).extend({
  project: accountSchema,
  state: z.enum(['open', 'ended']),
  charges: z.array(
    chargeSchema.extend({
      exact: z.string().meta({ description: 'The amount in millionths of a unit times seconds.' }),
    }),
  ),
});

const listBudgetCharges = route({
  id: 'listBudgetCharges',
  method: 'GET',
  path: '/v1/budgets/charges',
  action: 'list-budgets',
  summary: 'List the open leases that are charged to the budgets of a project',
  description:
    'Sorted by end. A page may have fewer items than `limit`, even none: only `next` shows whether there are more.',
  query: listQuery({
    project_id: textSchema.meta({ description: 'Its id, or name@domain.' }),
  }),
  answers: [
    pageAnswer(chargedLeaseSchema, 'BudgetCharges'),
    WITHOUT_LEDGER,
    refusedAs(422, 'Keystone has no project of this name.'),
  ],
  async answer(request) {
    const { query, deadline } = request;
    const ledger = await ledgerFor(request);
    const [projectId] = (await projectsAsked(request, query.project_id)) ?? [];
    const page =
      projectId === undefined
        ? { items: [], next: undefined }
        : await pageOfChargedLeases(ledger, { ...pageQueryOf(query), projectId }, deadline);
    return { json: await namedPage(request, page, chargedLeaseJson) };
  },
});

export const BUDGET_HISTORY_ROUTES: readonly ApiRoute[] = [
  listBudgetChanges,
  listChangesOfBudget,
  listBudgetCharges,
];

function chargedLeaseJson(lease: LeaseReport, accounts: Accounts) {
  return {
    ...listedLeaseJson(lease, accounts),
    project: accounts.project(lease.projectId),
    charges: lease.claims.flatMap((claim) =>
      claim.kind === 'usage'
        ? [{ ...chargeJson({ ...claim, amount: charge(claim) }), exact: String(charge(claim)) }]
        : [],
    ),
  };
}
