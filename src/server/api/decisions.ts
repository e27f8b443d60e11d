/** `GET /v1/decisions`, `/v1/decisions/{request_id}` and `/v1/projects/{project_id}/decisions`. */
import { z } from 'zod';
import { LedgerUnavailableError } from '../../base/errors.ts';
import { changeRecordSchema, decisionRecordSchema, OPERATIONS, SIDES } from '../../decisions/record.ts';
import { REFUSED } from '../../decisions/selection.ts';
import type { DecisionsQuery, StoredDecision } from '../../decisions/store/contract.ts';
import type { PageOf } from '../../ledger/reports/pages.ts';
import type { FoundDecision } from '../leases/lease-history.ts';
import { visibleProjects } from '../users/caller.ts';
import { ApiError, type ApiRequest, route } from './route.ts';
import {
  type Accounts,
  accountSchema,
  accountsOf,
  listQuery,
  pageAnswer,
  pageJson,
  pageQueryOf,
  pathId,
  refusedAs,
  requireOrder,
  textParameter,
  timeParameter,
  timeSchema,
  timeText,
} from './shown.ts';

const OUTCOMES = decisionRecordSchema.shape.outcome.options;

const parameters = {
  user_id: textParameter('Only decisions about this user: the id, or `name@domain`.'),
  lease_id: textParameter('Only decisions about this lease.'),
  filter: textParameter('Only decisions in which this filter did more than allow.'),
  outcome: z
    .enum([...OUTCOMES, 'refused'], `expected one of ${OUTCOMES.join(', ')}, refused`)
    .optional()
    .meta({ description: 'Only decisions with this outcome. `refused` = rejected and failed.' }),
  operation: z
    .enum(OPERATIONS, `expected one of ${OPERATIONS.join(', ')}`)
    .optional()
    .meta({ description: 'Only decisions about this operation.' }),
  side: z
    .enum(SIDES, `expected one of ${SIDES.join(', ')}`)
    .optional()
    .meta({ description: 'Only requests of SkyPilot from this side.' }),
  from: timeParameter('Only decisions from this time on.'),
  until: timeParameter('Only decisions before this time.'),
};
const projectQuery = listQuery(parameters);
const query = projectQuery.extend({
  project_id: textParameter('Only decisions about this project: its id, or `name@domain`.'),
});

const FOR_ALL = 'null for members.';
export const decisionSchema = z.strictObject({
  time: timeSchema,
  request_id: z.string(),
  operation: z.enum(OPERATIONS),
  side: z
    .enum(SIDES)
    .nullable()
    .meta({ description: 'The side of SkyPilot that sent the request; null = not SkyPilot.' }),
  launch: z.boolean().nullable().meta({
    description: 'Whether this decision counts as a launch of SkyPilot; null = not SkyPilot.',
  }),
  project: accountSchema.nullable(),
  user: accountSchema.nullable(),
  lease_id: z.string().nullable(),
  lease_name: z.string().nullable(),
  asked: z
    .strictObject({
      start: timeSchema,
      end: timeSchema,
      reservations: z.array(z.record(z.string(), z.unknown())).nullable().meta({
        description:
          'Without allocations and attributes that Blazar adds. null = not kept: more than 20, or more than 4 KiB.',
      }),
    })
    .nullable()
    .meta({ description: 'The request of a refused lease.' }),
  allowed: z.boolean(),
  outcome: z.enum(OUTCOMES),
  filter: z.string().nullable().meta({ description: 'The filter that caused the outcome.' }),
  message: z.string().nullable().meta({ description: 'The message for the user; null = allowed.' }),
  warnings: z.array(z.string()).meta({ description: 'Empty for members.' }),
  filters: z.array(
    z.strictObject({
      filter: z.string(),
      outcome: z.enum(decisionRecordSchema.shape.filters.element.shape.outcome.options),
      audit: z.boolean(),
      message: z.string().nullable(),
      duration_ms: z.number().nullable().meta({ description: FOR_ALL }),
      changes: z.array(z.strictObject(changeRecordSchema.shape)).meta({
        description:
          'Changes that a policy of SkyPilot made, or would have made; truncated, and without secrets. `before` and `after` are null where there is no value.',
      }),
      changes_left_out: z.int().meta({ description: 'Number of further changes.' }),
    }),
  ),
  replica: z
    .string()
    .nullable()
    .meta({ description: `The replica that decided. ${FOR_ALL}` }),
  generation: z
    .int()
    .nullable()
    .meta({ description: `The number of its configuration. ${FOR_ALL}` }),
  duration_ms: z.number().nullable().meta({ description: FOR_ALL }),
});

const PAGE = pageAnswer(decisionSchema, 'Decisions', 'A page of decisions.');
const NOT_STORED = refusedAs(404, 'No decisions are stored.');
const LIST =
  'Newest first, from all replicas. `[service] decision_store` sets which decisions are stored, and for how long. A page may have fewer items than `limit`, even none, where few of many decisions match: only `next` shows whether there are more. Members see decisions about leases of their projects, without filters in audit mode.';

export const decisionsRoute = route({
  id: 'listDecisions',
  method: 'GET',
  path: '/v1/decisions',
  action: 'see-decisions',
  summary: 'Search decisions',
  description: LIST,
  query,
  answers: [PAGE, NOT_STORED],
  async answer(request) {
    const { project_id, ...asked } = request.query;
    return { json: await listed(request, { ...selectionOf(asked), projects: listOf(project_id) }) };
  },
});

export const projectDecisionsRoute = route({
  id: 'listProjectDecisions',
  method: 'GET',
  path: '/v1/projects/{project_id}/decisions',
  action: 'see-decisions',
  summary: 'Search the decisions of a project',
  description: LIST,
  query: projectQuery,
  answers: [PAGE, NOT_STORED],
  async answer(request) {
    const projects = [pathId(request.params, 'project_id')];
    return { json: await listed(request, { ...selectionOf(request.query), projects }) };
  },
});

export const decisionRoute = route({
  id: 'getDecisions',
  method: 'GET',
  path: '/v1/decisions/{request_id}',
  action: 'see-decisions',
  summary: 'Show the decisions of a request',
  description:
    'A request id may have several decisions, such as a check and its commit, and clients may send an id again. Newest first, with the verdict of every filter.',
  query: listQuery({}),
  answers: [PAGE, refusedAs(404, 'No decisions are stored, or none with this id that the caller may see.')],
  async answer(request) {
    const requestId = pathId(request.params, 'request_id');
    const found = await listed(request, { ...pageQueryOf(request.query), requestId });
    if (found.items.length === 0 && request.query.after === undefined) {
      throw new ApiError(404, 'no decision with this request id is stored');
    }
    return { json: found };
  },
});

function selectionOf(asked: z.infer<typeof projectQuery>): DecisionsQuery {
  const { user_id, lease_id, filter, outcome, operation, side, from, until } = asked;
  requireOrder(from, until);
  return {
    ...pageQueryOf(asked),
    users: listOf(user_id),
    filters: listOf(filter),
    outcomes: outcome === 'refused' ? REFUSED : listOf(outcome),
    operations: listOf(operation),
    sides: listOf(side),
    leaseId: lease_id,
    since: millisecond(from),
    until: millisecond(until),
  };
}

function listOf<Value>(value: Value | undefined): Value[] | undefined {
  return value === undefined ? undefined : [value];
}

/** Decisions have milliseconds: rounds up. */
function millisecond(instant: bigint | undefined): number | undefined {
  return instant === undefined ? undefined : Math.ceil(Number(instant) / 1000);
}

/** @throws ApiError 404 if decisions are not stored; LedgerUnavailableError */
async function listed(request: ApiRequest<unknown, unknown>, wanted: DecisionsQuery) {
  const { generation, caller, deadline } = request;
  const source = generation.decisions?.source;
  if (source === undefined) {
    throw new ApiError(404, 'this service stores no decisions: see [service] decision_store');
  }
  const visible = visibleProjects(caller);
  const page: PageOf<StoredDecision> = await source
    .search({ ...((await generation.enforcement.names?.withIds(wanted)) ?? wanted), visible }, deadline)
    .catch((thrown: unknown) => {
      throw deadline.milliseconds === 0
        ? new LedgerUnavailableError('the search took too long', { cause: thrown })
        : thrown;
    });
  const owners = page.items.map(({ record }) => ({ projectId: record.project_id, userId: record.user_id }));
  const accounts = await accountsOf(request, owners);
  return pageJson(page, (stored) => decisionJson(stored, accounts, visible !== undefined));
}

export function decisionJson(
  { record, asked, replica }: FoundDecision,
  accounts: Accounts,
  isMember: boolean,
) {
  const { project_id, project_name, project_domain, user_id, user_name, user_domain } = record;
  const hidden = <Value>(value: Value) => (isMember ? null : value);
  type Text = string | null | undefined;
  /** The name at the time of the decision; otherwise the current name. */
  const account = (of: Accounts['project'], id: string | null, name: Text, domain: Text) =>
    id === null ? null : name ? { id, name, domain: domain ?? null } : of(id);
  return {
    time: record.time,
    request_id: record.request_id,
    operation: record.operation,
    side: record.side ?? null,
    launch: record.launch ?? null,
    project: account(accounts.project, project_id, project_name, project_domain),
    user: account(accounts.user, user_id, user_name, user_domain),
    lease_id: record.lease_id,
    lease_name: record.lease_name,
    asked: asked
      ? {
          start: timeText(asked.start),
          end: timeText(asked.end),
          reservations: asked.reservations ?? null,
        }
      : null,
    allowed: record.allowed,
    outcome: record.outcome,
    filter: record.filter,
    message: record.message,
    warnings: record.warnings,
    filters: record.filters.map((one) => ({
      ...one,
      duration_ms: hidden(one.duration_ms),
      changes: one.changes ?? [],
      changes_left_out: one.changes_left_out ?? 0,
    })),
    replica: hidden(replica ?? null),
    generation: hidden(record.generation),
    duration_ms: hidden(record.duration_ms),
  };
}
