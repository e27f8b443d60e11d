/** `GET /v1/projects` and `/v1/projects/{project_id}`: what a member needs before requesting a lease. */
import { z } from 'zod';
import { budgetAccount } from '../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND, secondText } from '../../lease/dates.ts';
import { type BudgetView, pageOfBudgets } from '../../ledger/budgets/view.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { plannedUse } from '../../ledger/reports/lease-span.ts';
import { listProjectLeases } from '../../ledger/reports/leases.ts';
import { COUNTED_OPEN, listProjects, type ProjectRow } from '../../ledger/reports/projects.ts';
import { MAX_DAYS, usagesOf } from '../../ledger/reports/usage.ts';
import { ledgerFor } from '../budgets/named-accounts.ts';
import { visibleProjects } from '../users/caller.ts';
import { budgetJson, budgetSchema } from './budgets/json.ts';
import { leaseJson, leaseSchema } from './leases.ts';
import { limitsFor, limitsSchema } from './project-limits.ts';
import { usageJson, usageSchema } from './project-usage.ts';
import { type ApiRequest, route } from './route.ts';
import {
  type Accounts,
  accountSchema,
  accountsOf,
  amountSchema,
  costText,
  leftText,
  listQuery,
  namedPage,
  pageAnswer,
  pageQueryOf,
  pathId,
  textParameter,
  timeSchema,
  WITHOUT_LEDGER,
} from './shown.ts';

const listed = z.strictObject({
  project: accountSchema,
  open_leases: z
    .int()
    .meta({ description: `Pending and active leases; at most ${COUNTED_OPEN} are counted.` }),
  budget: z
    .strictObject({ amount: amountSchema, taken: amountSchema, left: amountSchema, until: timeSchema })
    .nullable()
    .meta({ description: "The project's own budget that is in force now; null = none." }),
});

export const projectsRoute = route({
  id: 'listProjects',
  method: 'GET',
  path: '/v1/projects',
  action: 'list-projects',
  summary: 'List projects',
  description: 'Projects with leases or budgets, sorted by id. Members see their own projects.',
  query: listQuery({
    search: textParameter('Only projects whose id contains this text, ignoring case.'),
  }),
  answers: [pageAnswer(listed, 'Projects', 'A page of projects.'), WITHOUT_LEDGER],
  async answer(request) {
    const { caller, query: asked, deadline } = request;
    const ledger = await ledgerFor(request);
    const page = await listProjects(
      ledger,
      { ...pageQueryOf(asked), projectIds: visibleProjects(caller), search: asked.search },
      deadline,
    );
    return { json: await namedPage(request, page, listedJson) };
  },
});

function listedJson({ projectId, openLeases, budget }: ProjectRow, accounts: Accounts) {
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

/** Limits of the parts of this response. The full lists have their own routes. */
const MAX_BUDGETS = 100;
const MAX_LEASES = 20;
const MAX_GROUPS = 20;
const DAY = 86_400n;
/** Days of usage for a project without a budget in force. */
const USUAL_DAYS = 30n;

const budget = z.strictObject({
  ...budgetSchema.shape,
  planned: amountSchema.nullable().meta({
    description:
      'The part of `taken` that pending and active leases will still use. null = too many leases to compute it.',
  }),
});

const project = z.strictObject({
  project: accountSchema,
  exempt: z.boolean().meta({ description: 'Whether leases of the project are allowed without checks.' }),
  unit: z.string().meta({ description: 'The unit of budgets.', examples: ['node-hours'] }),
  budgets: z.array(budget).meta({
    description: `Budgets in force now, those of the project first; at most ${MAX_BUDGETS}.`,
  }),
  has_more_budgets: z.boolean(),
  usage: z.strictObject({ by_user: usageSchema, by_resource_type: usageSchema }).meta({
    description: `Over the validity of the project's budget in force, but at most ${MAX_DAYS} days around now; without a budget, over the last ${USUAL_DAYS} days.`,
  }),
  open_leases: z
    .array(leaseSchema)
    .meta({ description: `The newest ${MAX_LEASES} pending and active leases.` }),
  has_more_open_leases: z.boolean(),
  limits: z
    .array(limitsSchema)
    .meta({ description: 'The enabled filters, in their order, with the options that apply.' }),
});

export const projectRoute = route({
  id: 'getProject',
  method: 'GET',
  path: '/v1/projects/{project_id}',
  action: 'see-project',
  summary: 'Show a project',
  description:
    'Its budgets, usage and open leases, and the limits that apply to it. For a project that is not in the ledger, the lists are empty.',
  answers: [{ status: 200, description: 'The project.', schema: project, name: 'Project' }, WITHOUT_LEDGER],
  async answer(request) {
    const projectId = pathId(request.params, 'project_id');
    const ledger = await ledgerFor(request);
    const { budgets, leases, planned, usage, until } = await factsOf(ledger, projectId, request);
    const accounts = await accountsOf(request, [
      { projectId },
      ...[...budgets.items, ...leases.items].map(({ userId }) => ({ userId })),
      ...usage.user.groups.slice(0, MAX_GROUPS).map(({ key }) => ({ userId: key })),
    ]);
    const { isExempt, limits } = limitsFor(request, projectId);
    const shown = { until, accounts, most: MAX_GROUPS };
    return {
      json: {
        project: accounts.project(projectId),
        exempt: isExempt,
        unit: accounts.unit,
        budgets: budgets.items.map((one) => ({
          ...budgetJson(one, accounts),
          planned: planned === undefined ? null : costText(planned.get(budgetAccount(one)) ?? 0n),
        })),
        has_more_budgets: budgets.next !== undefined,
        usage: {
          by_user: usageJson(usage.user, { ...shown, groupBy: 'user' }),
          by_resource_type: usageJson(usage.resource_type, { ...shown, groupBy: 'resource_type' }),
        },
        open_leases: leases.items.map((lease) => leaseJson(lease, accounts)),
        has_more_open_leases: leases.next !== undefined,
        limits,
      },
    };
  },
});

async function factsOf(
  ledger: Ledger,
  projectId: string,
  { deadline }: Pick<ApiRequest<unknown, unknown>, 'deadline'>,
) {
  const now = ledger.now() / MICROSECONDS_PER_SECOND;
  const inForce = { projectIds: [projectId], validAt: now, limit: MAX_BUDGETS, after: undefined };
  const budgets = await pageOfBudgets(ledger, inForce, deadline);
  const open = { projectId, state: 'open' as const, limit: MAX_LEASES, after: undefined };
  const leases = await listProjectLeases(ledger, open, deadline);
  const planned = await plannedUse(ledger, projectId, deadline);
  const { from, until } = spanOf(
    budgets.items.find(({ userId }) => userId === null),
    now,
  );
  const usage = await usagesOf(ledger, { projectId, from, until }, ['user', 'resource_type'], deadline);
  return { budgets, leases, planned, usage, until };
}

/** For a budget that is valid for longer than usage can be reported at once: the time around now. */
function spanOf(own: Pick<BudgetView, 'validFrom' | 'validUntil'> | undefined, now: bigint) {
  if (own === undefined) {
    return { from: now - USUAL_DAYS * DAY, until: now };
  }
  const longest = BigInt(MAX_DAYS) * DAY;
  const { validFrom, validUntil } = own;
  const from =
    validUntil - validFrom <= longest || now - validFrom < longest / 2n ? validFrom : now - longest / 2n;
  return { from, until: validUntil - from < longest ? validUntil : from + longest };
}
