/** Budgets in files: import and export, as CSV and JSON. */
import { z } from 'zod';
import { readBudgetCsv } from '../../../ledger/budgets/csv.ts';
import { BUDGET_COLUMNS, MAX_LINES, readBudgetDocument } from '../../../ledger/budgets/file.ts';
import { importReport } from '../../../ledger/budgets/plan.ts';
import { importFor } from '../../budgets/budget-importing.ts';
import { exportFor, projectsAsked } from '../../budgets/budget-lists.ts';
import { problemShape } from '../../openapi/bodies.ts';
import { type ApiRoute, route } from '../route.ts';
import {
  amountSchema,
  ofProject,
  refusedAs,
  secondOf,
  timeParameter,
  timeSchema,
  WITHOUT_LEDGER,
} from '../shown.ts';

const CSV = 'text/csv';
const lineNumber = z
  .int()
  .meta({ description: 'In CSV the line; in JSON the number of the budget, from 1.' });
const budget = {
  project_id: z.string(),
  user_id: z.string().nullable(),
  valid_from: timeSchema,
  valid_until: timeSchema,
  amount: z.string(),
};
const reportSchema = z.strictObject({
  message: z.string().optional().meta({ description: 'The reason why nothing was set.' }),
  dry_run: z.boolean(),
  set: z.int().meta({ description: 'Number of new budgets.' }),
  changed: z.int(),
  unchanged: z.int(),
  mistakes: z
    .array(z.strictObject({ line: lineNumber.nullable(), field: z.string().nullable(), message: z.string() }))
    .meta({ description: 'If there are mistakes, nothing is set.' }),
  lines: z.array(
    z.strictObject({
      line: lineNumber,
      outcome: z.enum(['set', 'changed', 'unchanged']),
      ...budget,
      before: z
        .strictObject({ valid_until: timeSchema, amount: z.string() })
        .nullable()
        .meta({ description: 'The existing budget that is changed.' }),
    }),
  ),
});

/** Items are checked one by one, so that each mistake is reported with its line. */
const fileSchema = z.strictObject({
  unit: z.string().optional().meta({ description: 'Ignored.' }),
  budgets: z.array(
    z.unknown().meta({
      type: 'object',
      required: BUDGET_COLUMNS.filter((name) => name !== 'user_id'),
      properties: Object.fromEntries(
        BUDGET_COLUMNS.map((name) => [
          name,
          {
            type:
              name === 'user_id' ? ['string', 'null'] : name === 'amount' ? ['string', 'number'] : 'string',
          },
        ]),
      ),
    }),
  ),
});

const exportSchema = z.strictObject({
  unit: z.string(),
  budgets: z.array(
    z.strictObject({
      ...budget,
      taken: amountSchema,
      left: amountSchema,
    }),
  ),
});

const importBudgets = route({
  id: 'importBudgets',
  method: 'POST',
  path: '/v1/budgets/import',
  action: 'import-budgets',
  summary: 'Set many budgets at once: all or none',
  description: `As JSON or CSV, with the columns ${BUDGET_COLUMNS.join(', ')}, of at most ${MAX_LINES} lines. CSV may be separated by commas, semicolons or tabs, and begins with the names of the columns; the other columns of an export (taken, left) are ignored. A budget of the same owner that starts at the same second is changed; others stay. Requests for leases of these projects wait until the import is done.`,
  query: z.strictObject({
    dry_run: z.enum(['true', 'false']).optional().meta({
      description: 'true = only report the budgets that would be set, and all mistakes. Default: false.',
    }),
    reason: z.string().max(4000).optional().meta({
      description: 'The reason, for the history. Required unless it is a dry run.',
    }),
  }),
  body: {
    name: 'BudgetFile',
    schema: fileSchema as z.ZodType<unknown>,
    example: {
      budgets: [
        {
          project_id: 'climate',
          user_id: null,
          valid_from: '2027-01-01T00:00:00Z',
          valid_until: '2028-01-01T00:00:00Z',
          amount: '1000',
        },
      ],
    },
    texts: {
      [CSV]:
        'project_id,user_id,valid_from,valid_until,amount\r\nclimate,,2027-01-01,2028-01-01,1000\r\nclimate,alice,2027-01-01,2027-07-01,50\r\n',
    },
  },
  answers: [
    {
      status: 200,
      description: 'The budgets that were set, or would be.',
      schema: reportSchema,
      name: 'ImportReport',
    },
    WITHOUT_LEDGER,
    {
      status: 422,
      description: 'The file has mistakes, or the reason is missing: nothing was set.',
      schema: reportSchema.partial().extend({ field: z.string().optional(), ...problemShape }),
      name: 'ImportRefusal',
    },
  ],
  async answer(request) {
    const { body, query } = request;
    const file = typeof body === 'string' ? await readBudgetCsv(body) : readBudgetDocument(body);
    const isDryRun = query.dry_run === 'true';
    const plan = await importFor(request, file, { isDryRun, reason: query.reason ?? '' });
    const report = await importReport(plan, isDryRun);
    return { status: report.message === undefined ? 200 : 422, json: report };
  },
});

const exportBudgets = route({
  id: 'exportBudgets',
  method: 'GET',
  path: '/v1/budgets/export',
  action: 'list-budgets',
  summary: 'Export all budgets, in the format of importBudgets',
  description:
    'Sorted like listBudgets. Includes expired budgets, but not removed ones. Every 1000 budgets are from one snapshot. In CSV, ids that a spreadsheet would run as a formula are prefixed with an apostrophe, which an import removes.',
  query: z.strictObject({
    format: z.enum(['csv', 'json']).optional().meta({ description: 'Default: csv.' }),
    project_id: ofProject(),
    valid_at: timeParameter('Only budgets in force at this time.'),
  }),
  answers: [
    {
      status: 200,
      description: 'The file.',
      type: CSV,
      schema: z.string(),
      name: 'ExportedBudgets',
      otherTypes: { 'application/json': exportSchema },
      headers: { 'Content-Disposition': { description: 'The file name.' } },
    },
    WITHOUT_LEDGER,
    refusedAs(422, 'Keystone has no project of this name.'),
  ],
  async answer(request) {
    const { format = 'csv', project_id, valid_at } = request.query;
    const text = await exportFor(request, format, {
      projectIds: await projectsAsked(request, project_id),
      validAt: valid_at && secondOf(valid_at),
    });
    return {
      headers: { 'Content-Disposition': `attachment; filename="budgets.${format}"` },
      content: { type: format === 'csv' ? CSV : 'application/json', text },
    };
  },
});

export const BUDGET_FILE_ROUTES: readonly ApiRoute[] = [importBudgets, exportBudgets];
