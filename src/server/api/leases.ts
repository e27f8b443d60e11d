/**
 * `GET /v1/projects/{project_id}/leases`, one of them with its charges and its history, and
 * `GET /v1/ledger/entries`.
 */
import { z } from 'zod';
import { inTime } from '../../base/deadline.ts';
import { secondText } from '../../lease/dates.ts';
import { foldedOfLedger, foldedOfProject } from '../../ledger/folding/totals.ts';
import type { Share } from '../../ledger/reports/charges.ts';
import { type EntryView, listEntries } from '../../ledger/reports/entries.ts';
import { type LeaseRowView, listProjectLeases } from '../../ledger/reports/leases.ts';
import { isBudgetAccount, type ListedRow } from '../../ledger/reports/reports.ts';
import { ledgerFor, listedId, listedUser } from '../budgets/named-accounts.ts';
import { foundLease, leaseHistory } from '../leases/lease-history.ts';
import { may, visibleProjects } from '../users/caller.ts';
import { decisionJson, decisionSchema } from './decisions.ts';
import { ApiError, route } from './route.ts';
import {
  type Accounts,
  accountSchema,
  accountsOf,
  amountSchema,
  costText,
  foldedJson,
  foldedSchema,
  listQuery,
  namedPage,
  ofProject,
  ofUser,
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
  UNNAMED,
  WITHOUT_LEDGER,
} from './shown.ts';

export const leaseSchema = z.strictObject({
  row: z.string().meta({ description: 'The number of the lease in the ledger.' }),
  lease_id: z.string().nullable().meta({ description: "Blazar's id; null = not known yet." }),
  region: z.string().meta({ description: 'Empty = the request named no region.' }),
  user: accountSchema,
  name: z.string(),
  start: timeSchema,
  end: timeSchema.meta({ description: 'The actual end, if it ended before its end date.' }),
  state: z.enum(['pending', 'active', 'ended']),
  recorded_at: timeSchema,
  cost: amountSchema.meta({
    description:
      'Unit-hours that it takes from budgets; the maximum possible until Blazar has confirmed the lease.',
  }),
  resources: z.record(z.string(), z.int()).meta({
    description:
      'Requested number of each resource type. Empty = none, or recorded by a version that did not store it.',
  }),
});

/** What a lease takes from a budget. */
export const chargeSchema = z.strictObject({
  account: z.string().meta({ examples: ['usage_budget/17'] }),
  amount: amountSchema,
  from: timeSchema,
  until: timeSchema,
});

export const projectLeasesRoute = route({
  id: 'listProjectLeases',
  method: 'GET',
  path: '/v1/projects/{project_id}/leases',
  action: 'see-project',
  summary: 'List the leases of a project',
  description:
    'In the order of recording, newest first. A page may have fewer items than `limit`, even none, where few of many leases match: only `next` shows whether there are more.',
  query: listQuery({
    state: z
      .enum(['pending', 'active', 'open', 'ended'], 'expected pending, active, open or ended')
      .optional()
      .meta({ description: 'Only leases in this state. `open` = pending and active.' }),
    user_id: ofUser('leases of'),
    from: timeParameter('Only leases that end after this time.'),
    until: timeParameter('Only leases that start before this time.'),
  }),
  answers: [
    pageAnswer(leaseSchema, 'Leases', 'A page of leases.', { folded: foldedSchema }),
    WITHOUT_LEDGER,
    UNNAMED,
  ],
  async answer(request) {
    const { params, query: asked, deadline } = request;
    const { state, user_id, from, until } = asked;
    requireOrder(from, until);
    const projectId = pathId(params, 'project_id');
    const ledger = await ledgerFor(request);
    const userId = user_id === undefined ? undefined : await listedUser(request, user_id);
    const wanted = { ...pageQueryOf(asked), projectId, state, userId, from, until };
    const page = await listProjectLeases(ledger, wanted, deadline);
    const folded = foldedJson(await foldedOfProject(ledger, projectId, deadline));
    return { json: { ...(await namedPage(request, page, leaseJson)), folded } };
  },
});

export function leaseJson(lease: LeaseRowView, accounts: Accounts) {
  return {
    ...listedLeaseJson(lease, accounts),
    cost: costText(lease.cost),
    resources: Object.fromEntries(lease.resources),
  };
}

export function listedLeaseJson<State>(
  lease: ListedRow & { readonly end: bigint; readonly state: State },
  accounts: Accounts,
) {
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
  };
}

export const entrySchema = z.strictObject({
  entry: z.string().meta({ description: 'Its number; increases, since entries are only added.' }),
  at: timeSchema,
  project: accountSchema,
  user: accountSchema.meta({ description: 'The owner of the lease.' }),
  lease_id: z.string().nullable(),
  lease_row: z.string().meta({ description: 'The number of the lease in the ledger.' }),
  operation: z.string(),
  account: z.string(),
  delta: z.string().meta({ description: 'The change of the balance: a whole number.' }),
  unit_hours: z
    .string()
    .nullable()
    .meta({ description: 'The same in unit-hours, for accounts of budgets; null for others.' }),
  who: z.string(),
  request_id: z.string().nullable(),
  reason: z.string().nullable(),
});

export const ledgerEntriesRoute = route({
  id: 'listLedgerEntries',
  method: 'GET',
  path: '/v1/ledger/entries',
  action: 'see-ledger',
  summary: 'List the entries of the ledger',
  description:
    'Changes of balances, newest first, with author, time and reason. A page may have fewer items than `limit`, even none, where few of many entries match: only `next` shows whether there are more.',
  query: listQuery({
    project_id: ofProject('entries '),
    lease_id: textParameter('Only entries of the lease with this id of Blazar.'),
    account: textParameter('Only entries of this account, such as max_leases/project.'),
    operation: textParameter(
      'Only entries of this operation: create, update, end, end-date, undo, reconcile, reopen.',
    ),
    request_id: textParameter('Only entries of this request.'),
    from: timeParameter('Only entries from this time on.'),
    since: timeParameter('The name of `from` before version 1.1.').meta({ deprecated: true }),
    until: timeParameter('Only entries before this time.'),
  }),
  answers: [
    pageAnswer(entrySchema, 'LedgerEntries', 'A page of entries.', { folded: foldedSchema }),
    WITHOUT_LEDGER,
    UNNAMED,
  ],
  async answer(request) {
    const { query: asked, deadline } = request;
    if (asked.from !== undefined && asked.since !== undefined) {
      throw new ApiError(400, 'expected from alone: it is the same', { field: 'since' });
    }
    const since = asked.from ?? asked.since;
    requireOrder(since, asked.until);
    const ledger = await ledgerFor(request);
    const { project_id, lease_id: leaseId, request_id: requestId, account, operation, until } = asked;
    const projectId = project_id === undefined ? undefined : await listedId(request, 'project', project_id);
    const wanted = { projectId, leaseId, account, operation, requestId, since, until };
    const page = await listEntries(ledger, { ...pageQueryOf(asked), ...wanted }, deadline);
    const folded =
      projectId === undefined
        ? await foldedOfLedger(ledger, deadline)
        : await foldedOfProject(ledger, projectId, deadline);
    const owners = page.items.map((one) => ({ projectId: one.project_id, userId: one.userId }));
    const accounts = await accountsOf(request, owners);
    return { json: { ...pageJson(page, (one) => entryJson(one, accounts)), folded: foldedJson(folded) } };
  },
});

function entryJson(one: EntryView, accounts: Accounts) {
  return {
    entry: String(one.id),
    at: timeText(one.at),
    project: accounts.project(one.project_id),
    user: accounts.user(one.userId),
    lease_id: one.leaseId,
    lease_row: String(one.lease),
    operation: one.operation,
    account: one.account,
    delta: String(one.delta),
    unit_hours: isBudgetAccount(one.account) ? costText(one.delta) : null,
    who: one.who,
    request_id: one.request_id,
    reason: one.reason,
  };
}

const NONE = 'there is no such lease in this project, and no decision about it is stored';

const charged = leaseSchema.extend({
  changed_at: timeSchema.meta({ description: 'The time of the last request for it.' }),
  confirmed: z.boolean().meta({
    description:
      'false = not known whether its last change was made; the most expensive possible state is charged until Blazar has been read.',
  }),
  charges: z.array(chargeSchema),
});

const step = z
  .strictObject({
    at: timeSchema,
    decision: decisionSchema.nullable(),
    entry: entrySchema.extend({ who: z.string().nullable() }).nullable(),
  })
  .meta({ description: 'A decision or an entry of the ledger: the other is null.' });

export const projectLeaseRoute = route({
  id: 'getProjectLease',
  method: 'GET',
  path: '/v1/projects/{project_id}/leases/{lease_id}',
  action: 'see-project',
  summary: 'Show a lease with its charges and its history',
  description:
    "`lease_id` is Blazar's id, or `#` and the number of the row. The items are the history of the lease, newest first: decisions, if they are stored, and entries of the ledger. A page may have fewer items than `limit`, even none: only `next` shows whether there are more. Members see entries of budgets, without `who` and `reason`.",
  query: listQuery({}),
  answers: [
    pageAnswer(step, 'LeaseHistory', 'A page of its history.', {
      lease: charged.nullable().meta({ description: 'null = not in the ledger.' }),
    }),
    refusedAs(404, 'No such lease, or there is neither a ledger nor stored decisions.'),
    refusedAs(409, 'Several regions have a lease with this id: use the number of its row.'),
  ],
  async answer(request) {
    const { generation, caller, params, query, deadline } = request;
    const projectId = pathId(params, 'project_id');
    const key = pathId(params, 'lease_id');
    const source = generation.decisions?.source;
    const ledger =
      generation.ledger === undefined && source !== undefined ? undefined : await ledgerFor(request);
    const { one: found, several } = await foundLease(ledger, key, [projectId], deadline);
    if (several !== undefined) {
      const rows = several.map(({ row }) => `#${row}`).join(' or ');
      throw new ApiError(409, `several leases have this id: request ${rows}`, { field: 'lease_id' });
    }
    const visible = visibleProjects(caller);
    const page = await leaseHistory(
      {
        ...pageQueryOf(query),
        caller,
        found,
        ledger,
        key,
        search:
          source &&
          ((wanted, of) =>
            inTime(source.search({ ...wanted, ...of, projects: [projectId], visible }, deadline), deadline)),
      },
      deadline,
    );
    if (found === undefined && page.items.length === 0 && page.next === undefined) {
      throw new ApiError(404, NONE);
    }
    const accounts = await accountsOf(request, [
      { projectId, userId: found?.lease.userId ?? null },
      ...page.items.map(({ decision, entry }) => ({
        userId: decision?.record.user_id ?? entry?.userId ?? null,
      })),
    ]);
    return {
      json: {
        lease:
          found === undefined
            ? null
            : {
                ...leaseJson(found.lease, accounts),
                changed_at: timeText(found.lease.changedAt),
                confirmed: found.lease.isConfirmed,
                charges: found.lease.charges.map(chargeJson),
              },
        ...pageJson(page, ({ at, decision, entry }) => ({
          at: timeText(at),
          decision: decision === undefined ? null : decisionJson(decision, accounts, visible !== undefined),
          entry:
            entry === undefined
              ? null
              : { ...entryJson(entry, accounts), ...(!may(caller, 'see-ledger') && { who: null }) },
        })),
      },
    };
  },
});

export function chargeJson({ account, amount, from, until }: Share) {
  return { account, amount: costText(amount), from: secondText(from), until: secondText(until) };
}
