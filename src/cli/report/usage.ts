/** The usage report of `report usage`: from the configured ledger, or from a service. */
import { z } from 'zod';
import type { ApiClient } from '../../client/client.ts';
import { budgetUnit } from '../../enforcement/configuration.ts';
import { secondText } from '../../lease/dates.ts';
import { missingTexts, usageCsv, usageFocus, usageJson } from '../../ledger/reports/usage/formats.ts';
import { reportSpan, reportUsage } from '../../ledger/reports/usage/report.ts';
import type { UsageKey, UsageRow } from '../../ledger/reports/usage/sums.ts';
import { inFlags } from '../budget/store.ts';
import { account, namesOf, time, understood, whole } from '../common/answers.ts';
import { type CommandNames, commandNames, typedId } from '../common/command-names.ts';
import { type LedgerAccess, NO_DEADLINE } from '../ledger/access.ts';

export interface UsageQuery {
  readonly by: UsageKey;
  /** Seconds of the epoch. `undefined` = the default of reports. */
  readonly from: bigint | undefined;
  readonly until: bigint | undefined;
  /** As typed. `undefined` = all. */
  readonly project: string | undefined;
  readonly format: 'table' | 'csv' | 'json' | 'focus';
}

export interface ShownUsage {
  /** For JSON: numbers that are not counts are strings. */
  readonly json: {
    readonly from: string;
    readonly until: string;
    readonly by: string;
    readonly unit: string;
    readonly rows: readonly ShownRow[];
  };
  readonly names: CommandNames;
  /** What the rows lack. */
  readonly missing: readonly string[];
  /** The text of a file, in chunks. */
  file(format: 'csv' | 'focus'): Promise<AsyncIterable<string> | readonly string[]>;
}

export interface ShownRow {
  readonly project_id?: string | undefined;
  readonly user_id?: string | null | undefined;
  readonly month?: string | undefined;
  readonly resource_type?: string | null | undefined;
  readonly amount: string | null;
  readonly user_amount: string | null;
  readonly resource_hours: string;
  readonly leases: number;
  readonly ended_early: number;
  readonly unused_hours: string;
}

export async function localUsage(
  { ledger, configuration }: LedgerAccess,
  { by, from, until, project, format }: UsageQuery,
): Promise<ShownUsage> {
  const span = inFlags(() => reportSpan({ from, until }, ledger.now()));
  const projectIds = project === undefined ? undefined : [await typedId(configuration, 'project', project)];
  const isDetailed = format === 'focus';
  const report = await reportUsage(ledger, { ...span, projectIds, by, isDetailed }, NO_DEADLINE);
  const unit = budgetUnit(configuration);
  const names = await commandNames(
    configuration,
    format === 'csv' ? [] : report.rows.filter(({ projectId }) => projectId !== null),
  );
  const idsOf = ({ projectId, userId }: UsageRow) => ({
    ...(projectId !== null && { project_id: projectId }),
    ...(by === 'user' && { user_id: userId }),
    ...(projectId !== null && names.fields(projectId, userId)),
  });
  const nameOf = (id: string) => names.fields(id, null).project_name ?? null;
  return {
    json: usageJson(report, { ...span, by, unit }, idsOf),
    names,
    missing: missingTexts(report, by, unit),
    file: async (kind) =>
      kind === 'csv' ? usageCsv(report, by, unit) : usageFocus(report, by, unit, nameOf),
  };
}

const amounts = { amount: z.string().nullable(), user_amount: z.string().nullable() };
const exact = z.object({ amount: whole, user_amount: whole });
/** In the order of the printed members. */
const answer = z.object({
  from: z.string(),
  until: z.string(),
  by: z.string(),
  unit: z.string(),
  rows: z.array(
    z.object({
      project: account.optional(),
      user: account.nullable().optional(),
      month: z.string().optional(),
      resource_type: z.string().optional(),
      ...amounts,
      exact: exact.nullable(),
      resource_hours: z.string(),
      leases: z.int(),
      ended_early: z.int(),
      unused_hours: z.string(),
    }),
  ),
  undated: z.object({ ...amounts, exact }),
  folded: z.object({ leases: z.int(), before: z.string() }).nullable(),
  leases_of_unknown_resources: z.int(),
});

/** @throws EndpointError */
export async function remoteUsage(
  client: ApiClient,
  { by, from, until, project }: UsageQuery,
): Promise<ShownUsage> {
  const query = {
    by,
    ...(from !== undefined && { from: secondText(from) }),
    ...(until !== undefined && { until: secondText(until) }),
    ...(project !== undefined && { project_id: project }),
  };
  const { data } = await client.GET('/v1/reports/usage', { params: { query } });
  const { rows, ...totals } = understood(answer, data);
  const { undated, folded } = totals;
  const names = namesOf(
    rows.flatMap(({ project: one, user = null }) => (one === undefined ? [] : [{ project: one, user }])),
  );
  const report = {
    undated: { amount: BigInt(undated.exact.amount), userAmount: BigInt(undated.exact.user_amount) },
    folded:
      folded === null ? undefined : { leases: BigInt(folded.leases), until: understood(time, folded.before) },
    leasesOfUnknownResources: totals.leases_of_unknown_resources,
  };
  const { from: start, until: end, by: key, unit, ...rest } = totals;
  return {
    json: {
      from: start,
      until: end,
      by: key,
      unit,
      rows: rows.map(({ project: one, user, ...row }) => ({
        ...(one !== undefined && { project_id: one.id }),
        ...(user !== undefined && { user_id: user?.id ?? null }),
        ...(one !== undefined && names.fields(one.id, user?.id ?? null)),
        ...row,
      })),
      ...rest,
    },
    names,
    missing: missingTexts(report, by, unit),
    file: async (format) => {
      const { data: text } = await client.GET('/v1/reports/usage', {
        params: { query: { ...query, format } },
        parseAs: 'text',
      });
      return [understood(z.string(), text)];
    },
  };
}
