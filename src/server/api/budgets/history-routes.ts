/** The history of budgets: who changed them, when and why. */
import { z } from 'zod';
import { charge } from '../../../ledger/accounting/recorded-claim.ts';
import { pageOfChargedLeases } from '../../../ledger/budgets/history.ts';
import type { LeaseReport } from '../../../ledger/reports/reports.ts';
import { budgetChangesFor, projectsAsked } from '../../budgets/budget-lists.ts';
import { ledgerFor } from '../../budgets/named-accounts.ts';
import { type ApiAnswer, type ApiRoute, route } from '../route.ts';
import {
  type Accounts,
  accountSchema,
  accountsOf,
  amountSchema,
  costText,
  listQuery,
  pageAnswer,
  pageJson,
  pageQueryOf,
  refusedAs,
  secondText,
  textParameter,
  textSchema,
  timeSchema,
  timeText,
  UNNAMED,
  WITHOUT_LEDGER,
} from '../shown.ts';
import { budgetChangeSchema, writerFor } from './json.ts';

const order = z.enum(['newest', 'oldest']).optional().meta({
  description: 'Which come first. Default: the newest.',
});
const page = pageAnswer(budgetChangeSchema, 'BudgetChanges', 'A page.');

const listBudgetChanges = route({
  id: 'listBudgetChanges',
  method: 'GET',
  path: '/v1/budgets/changes',
  action: 'list-budgets',
  summary: 'Every change of budgets.',
  description: 'Also of removed budgets. Members see those of their projects.',
  query: listQuery({
    order,
    project_id: textParameter('Only of this project: its id, or name@domain.'),
    user_id: textParameter(
      'Only of this user: the id, or name@domain, except for members who give no budgets.',
    ),
  }),
  answers: [page, WITHOUT_LEDGER, UNNAMED],
  async answer(request) {
    const { project_id, user_id } = request.query;
    return changes(request, { ...request.query, projectId: project_id, userId: user_id });
  },
});

const listChangesOfBudget = route({
  id: 'listChangesOfBudget',
  method: 'GET',
  path: '/v1/budgets/{budget_id}/changes',
  action: 'list-budgets',
  summary: 'Every change of one budget.',
  description:
    'Also of one that was removed. Empty = there never was one, or it is of a project that the caller may not see.',
  query: listQuery({ order }),
  answers: [page, WITHOUT_LEDGER],
  async answer(request) {
    const { budget_id: id = '' } = request.params;
    // None has the id 0.
    return changes(request, { ...request.query, budget: /^\d{1,18}$/.test(id) ? BigInt(id) : 0n });
  },
});

export const BUDGET_CHANGE_ROUTES: readonly ApiRoute[] = [listBudgetChanges, listChangesOfBudget];

type Asked = Parameters<typeof budgetChangesFor>[1];
type Query = Omit<Asked, 'limit' | 'after'> & {
  readonly [Name in 'limit' | 'after']?: Asked[Name] | undefined;
};

async function changes(request: Parameters<typeof writerFor>[0], query: Query): Promise<ApiAnswer> {
  const { projectId, userId, budget, order: wanted } = query;
  const found = await budgetChangesFor(request, {
    ...pageQueryOf(query),
    ...{ projectId, userId, budget, order: wanted },
  });
  const writer = await writerFor(request, found.items);
  return { json: pageJson(found, writer.change) };
}

const leaseSchema = z.strictObject({
  row: z.string().meta({ description: 'The number of the lease in the ledger.' }),
  lease_id: z.string().nullable().meta({ description: "Blazar's id; null = it has not told it yet." }),
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
  summary: 'Which open leases of a project are charged to its budgets.',
  description:
    'Sorted by end. A page may have fewer items than `limit`, even none: only `next` tells whether there are more.',
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
    const accounts = await accountsOf(request, page.items);
    return { json: pageJson(page, (lease) => leaseJson(lease, accounts)) };
  },
});

export const BUDGET_CHARGE_ROUTES: readonly ApiRoute[] = [listBudgetCharges];

function leaseJson(lease: LeaseReport, accounts: Accounts) {
  return {
    ...{ row: String(lease.row), lease_id: lease.leaseId, region: lease.region },
    project: accounts.project(lease.projectId),
    user: accounts.user(lease.userId),
    ...{ name: lease.name, start: timeText(lease.start), end: timeText(lease.end), state: lease.state },
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
