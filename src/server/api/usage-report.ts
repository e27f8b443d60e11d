/** `GET /v1/reports/usage`. */
import { z } from 'zod';
import { InvalidRequestError } from '../../base/errors.ts';
import { budgetUnit } from '../../enforcement/configuration.ts';
import { usageCsv, usageFocus, usageJson } from '../../ledger/reports/usage/formats.ts';
import { reportSpan, reportUsage } from '../../ledger/reports/usage/report.ts';
import {
  MAX_REPORT_DAYS,
  TooManyRowsError,
  USAGE_KEYS,
  type UsageReport,
  type UsageReportQuery,
} from '../../ledger/reports/usage/sums.ts';
import { projectsAsked } from '../budgets/budget-lists.ts';
import { ledgerFor, type Requester } from '../budgets/named-accounts.ts';
import { ApiError, route } from './route.ts';
import {
  accountSchema,
  accountsOf,
  amountSchema,
  foldedSchema,
  ofProject,
  refusedAs,
  requireOrder,
  secondOf,
  timeParameter,
  timeSchema,
  WITHOUT_LEDGER,
} from './shown.ts';

const CSV = 'text/csv';
/** Maximum rows of a response; the command has no limit. */
const MOST_ROWS = 5000;

const exact = z.strictObject({ amount: z.string(), user_amount: z.string() });
const amounts = {
  amount: amountSchema.nullable().meta({
    description: 'Unit-hours taken from budgets of projects, past and planned. null for resource types.',
  }),
  user_amount: amountSchema.nullable().meta({
    description:
      'The same from budgets of users. Where a project and its user have budgets, both are charged for the same usage.',
  }),
  exact: exact.nullable().meta({
    description: 'The same in millionths of a unit times seconds: whole numbers whose sum is exact.',
  }),
};
const hours = (what: string) =>
  z.string().meta({ description: `${what}: a decimal number.`, examples: ['48'] });

const reportSchema = z.strictObject({
  from: timeSchema,
  until: timeSchema,
  by: z.enum(USAGE_KEYS),
  unit: z.string(),
  rows: z.array(
    z.strictObject({
      project: accountSchema.optional().meta({ description: 'With by=project and by=user.' }),
      user: accountSchema.nullable().optional().meta({
        description: 'With by=user; null = folded leases whose users are unknown.',
      }),
      month: z
        .string()
        .optional()
        .meta({ description: 'With by=month, in UTC.', examples: ['2026-12'] }),
      resource_type: z.string().optional().meta({ description: 'With by=resource_type.' }),
      ...amounts,
      resource_hours: hours('Hosts, instances and addresses times hours that leases had reserved'),
      leases: z.int().meta({ description: 'Leases in this time; for a type, those that reserve it.' }),
      ended_early: z.int().meta({ description: 'Leases that ended before their end date, or never began.' }),
      unused_hours: hours(
        'Hosts, instances and addresses times hours that these had still reserved when they ended',
      ),
    }),
  ),
  undated: z.strictObject({ ...amounts, exact }).meta({
    description: 'Charges of folded leases, inside or outside of this time: not included in any row.',
  }),
  folded: foldedSchema.meta({
    description: 'Folded leases that may have been in this time: only amounts include them. null = none.',
  }),
  leases_of_unknown_resources: z.int().meta({
    description: 'Leases that were recorded by a version that did not store resources: they have no hours.',
  }),
});

export const usageReportRoute = route({
  id: 'reportUsage',
  method: 'GET',
  path: '/v1/reports/usage',
  action: 'list-projects',
  summary: 'Report usage in a time range',
  description: `For all projects, or for members their own; at most ${MOST_ROWS} rows. The sums are exact, and from one snapshot: see "Reports of usage" in the documentation for the rules. In CSV, ids that a spreadsheet would run as a formula are prefixed with an apostrophe. Only one report is computed at a time.`,
  query: z.strictObject({
    from: timeParameter('To the second. Default: the start of the month of `until`.'),
    until: timeParameter(`To the second, at most ${MAX_REPORT_DAYS} days after \`from\`. Default: now.`),
    by: z
      .enum(USAGE_KEYS, `expected ${USAGE_KEYS.join(', ')}`)
      .optional()
      .meta({ description: 'Default: project. user = each user in each project.' }),
    project_id: ofProject(),
    format: z
      .enum(['json', 'csv', 'focus'], 'expected json, csv or focus')
      .optional()
      .meta({ description: 'Default: json. focus = CSV with the columns of FOCUS 1.2.' }),
  }),
  answers: [
    {
      status: 200,
      description: 'The report.',
      schema: reportSchema,
      name: 'UsageReport',
      otherTypes: { [CSV]: z.string() },
      headers: { 'Content-Disposition': { description: 'The file name.' } },
    },
    WITHOUT_LEDGER,
    refusedAs(422, 'Keystone has no project of this name, or there are too many rows.'),
  ],
  async answer(request) {
    const { by = 'project', format = 'json', project_id, from, until } = request.query;
    const { generation } = request;
    requireOrder(from, until);
    const isDetailed = format === 'focus';
    const asked = { by, isDetailed, from: from && secondOf(from), until: until && secondOf(until) };
    const { report, span } = await usageFor(request, project_id, asked);
    const unit = budgetUnit(generation.configuration);
    if (format === 'csv') {
      return fileOf('usage.csv', usageCsv(report, by, unit));
    }
    const accounts = await accountsOf(request, report.rows);
    if (format === 'focus') {
      const nameOf = (id: string) => accounts.project(id).name;
      return fileOf('usage-focus.csv', usageFocus(report, by, unit, nameOf));
    }
    return {
      headers: named('usage.json'),
      json: usageJson(report, { ...span, by, unit }, ({ projectId, userId }) => ({
        ...(projectId !== null && { project: accounts.project(projectId) }),
        ...(by === 'user' && { user: userId === null ? null : accounts.user(userId) }),
      })),
    };
  },
});

/** Usage that the caller may see. `project`: only this one. @throws ApiError, LedgerUnavailableError */
export async function usageFor(
  requester: Requester,
  project: string | undefined,
  asked: Pick<UsageReportQuery, 'by' | 'isDetailed'> & {
    readonly from: bigint | undefined;
    readonly until: bigint | undefined;
  },
): Promise<{ readonly report: UsageReport; readonly span: ReturnType<typeof reportSpan> }> {
  const ledger = await ledgerFor(requester);
  const projectIds = await projectsAsked(requester, project);
  try {
    const span = reportSpan(asked, ledger.now());
    const query = { ...asked, ...span, projectIds, most: MOST_ROWS, cachesTotals: true };
    return { report: await reportUsage(ledger, query, requester.deadline), span };
  } catch (thrown) {
    if (thrown instanceof InvalidRequestError) {
      const { field, message } = thrown;
      throw new ApiError(400, message.slice(field.length + 2), { field });
    }
    if (thrown instanceof TooManyRowsError) {
      throw new ApiError(422, `${thrown.message}: request one project, a shorter time or another grouping`, {
        field: 'by',
      });
    }
    throw thrown;
  }
}

function fileOf(name: string, text: AsyncIterable<string>) {
  return { headers: named(name), content: { type: CSV, text } };
}

function named(name: string) {
  return { 'Content-Disposition': `attachment; filename="${name}"` };
}
