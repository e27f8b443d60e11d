/** `GET /v1/projects/{project_id}/usage`. */
import { z } from 'zod';
import { secondText } from '../../lease/dates.ts';
import { hoursText } from '../../ledger/reports/usage/formats.ts';
import { MAX_DAYS, type UsageGroup, type UsageReport, usageOf } from '../../ledger/reports/usage.ts';
import { ledgerFor } from '../budgets/named-accounts.ts';
import { ApiError, route } from './route.ts';
import {
  type Accounts,
  accountSchema,
  accountsOf,
  amountSchema,
  costText,
  foldedJson,
  foldedSchema,
  pathId,
  requireOrder,
  secondOf,
  timeParameter,
  timeSchema,
  WITHOUT_LEDGER,
} from './shown.ts';

const DAY = 86_400n;
/** Days covered by a query without `from`. */
const USUAL = 30n;
/** Users or types beyond this number are summed up as one group. */
const MAX_GROUPS = 1000;

const query = z.strictObject({
  group_by: z
    .enum(['user', 'resource_type', 'day'], 'expected user, resource_type or day')
    .optional()
    .meta({ description: 'Default: user. Days are in UTC.' }),
  from: timeParameter(`To the second. Default: ${USUAL} days before \`until\`.`),
  until: timeParameter(`To the second, at most ${MAX_DAYS} days after \`from\`. Default: now.`),
});

const used = {
  amount: amountSchema.nullable().meta({
    description: 'Unit-hours taken from budgets in this time, past and planned. null for resource types.',
  }),
  resource_hours: z
    .string()
    .meta({ description: 'Hosts, instances and addresses times hours: a decimal number.', examples: ['48'] }),
  leases: z.int(),
};

const group = z.strictObject({
  user: accountSchema.optional().meta({ description: 'With group_by=user.' }),
  resource_type: z.string().optional().meta({ description: 'With group_by=resource_type.' }),
  day: z
    .string()
    .optional()
    .meta({ description: 'With group_by=day.', examples: ['2026-12-01'] }),
  ...used,
});

export const usageSchema = z.strictObject({
  from: timeSchema.meta({ description: 'Everything from this time on is counted.' }),
  until: timeSchema,
  is_partial: z.boolean().meta({
    description:
      'Whether there are too many leases, or older ones are folded into totals: then `from` is later than requested, and the figures are exact from there on.',
  }),
  folded: foldedSchema,
  group_by: z.enum(['user', 'resource_type', 'day']),
  groups: z.array(group).meta({ description: 'Days by date, other groups by amount, largest first.' }),
  others: z
    .strictObject(used)
    .nullable()
    .meta({ description: `The sum of all groups beyond ${MAX_GROUPS}; null = no further groups.` }),
  leases_of_unknown_resources: z.int().meta({
    description:
      'Leases in this time that were recorded by a version that did not store resources: not in `resource_hours`.',
  }),
});

export const projectUsageRoute = route({
  id: 'getProjectUsage',
  method: 'GET',
  path: '/v1/projects/{project_id}/usage',
  action: 'see-project',
  summary: 'Show the usage of a project',
  description:
    'Charges of its leases to its budgets, and the resources that they reserved, in a time range. Leases that Blazar has not confirmed count with the maximum that they may take.',
  query,
  answers: [{ status: 200, description: 'The usage.', schema: usageSchema, name: 'Usage' }, WITHOUT_LEDGER],
  async answer(request) {
    const { params, query: asked, deadline } = request;
    const projectId = pathId(params, 'project_id');
    requireOrder(asked.from, asked.until);
    const ledger = await ledgerFor(request);
    const until = secondOf(asked.until ?? ledger.now());
    const from = asked.from === undefined ? until - USUAL * DAY : secondOf(asked.from);
    if (until <= from) {
      throw new ApiError(400, 'expected a time before until; without until, that is now', { field: 'from' });
    }
    if (until - from > BigInt(MAX_DAYS) * DAY) {
      throw new ApiError(400, `expected at most ${MAX_DAYS} days`, { field: 'from' });
    }
    const groupBy = asked.group_by ?? 'user';
    const report = await usageOf(ledger, { projectId, from, until, groupBy }, deadline);
    const users = groupBy === 'user' ? report.groups.slice(0, MAX_GROUPS) : [];
    const accounts = await accountsOf(
      request,
      users.map(({ key }) => ({ userId: key })),
    );
    return { json: usageJson(report, { groupBy, until, accounts, most: MAX_GROUPS }) };
  },
});

interface Shown {
  readonly groupBy: z.infer<typeof usageSchema>['group_by'];
  readonly until: bigint;
  readonly accounts: Accounts;
  readonly most: number;
}

export function usageJson(report: UsageReport, { groupBy, until, accounts, most }: Shown) {
  const named = ({ key }: UsageGroup) =>
    groupBy === 'user' ? { user: accounts.user(key) } : { [groupBy]: key };
  const others = report.groups.slice(most);
  return {
    from: secondText(report.from),
    until: secondText(until),
    is_partial: report.isPartial,
    folded: foldedJson(report.folded),
    group_by: groupBy,
    groups: report.groups.slice(0, most).map((one) => ({ ...named(one), ...usedJson(one) })),
    others: others.length === 0 ? null : usedJson(others.reduce(added)),
    leases_of_unknown_resources: report.leasesOfUnknownResources,
  };
}

function usedJson({ amount, resourceSeconds, leases }: UsageGroup) {
  return {
    amount: amount === null ? null : costText(amount),
    resource_hours: hoursText(resourceSeconds),
    leases,
  };
}

function added(one: UsageGroup, other: UsageGroup): UsageGroup {
  return {
    key: '',
    amount: one.amount === null ? null : one.amount + (other.amount ?? 0n),
    resourceSeconds: one.resourceSeconds + other.resourceSeconds,
    leases: one.leases + other.leases,
  };
}
