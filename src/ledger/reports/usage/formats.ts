/**
 * A usage report as CSV, also with the columns of FOCUS 1.2, the FinOps Open Cost and Usage Specification.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Amount, formatUnitHours } from '../../../filter/claim.ts';
import { formatInstant, secondText } from '../../../lease/dates.ts';
import { harmless } from '../../budgets/csv.ts';
import { budgetAmountText } from '../../budgets/terms.ts';
import { nextMonth, type UsageKey, type UsageReport, type UsageReportQuery, type UsageRow } from './sums.ts';

/** Rows that are written before yielding to the event loop. */
const PIECE = 500;

interface Cells {
  readonly columns: readonly string[];
  readonly cells: (row: UsageRow) => readonly (string | number | bigint | null)[];
}

/** User input, such as ids, names and units: spreadsheets must not run it as a formula. */
const free = (text: string | null) => (text === null ? null : harmless(text));

/** The text of a file, in chunks. */
async function* written({ rows }: UsageReport, { columns, cells }: Cells): AsyncIterable<string> {
  const { stringify } = await import('csv-stringify/sync');
  for (let start = 0; start === 0 || start < rows.length; start += PIECE) {
    const some = rows.slice(start, start + PIECE);
    yield stringify(some.map(cells), {
      header: start === 0,
      columns: [...columns],
      record_delimiter: '\r\n',
      quoted_match: /^\s|\s$/,
    });
    await nextTurn();
  }
}

/** `2026-12` */
export function monthText({ from }: Pick<UsageRow, 'from'>): string {
  return secondText(from).slice(0, 7);
}

/** In hours, rounded up like costs: one resource for one second counts like a millionth of a unit. */
export function hoursText(seconds: bigint): string {
  return formatUnitHours(seconds * 1_000_000n);
}

/** As JSON. `idsOf`: the project and user fields of a row. */
export function usageJson(
  report: UsageReport,
  { by, from, until, unit }: Pick<UsageReportQuery, 'by' | 'from' | 'until'> & { readonly unit: string },
  idsOf: (row: UsageRow) => object,
) {
  const { folded, undated, leasesOfUnknownResources } = report;
  const hasAmounts = by !== 'resource_type';
  return {
    from: secondText(from),
    until: secondText(until),
    by,
    unit,
    rows: report.rows.map((row) => ({
      ...idsOf(row),
      ...(by === 'month' && { month: monthText(row) }),
      ...(by === 'resource_type' && { resource_type: row.resourceType }),
      ...(hasAmounts ? amountsJson(row) : { amount: null, user_amount: null, exact: null }),
      resource_hours: hoursText(row.resourceSeconds),
      leases: row.leases,
      ended_early: row.endedEarly,
      unused_hours: hoursText(row.unusedSeconds),
    })),
    undated: amountsJson(undated),
    folded:
      folded === undefined ? null : { leases: Number(folded.leases), before: formatInstant(folded.until) },
    leases_of_unknown_resources: leasesOfUnknownResources,
  };
}

function amountsJson({ amount, userAmount }: Pick<UsageRow, 'amount' | 'userAmount'>) {
  return {
    amount: formatUnitHours(amount),
    user_amount: formatUnitHours(userAmount),
    exact: { amount: String(amount), user_amount: String(userAmount) },
  };
}

/** Messages about usage that is missing from the rows. */
export function missingTexts(
  { folded, undated, leasesOfUnknownResources }: Omit<UsageReport, 'rows'>,
  by: UsageKey,
  unit: string,
): string[] {
  const missing: string[] = [];
  if (folded !== undefined) {
    const only = by === 'resource_type' ? 'nothing counts them' : 'only amounts count them';
    missing.push(
      `${folded.leases} leases that ended before ${formatInstant(folded.until)} are folded into totals: ${only}`,
    );
  }
  const most = undated.amount + undated.userAmount;
  if (most > 0n) {
    missing.push(
      `folded leases have taken ${formatUnitHours(most)} ${unit} in this period or outside it: no row counts it`,
    );
  }
  if (leasesOfUnknownResources > 0) {
    missing.push(
      `${leasesOfUnknownResources} leases were recorded by a version that did not note resources: they have no resource hours`,
    );
  }
  return missing;
}

/** With the key columns of `by`. Amounts are in unit-hours, rounded up; columns ending in `_exact` add up. */
export function usageCsv(report: UsageReport, by: UsageKey, unit: string): AsyncIterable<string> {
  const keys: Record<UsageKey, readonly [string, (row: UsageRow) => string | null][]> = {
    project: [['project_id', ({ projectId }) => free(projectId)]],
    user: [
      ['project_id', ({ projectId }) => free(projectId)],
      ['user_id', ({ userId }) => free(userId)],
    ],
    month: [['month', monthText]],
    resource_type: [['resource_type', ({ resourceType }) => free(resourceType)]],
  };
  const hasAmounts = by !== 'resource_type';
  return written(report, {
    columns: [
      ...keys[by].map(([name]) => name),
      ...(hasAmounts ? ['amount', 'user_amount', 'unit'] : []),
      'resource_hours',
      'leases',
      'ended_early',
      'unused_hours',
      ...(hasAmounts ? ['amount_exact', 'user_amount_exact'] : []),
    ],
    cells: (row) => [
      ...keys[by].map(([, cell]) => cell(row)),
      ...(hasAmounts ? [formatUnitHours(row.amount), formatUnitHours(row.userAmount), free(unit)] : []),
      hoursText(row.resourceSeconds),
      row.leases,
      row.endedEarly,
      hoursText(row.unusedSeconds),
      ...(hasAmounts ? [row.amount, row.userAmount] : []),
    ],
  });
}

/** ISO 4217: no currency. */
const NO_CURRENCY = 'XXX';
const PROVIDER = 'OpenStack';
/** Half a millionth of a unit-hour, so that rounding down rounds to the nearest millionth. */
const HALF_A_MILLIONTH = 1800n;

/**
 * For a detailed report, with one project and one month per row. There are no prices: costs are 0, and
 * quantities are in units of budgets, or in resource hours for types. `projectName`: the name in Keystone;
 * `null` = unknown.
 */
export function usageFocus(
  report: UsageReport,
  by: UsageKey,
  unit: string,
  projectName: (id: string) => string | null,
): AsyncIterable<string> {
  const isByType = by === 'resource_type';
  const consumedUnit = isByType
    ? 'Resource-Hours'
    : unit.replaceAll(/(?<![\p{L}\p{N}])\p{L}/gu, (letter) => letter.toUpperCase());
  const description = isByType ? 'Reserved resources' : 'Usage of budgets';
  const columns: Readonly<
    Record<string, (row: UsageRow, consumed: Amount) => ReturnType<Cells['cells']>[number]>
  > = {
    BilledCost: () => 0,
    BillingAccountId: ({ projectId }) => free(projectId),
    BillingAccountName: ({ projectId }) => free(projectName(projectId ?? '')),
    BillingCurrency: () => NO_CURRENCY,
    BillingPeriodEnd: ({ from }) => secondText(nextMonth(from)),
    BillingPeriodStart: ({ from }) => secondText(nextMonth(from, 0)),
    ChargeCategory: () => 'Usage',
    ChargeClass: () => null,
    ChargeDescription: () => description,
    ChargeFrequency: () => 'Usage-Based',
    ChargePeriodEnd: ({ until }) => secondText(until),
    ChargePeriodStart: ({ from }) => secondText(from),
    ConsumedQuantity: (_, consumed) => budgetAmountText(consumed + HALF_A_MILLIONTH),
    ConsumedUnit: () => free(consumedUnit),
    ContractedCost: () => 0,
    EffectiveCost: () => 0,
    InvoiceIssuerName: () => PROVIDER,
    ListCost: () => 0,
    PricingQuantity: (_, consumed) => budgetAmountText(consumed + HALF_A_MILLIONTH),
    PricingUnit: () => free(consumedUnit),
    ProviderName: () => PROVIDER,
    PublisherName: () => PROVIDER,
    ServiceCategory: () => 'Compute',
    ServiceName: () => 'Blazar',
    SubAccountId: ({ userId }) => free(userId),
    x_ExactQuantity: (_, consumed) => consumed,
    x_ResourceType: ({ resourceType }) => free(resourceType),
  };
  return written(report, {
    columns: Object.keys(columns),
    cells: (row) => {
      const consumed = isByType
        ? row.resourceSeconds * 1_000_000n
        : row.amount === 0n
          ? row.userAmount
          : row.amount;
      return Object.values(columns).map((cell) => cell(row, consumed));
    },
  });
}
