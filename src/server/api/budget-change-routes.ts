/** The history of budgets: who changed them, when and why. */
import { z } from 'zod';
import { budgetChangesFor } from '../budgets/budget-lists.ts';
import { budgetChangeSchema, writerFor } from './budget-json.ts';
import { refusedAs } from './budget-routes.ts';
import { WITHOUT_LEDGER } from './projects.ts';
import { type ApiAnswer, type ApiRoute, route } from './route.ts';
import { pageJson, pageParameters, pageQueryOf, pageSchema, textParameter } from './shown.ts';

const order = z.enum(['newest', 'oldest']).optional().meta({
  description: 'Which come first. Default: the newest.',
});
const page = {
  status: 200,
  description: 'A page.',
  schema: pageSchema(budgetChangeSchema),
  name: 'BudgetChanges',
};

const listBudgetChanges = route({
  id: 'listBudgetChanges',
  method: 'GET',
  path: '/v1/budgets/changes',
  action: 'list-budgets',
  summary: 'Every change of budgets.',
  description: 'Also of removed budgets. Members see those of their projects.',
  query: z.strictObject({
    ...pageParameters,
    order,
    project_id: textParameter('Only of this project: its id, or name@domain.'),
    user_id: textParameter(
      'Only of this user: the id, or name@domain, except for members who give no budgets.',
    ),
  }),
  answers: [page, WITHOUT_LEDGER, refusedAs(422, 'Keystone has no account of this name.')],
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
    'Also of one that was removed. Empty = there never was one, or it is of a project that the person may not see.',
  query: z.strictObject({ ...pageParameters, order }),
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
