/** `GET /v1/ledger/entries`. */
import { z } from 'zod';
import { foldedOfLedger, foldedOfProject } from '../../ledger/folding/totals.ts';
import { type EntryView, listEntries } from '../../ledger/reports/entries.ts';
import { isBudgetAccount } from '../../ledger/reports/reports.ts';
import { foldedJson, foldedSchema } from './folded.ts';
import { ledgerOf } from './ledger-of.ts';
import { requireOrder } from './project-leases.ts';
import { WITHOUT_LEDGER } from './projects.ts';
import { route } from './route.ts';
import {
  type Accounts,
  accountSchema,
  accountsOf,
  costText,
  pageJson,
  pageParameters,
  pageQueryOf,
  pageSchema,
  textParameter,
  timeParameter,
  timeSchema,
  timeText,
} from './shown.ts';

const query = z.strictObject({
  ...pageParameters,
  project_id: textParameter('Only entries of this project.'),
  lease_id: textParameter("Only entries of the lease with this id, which is Blazar's."),
  account: textParameter('Only entries of this account, such as max_leases/project.'),
  operation: textParameter(
    'Only entries of this operation: create, update, end, end-date, undo, reconcile, reopen.',
  ),
  request_id: textParameter('Only entries of this request.'),
  since: timeParameter('Only entries from this time on.'),
  until: timeParameter('Only entries before this time.'),
});

const entry = z.strictObject({
  entry: z.string().meta({ description: 'Its number: entries are only ever added.' }),
  at: timeSchema,
  project: accountSchema,
  user: accountSchema.meta({ description: 'Whose lease it is.' }),
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
    'Every change of a balance, the newest first: who, when and why. A page may have fewer items than `limit`, even none, where few of many entries match: only `next` tells whether there are more.',
  query,
  answers: [
    {
      status: 200,
      description: 'A page of entries.',
      schema: pageSchema(entry).extend({ folded: foldedSchema }),
      name: 'LedgerEntries',
    },
    WITHOUT_LEDGER,
  ],
  async answer({ generation, query: asked, deadline }) {
    requireOrder(asked.since, asked.until);
    const ledger = await ledgerOf(generation, deadline);
    const { project_id: projectId, lease_id: leaseId, request_id: requestId } = asked;
    const { account, operation, since, until } = asked;
    const wanted = {
      ...pageQueryOf(asked),
      ...{ projectId, leaseId, account, operation, requestId, since, until },
    };
    const page = await listEntries(ledger, wanted, deadline);
    const folded =
      projectId === undefined
        ? await foldedOfLedger(ledger, deadline)
        : await foldedOfProject(ledger, projectId, deadline);
    const ids = {
      projects: page.items.map(({ project_id }) => project_id),
      users: page.items.map(({ userId }) => userId),
    };
    const accounts = await accountsOf(generation, ids, deadline);
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
