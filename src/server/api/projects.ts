/** `GET /v1/projects`: the projects that somebody may see. */
import { z } from 'zod';
import { COUNTED_OPEN, listProjects, type ProjectRow } from '../../ledger/reports/projects.ts';
import { visibleProjects } from '../users/access.ts';
import { ledgerOf } from './ledger-of.ts';
import { type ApiExample, route } from './route.ts';
import {
  type Accounts,
  accountSchema,
  accountsOf,
  amountSchema,
  costText,
  ERROR,
  leftText,
  pageJson,
  pageParameters,
  pageQueryOf,
  pageSchema,
  secondText,
  textParameter,
  timeSchema,
} from './shown.ts';

const query = z.strictObject({
  ...pageParameters,
  search: textParameter('Only projects whose id contains this text, whatever the case.'),
});

const project = z.strictObject({
  project: accountSchema,
  open_leases: z
    .int()
    .meta({ description: `Pending and active leases; at most ${COUNTED_OPEN} are counted.` }),
  budget: z
    .strictObject({ amount: amountSchema, taken: amountSchema, left: amountSchema, until: timeSchema })
    .nullable()
    .meta({ description: "The project's own budget that is in force now; null = there is none." }),
});

/** Besides the answers of every route. */
export const WITHOUT_LEDGER: ApiExample = {
  status: 404,
  description: 'No filter that needs a ledger is enabled.',
  ...ERROR,
};

export const projectsRoute = route({
  id: 'listProjects',
  method: 'GET',
  path: '/v1/projects',
  action: 'list-projects',
  summary: 'List projects',
  description:
    'Projects with leases or budgets, sorted by id. Members see their own, and only those that have some.',
  query,
  answers: [
    { status: 200, description: 'A page of projects.', schema: pageSchema(project), name: 'Projects' },
    WITHOUT_LEDGER,
  ],
  async answer({ generation, person, query: asked, deadline }) {
    const ledger = await ledgerOf(generation, deadline);
    const page = await listProjects(
      ledger,
      { ...pageQueryOf(asked), projectIds: visibleProjects(person), search: asked.search },
      deadline,
    );
    const ids = page.items.map(({ projectId }) => projectId);
    const accounts = await accountsOf(generation, { projects: ids }, deadline);
    return { json: pageJson(page, (row) => projectJson(row, accounts)) };
  },
});

function projectJson({ projectId, openLeases, budget }: ProjectRow, accounts: Accounts) {
  return {
    project: accounts.project(projectId),
    open_leases: openLeases,
    budget: budget && {
      amount: leftText(budget.amount),
      taken: costText(budget.taken),
      left: leftText(budget.left),
      until: secondText(budget.validUntil),
    },
  };
}
