/** The history of budgets: who changed them, when and why. */
import { z } from 'zod';
import { secondText } from '../../../lease/dates.ts';
import { charge } from '../../../ledger/accounting/recorded-claim.ts';
import { pageOfChargedLeases } from '../../../ledger/budgets/history.ts';
import type { LeaseReport } from '../../../ledger/reports/reports.ts';
import { budgetChangesFor, projectsAsked } from '../../budgets/budget-lists.ts';
import { ledgerFor } from '../../budgets/named-accounts.ts';
import { type ApiRoute, route } from '../route.ts';
import {
  type Accounts,
  accountSchema,
  amountSchema,
  costText,
  listQuery,
  namedPage,
  ofProject,
  ofUser,
  pageAnswer,
  pageQueryOf,
  refusedAs,
  textSchema,
  timeSchema,
  timeText,
  UNNAMED,
  WITHOUT_LEDGER,
} from '../shown.ts';
import { budgetChangeJson, budgetChangeSchema } from './json.ts';

const order = z.enum(['newest', 'oldest']).optional().meta({
  description: 'Sort order. Default: newest first.',
});
const page = pageAnswer(budgetChangeSchema, 'BudgetChanges', 'A page.');

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
  answers: [page, WITHOUT_LEDGER, UNNAMED],
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
  answers: [page, WITHOUT_LEDGER],
  async answer(request) {
    const { budget_id: id = '' } = request.params;
    // No budget has the id 0.
    const budget = /^\d{1,18}$/.test(id) ? BigInt(id) : 0n;
    const wanted = { ...pageQueryOf(request.query), budget, order: request.query.order };
    return { json: await namedPage(request, await budgetChangesFor(request, wanted), budgetChangeJson) };
  },
});

const leaseSchema = z.strictObject({
  row: z.string().meta({ description: 'The number of the lease in the ledger.' }),
  lease_id: z.string().nullable().meta({ description: "Blazar's id; null = not known yet." }),
  region: z.string(),
  project: accountSchema,
  user: accountSchema,
  name: z.string(),
  start: timeSchema,
  end: timeSchema,
  state: z.enum(['open', 'ended']),
  recorded_at: timeSchema,
  charges: z.array(
    z.strictObject({
      account: z.string().meta({ examples: ['usage_budget/17'] }),
      amount: amountSchema,
      exact: z.string().meta({ description: 'The amount in millionths of a unit times seconds.' }),
      from: timeSchema,
      until: timeSchema,
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
    pageAnswer(leaseSchema, 'BudgetCharges'),
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
    return { json: await namedPage(request, page, leaseJson) };
  },
});

export const BUDGET_HISTORY_ROUTES: readonly ApiRoute[] = [
  listBudgetChanges,
  listChangesOfBudget,
  listBudgetCharges,
];

function leaseJson(lease: LeaseReport, accounts: Accounts) {
  return {
    row: String(lease.row),
    lease_id: lease.leaseId,
    region: lease.region,
    ...accounts.owner(lease),
    name: lease.name,
    start: timeText(lease.start),
    end: timeText(lease.end),
    state: lease.state,
    recorded_at: timeText(lease.recordedAt),
    charges: lease.claims.flatMap((claim) =>
      claim.kind === 'usage'
        ? [
            {
              account: claim.account,
              amount: costText(charge(claim)),
              exact: String(charge(claim)),
              from: secondText(claim.from),
              until: secondText(claim.until),
            },
          ]
        : [],
    ),
  };
}
