/** `POST /v1/projects/{project_id}/estimate`, and the same for a change of a lease. */
import { z } from 'zod';
import { decisionRecordSchema } from '../../decisions/record.ts';
import { SUGGESTED_CHANGES } from '../../enforcement/estimate/ways.ts';
import { changeableLease, leaseChangeSchema } from '../estimate/changed-lease.ts';
import { estimateChange, estimateLease } from '../estimate/estimate-lease.ts';
import { wantedLeaseSchema } from '../estimate/wanted-lease.ts';
import type { Caller } from '../users/caller.ts';
import { ApiError, type ApiRoute, route } from './route.ts';
import { accountSchema, pathId, refusedAs } from './shown.ts';

const bodySchema = wantedLeaseSchema
  .extend({
    user_id: z.string('expected a text').min(1, 'expected an id').max(255, 'expected an id').optional().meta({
      description: 'The user of the lease; only operators and readers may set it. Default: the caller.',
    }),
  })
  .meta({
    description: 'A lease as it is sent to Blazar (POST /v1/leases). Other attributes are passed on.',
  });

const charge = z
  .object({
    filter: z.string(),
    account: z.string().meta({ examples: ['usage_budget/17', 'max_leases/project'] }),
    kind: z.enum(['usage', 'held']),
    amount: z.string(),
    precision: z.enum(['exact', 'at-most', 'about']),
    limit: z.string().nullable(),
    taken: z.string(),
    left: z.string().nullable(),
  })
  .meta({
    description:
      'The charge of the lease to one account; for a change, the difference to its current charges: below 0 = a refund. usage: in unit-hours. held: a number, such as a count of leases. left: after the lease; below 0 = not enough. limit and left are null where there is no limit.',
  });

const { outcome, filters: decided } = decisionRecordSchema.shape;
// Only policies of SkyPilot change requests.
const filters = z.array(decided.element.omit({ changes: true, changes_left_out: true }));

const answerSchema = (sent: z.ZodType) =>
  z
    .object({
      project: accountSchema,
      user: accountSchema,
      allowed: z.boolean(),
      outcome,
      filter: z.string().nullable(),
      message: z.string().nullable(),
      warnings: z.array(z.string()),
      filters,
      charges: z.array(charge),
      suggestions: z.array(
        z.object({
          change: z.enum(SUGGESTED_CHANGES),
          text: z.string(),
          lease: sent,
          charges: z.array(charge),
        }),
      ),
      searched: z.string().nullable(),
      notes: z.array(z.string()),
    })
    .meta({
      description:
        'The verdict of every filter, the cost of the lease and, if it is refused, similar leases that would be allowed, most similar first. searched: for a refused lease, the alternatives that were searched for.',
    });

const estimateRoute: ApiRoute = route({
  id: 'estimateLease',
  method: 'POST',
  path: '/v1/projects/{project_id}/estimate',
  action: 'estimate',
  summary: 'Estimate the cost of a lease, and whether it would be allowed',
  description:
    'Runs every filter on a lease that is not created, and records nothing. Filters that call other services run at most three times.',
  body: {
    name: 'WantedLease',
    schema: bodySchema,
    example: {
      name: 'training',
      start_date: '2027-01-11 09:00',
      end_date: '2027-01-15 17:00',
      reservations: [
        {
          resource_type: 'physical:host',
          min: 1,
          max: 4,
          hypervisor_properties: '',
          resource_properties: '',
        },
      ],
    },
  },
  answers: [
    { status: 200, description: 'The estimate.', name: 'Estimate', schema: answerSchema(wantedLeaseSchema) },
  ],
  async answer({ caller, params, body, generation, requestId, deadline }) {
    const { user_id, ...wanted } = body;
    const projectId = pathId(params, 'project_id');
    const userId = forWhom(caller, user_id);
    const forMember = caller.kind === 'member';
    const asked = { generation, requestId, projectId, userId, wanted, deadline, forMember };
    return { json: await estimateLease(asked) };
  },
});

const changeRoute: ApiRoute = route({
  id: 'estimateLeaseChange',
  method: 'POST',
  path: '/v1/projects/{project_id}/leases/{lease_id}/estimate',
  action: 'estimate',
  summary: 'Estimate the cost of a change of a lease, and whether it would be allowed',
  description:
    'Like estimateLease, for a change of a lease in the ledger. Charges are the difference to its current charges. The lease of a suggestion is a change, in the format of this request.',
  body: {
    name: 'LeaseChange',
    schema: leaseChangeSchema,
    example: { end_date: '2027-01-16 17:00', reservations: [{ resource_type: 'physical:host', max: 2 }] },
  },
  answers: [
    {
      status: 200,
      description: 'The estimate.',
      name: 'ChangeEstimate',
      schema: answerSchema(leaseChangeSchema),
    },
    refusedAs(404, 'The project has no such lease, or no filter that needs a ledger is enabled.'),
    refusedAs(409, 'The lease has ended, or the ledger does not have its reservations.'),
  ],
  async answer({ caller, params, body: change, generation, requestId, deadline }) {
    const projectId = pathId(params, 'project_id');
    const leaseId = pathId(params, 'lease_id');
    const lease = await changeableLease({ caller, generation, deadline }, leaseId, projectId);
    const forMember = caller.kind === 'member';
    return { json: await estimateChange({ generation, requestId, deadline, forMember, lease, change }) };
  },
});

export const ESTIMATE_ROUTES: readonly ApiRoute[] = [estimateRoute, changeRoute];

/** Members estimate only their own leases. */
function forWhom({ kind, userId }: Caller, named: string | undefined): string {
  if (named !== undefined && named !== userId && kind === 'member') {
    throw new ApiError(403, 'expected no other user: members estimate their own leases', {
      field: 'user_id',
    });
  }
  const user = named ?? userId;
  if (user === null) {
    throw new ApiError(400, 'expected the id of a user: the token is not that of one', { field: 'user_id' });
  }
  return user;
}
