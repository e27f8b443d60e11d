/** `GET /v1/projects/{project_id}/leases`. */
import { z } from 'zod';
import { foldedOfProject } from '../../ledger/folding/totals.ts';
import { type LeaseRowView, listProjectLeases } from '../../ledger/reports/leases.ts';
import { foldedJson, foldedSchema } from './folded.ts';
import { ledgerOf } from './ledger-of.ts';
import { WITHOUT_LEDGER } from './projects.ts';
import { ApiError, route } from './route.ts';
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
  pathId,
  textParameter,
  timeParameter,
  timeSchema,
  timeText,
} from './shown.ts';

const query = z.strictObject({
  ...pageParameters,
  state: z
    .enum(['pending', 'active', 'open', 'ended'], 'expected pending, active, open or ended')
    .optional()
    .meta({ description: 'Only leases in this state. `open` = pending and active.' }),
  user_id: textParameter('Only leases of this user.'),
  from: timeParameter('Only leases that end after this time.'),
  until: timeParameter('Only leases that start before this time.'),
});

/** A lease of a list. */
export const leaseSchema = z.strictObject({
  row: z.string().meta({ description: 'The number of the lease in the ledger.' }),
  lease_id: z.string().nullable().meta({ description: "Blazar's id; null = it has not told it yet." }),
  region: z.string().meta({ description: 'Empty = the request named none.' }),
  user: accountSchema,
  name: z.string(),
  start: timeSchema,
  end: timeSchema.meta({ description: 'The real end, if it ended before its end date.' }),
  state: z.enum(['pending', 'active', 'ended']),
  recorded_at: timeSchema,
  cost: amountSchema.meta({
    description:
      'Unit-hours that it takes from budgets; the most that it may be, until Blazar has confirmed it.',
  }),
  resources: z.record(z.string(), z.int()).meta({
    description:
      'How many of each resource type were asked for. Empty = it was recorded by a version that did not note it.',
  }),
});

export const projectLeasesRoute = route({
  id: 'listProjectLeases',
  method: 'GET',
  path: '/v1/projects/{project_id}/leases',
  action: 'see-project',
  summary: 'List the leases of a project',
  description:
    'The newest first, as they were recorded. A page may have fewer items than `limit`, even none, where few of many leases match: only `next` tells whether there are more.',
  query,
  answers: [
    {
      status: 200,
      description: 'A page of leases.',
      schema: pageSchema(leaseSchema).extend({ folded: foldedSchema }),
      name: 'Leases',
    },
    WITHOUT_LEDGER,
  ],
  async answer({ generation, params, query: asked, deadline }) {
    const { state, user_id: userId, from, until } = asked;
    requireOrder(from, until);
    const projectId = pathId(params, 'project_id');
    const ledger = await ledgerOf(generation, deadline);
    const wanted = { ...pageQueryOf(asked), projectId, state, userId, from, until };
    const page = await listProjectLeases(ledger, wanted, deadline);
    const folded = foldedJson(await foldedOfProject(ledger, projectId, deadline));
    const accounts = await accountsOf(
      generation,
      { users: page.items.map((lease) => lease.userId) },
      deadline,
    );
    return { json: { ...pageJson(page, (lease) => leaseJson(lease, accounts)), folded } };
  },
});

/** @throws ApiError unless the span ends after it begins */
export function requireOrder(from: bigint | undefined, until: bigint | undefined): void {
  if (from !== undefined && until !== undefined && from >= until) {
    throw new ApiError(400, 'expected a time after from', { field: 'until' });
  }
}

export function leaseJson(lease: LeaseRowView, accounts: Accounts) {
  return {
    row: String(lease.row),
    lease_id: lease.leaseId,
    region: lease.region,
    user: accounts.user(lease.userId),
    name: lease.name,
    start: timeText(lease.start),
    end: timeText(lease.end),
    state: lease.state,
    recorded_at: timeText(lease.recordedAt),
    cost: costText(lease.cost),
    resources: Object.fromEntries(lease.resources),
  };
}
