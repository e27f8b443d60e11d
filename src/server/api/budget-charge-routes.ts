/** Which leases take from budgets. */
import { z } from 'zod';
import { charge } from '../../ledger/accounting/recorded-claim.ts';
import { pageOfChargedLeases } from '../../ledger/budgets/history.ts';
import type { LeaseReport } from '../../ledger/reports/reports.ts';
import { ledgerFor } from '../budgets/asker.ts';
import { projectsAsked } from '../budgets/budget-lists.ts';
import { refusedAs } from './budget-routes.ts';
import { WITHOUT_LEDGER } from './projects.ts';
import { type ApiRoute, route } from './route.ts';
import {
  type Accounts,
  accountSchema,
  accountsOf,
  amountSchema,
  costText,
  pageJson,
  pageParameters,
  pageQueryOf,
  pageSchema,
  secondText,
  timeSchema,
  timeText,
} from './shown.ts';

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
  query: z.strictObject({
    ...pageParameters,
    project_id: z.string().min(1).max(255).meta({ description: 'Its id, or name@domain.' }),
  }),
  answers: [
    { status: 200, description: 'A page.', schema: pageSchema(leaseSchema), name: 'BudgetCharges' },
    WITHOUT_LEDGER,
    refusedAs(422, 'Keystone has no project of this name.'),
  ],
  async answer(request) {
    const { query, generation, deadline } = request;
    const ledger = await ledgerFor(request);
    const [projectId] = (await projectsAsked(request, query.project_id)) ?? [];
    const page =
      projectId === undefined
        ? { items: [], next: undefined }
        : await pageOfChargedLeases(ledger, { ...pageQueryOf(query), projectId }, deadline);
    const ids = {
      projects: page.items.map((lease) => lease.projectId),
      users: page.items.map(({ userId }) => userId),
    };
    const accounts = await accountsOf(generation, ids, deadline);
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
