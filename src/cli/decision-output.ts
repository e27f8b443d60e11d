/** Decisions and their statistics, as they are printed. */
import type { DurationQuantiles } from '../decisions/durations.ts';
import type { DecisionRecord } from '../decisions/record.ts';
import type { Listed, StatisticsSummary } from '../decisions/statistics.ts';
import { jsonLine, onOneLine, printTable } from './output.ts';

/** Decisions in columns that are as wide as the widest cell so far: what is printed is not taken back. */
export class DecisionTable {
  readonly #widths: number[] = [];

  /** The lines of these decisions, the first time below a heading. */
  lines(records: readonly DecisionRecord[]): string {
    const rows = records.map((record) => cellsOf(record).map(onOneLine));
    if (this.#widths.length === 0) {
      rows.unshift(['TIME', 'OUTCOME', 'OPERATION', 'PROJECT', 'USER', 'LEASE', 'FILTER', 'MESSAGE']);
    }
    for (const row of rows) {
      for (const [column, cell] of row.entries()) {
        this.#widths[column] = Math.max(this.#widths[column] ?? 0, cell.length);
      }
    }
    return rows.map((row) => `${this.#padded(row)}\n`).join('');
  }

  #padded(row: readonly string[]): string {
    return row
      .map((cell, column) => cell.padEnd(this.#widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  }
}

function cellsOf(record: DecisionRecord): string[] {
  const { time, outcome, operation, project_id, user_id, lease_id, lease_name, filter, message } = record;
  // Where a lease was allowed, the warnings say what is behind the outcome.
  const why = message ?? record.warnings.join(' ');
  return [
    time,
    outcome,
    operation,
    project_id ?? '',
    user_id ?? '',
    lease_name ?? lease_id ?? '',
    filter ?? '',
    why,
  ];
}

export async function printStatistics(summary: StatisticsSummary, format: 'table' | 'json'): Promise<void> {
  if (format === 'json') {
    process.stdout.write(jsonLine(jsonOf(summary)));
    return;
  }
  const { decisions, refused, from, to } = summary;
  process.stdout.write(
    decisions === 0
      ? 'no decisions\n'
      : `${decisions} decisions, ${refused} refused, from ${from} to ${to}\n`,
  );
  if (decisions > 0) {
    await printTables(summary);
  }
  if (summary.cut.length > 0) {
    process.stderr.write(
      `warning: too many different ${summary.cut.join(', ')}: those that came later are not counted by name\n`,
    );
  }
}

async function printTables(summary: StatisticsSummary): Promise<void> {
  const section = (head: readonly string[], rows: readonly (readonly string[])[]) => {
    process.stdout.write('\n');
    return printTable(head, rows);
  };
  await section(
    ['OUTCOME', 'FILTER', 'DECISIONS', 'SHARE'],
    summary.outcomes.map(({ name: [outcome, filter], decisions }) => [
      outcome,
      filter ?? '',
      String(decisions),
      `${((100 * decisions) / summary.decisions).toFixed(1)} %`,
    ]),
  );
  await section(
    ['FILTER', 'ASKED', 'REJECTED', 'FAILED', 'ALLOWED ON ERROR', 'WOULD HAVE REJECTED', ...TIMES],
    [
      ...summary.filters.map((one) => [
        one.filter,
        ...[one.asked, one.rejected, one.failed, one.allowedOnError, one.wouldHaveRejected].map(String),
        ...timeCells(one.durations),
      ]),
      ['(whole decisions)', String(summary.decisions), '', '', '', '', ...timeCells(summary.durations)],
    ],
  );
  for (const [head, { rows, others }] of [
    ['PROJECT', summary.projects],
    ['USER', summary.users],
  ] as const) {
    await section(
      [head, 'REFUSED', 'DECISIONS'],
      [...rows, ...(others.decisions > 0 ? [{ name: '(all others)', ...others }] : [])].map((row) => [
        row.name,
        String(row.refused),
        String(row.decisions),
      ]),
    );
  }
  const { rows, others } = summary.messages;
  if (rows.length > 0) {
    await section(
      ['TIMES', 'FILTER', 'MESSAGE'],
      [
        ...rows.map(({ name: [filter, message], decisions }) => [String(decisions), filter ?? '', message]),
        ...(others.decisions > 0 ? [[String(others.decisions), '', '(all others)']] : []),
      ],
    );
  }
}

const TIMES = ['P50 MS', 'P90 MS', 'P99 MS', 'MAX MS'];

function timeCells({ p50, p90, p99, max }: DurationQuantiles): string[] {
  return [p50, p90, p99, max].map((milliseconds) => String(rounded(milliseconds)));
}

/** They are known to a hundredth of their value. */
function rounded(milliseconds: number): number {
  return Number(milliseconds.toPrecision(3));
}

/** The names are those of the records. */
function jsonOf(summary: StatisticsSummary): object {
  const { decisions, refused, from, to, outcomes, filters, projects, users, messages, cut } = summary;
  const listed = <Name>({ rows, others }: Listed<Name>, named: (name: Name) => object) => ({
    rows: rows.map(({ name, ...counts }) => ({ ...named(name), ...counts })),
    others,
  });
  return {
    decisions,
    refused,
    from,
    to,
    outcomes: outcomes.map(({ name: [outcome, filter], ...counts }) => ({ outcome, filter, ...counts })),
    filters: filters.map((one) => ({
      filter: one.filter,
      asked: one.asked,
      rejected: one.rejected,
      failed: one.failed,
      allowed_on_error: one.allowedOnError,
      would_have_rejected: one.wouldHaveRejected,
      duration_ms: roundedAll(one.durations),
    })),
    projects: listed(projects, (project_id) => ({ project_id })),
    users: listed(users, (user_id) => ({ user_id })),
    messages: listed(messages, ([filter, message]) => ({ filter, message })),
    duration_ms: roundedAll(summary.durations),
    cut,
  };
}

function roundedAll({ p50, p90, p99, max }: DurationQuantiles): DurationQuantiles {
  return { p50: rounded(p50), p90: rounded(p90), p99: rounded(p99), max: rounded(max) };
}
