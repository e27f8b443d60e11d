/** `GET /v1/projects/{project_id}/leases/{lease_id}`: a lease, its charges and its history. */
import { z } from 'zod';
import { inTime } from '../../base/deadline.ts';
import type { StoredDecision } from '../../decisions/store/contract.ts';
import type { Share } from '../../ledger/reports/charges.ts';
import { ledgerFor } from '../budgets/named-accounts.ts';
import { foundLease, leaseHistory } from '../leases/lease-history.ts';
import { may, visibleProjects } from '../users/caller.ts';
import { decisionJson, decisionSchema } from './decisions.ts';
import { entryJson, entrySchema, leaseJson, leaseSchema } from './ledger-lists.ts';
import { ApiError, route } from './route.ts';
import {
  accountsOf,
  amountSchema,
  costText,
  listQuery,
  pageAnswer,
  pageJson,
  pageQueryOf,
  pathId,
  refusedAs,
  secondText,
  timeSchema,
  timeText,
} from './shown.ts';

const NONE = 'there is no such lease in this project, and no decision about it is stored';

const charged = leaseSchema.extend({
  changed_at: timeSchema.meta({ description: 'The time of the last request for it.' }),
  confirmed: z.boolean().meta({
    description:
      'false = not known whether its last change was made; the most expensive possible state is charged until Blazar has been read.',
  }),
  charges: z.array(
    z.strictObject({
      account: z.string().meta({ examples: ['usage_budget/17'] }),
      amount: amountSchema,
      from: timeSchema,
      until: timeSchema,
    }),
  ),
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
    const { one: found, several } =
      ledger === undefined ? {} : await foundLease(ledger, key, [projectId], deadline);
    if (several !== undefined) {
      const rows = several.map(({ row }) => `#${row}`).join(' or ');
      throw new ApiError(409, `several leases have this id: ask for ${rows}`, { field: 'lease_id' });
    }
    const visible = visibleProjects(caller);
    const page = await leaseHistory<StoredDecision>(
      {
        ...pageQueryOf(query),
        caller,
        found,
        ledger,
        leaseId: found === undefined ? key : found.lease.leaseId,
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

function chargeJson({ account, amount, from, until }: Share) {
  return { account, amount: costText(amount), from: secondText(from), until: secondText(until) };
}
