/** Formats decisions and their statistics. */

import { type DecisionRecord, type FilterRecord, operationText } from '../../decisions/record.ts';
import type {
  DurationQuantiles,
  Listed,
  StatisticsSummary,
  TallyRow,
  UserCount,
} from '../../decisions/statistics.ts';
import type { StoredDecision } from '../../decisions/store/contract.ts';
import { formatInstant } from '../../lease/dates.ts';
import { namedCell } from '../common/command-names.ts';
import { alignedText, onOneLine, printJson, printTable, warn } from '../common/output.ts';

/** Prints decisions in columns as wide as the widest cell so far: printed lines cannot be aligned again. */
export class DecisionTable {
  readonly #widths: number[] = [];

  /** The lines of these decisions; before the first ones, a heading. */
  lines(records: readonly DecisionRecord[]): string {
    const head = ['TIME', 'OUTCOME', 'OPERATION', 'PROJECT', 'USER', 'LEASE', 'FILTER', 'MESSAGE'];
    return alignedText([...(this.#widths.length === 0 ? [head] : []), ...records.map(cellsOf)], this.#widths);
  }
}

function cellsOf(record: DecisionRecord): string[] {
  const { time, outcome, lease_id, lease_name, filter, message } = record;
  // Each warning names its filter. Warnings of filters in audit mode also follow a rejection.
  const why = [...(message === null ? [] : [message]), ...record.warnings].join(' ');
  return [
    time,
    outcome,
    operationText(record),
    projectCell(record),
    userCell(record),
    lease_name ?? lease_id ?? '',
    filter ?? '',
    why,
  ];
}

export async function printDecision(stored: StoredDecision, format: 'table' | 'json'): Promise<void> {
  const { record, asked, replica } = stored;
  const dates = asked && { start: formatInstant(asked.start), end: formatInstant(asked.end) };
  if (format === 'json') {
    printJson({ ...record, asked: dates ?? null, replica });
    return;
  }
  const facts: [string, string | null | undefined][] = [
    ['TIME', record.time],
    ['OUTCOME', record.outcome],
    ['OPERATION', operationText(record)],
    ['PROJECT', projectCell(record)],
    ['USER', userCell(record)],
    ['LEASE', [record.lease_name, record.lease_id].filter(Boolean).join(' ')],
    ['DATES', dates && `${dates.start} to ${dates.end}`],
    ['FILTER', record.filter],
    ['MESSAGE', record.message],
    ['WARNINGS', record.warnings.join(' ')],
    ['REPLICA', `${replica}, configuration ${record.generation}`],
    ['TIME TAKEN', `${record.duration_ms} ms`],
  ];
  await printTable(
    ['REQUEST', record.request_id],
    facts.flatMap(([name, value]) => (value ? [[name, value]] : [])),
  );
  process.stdout.write('\n');
  await printTable(
    ['FILTER', 'ANSWER', 'MS', 'MESSAGE'],
    record.filters.map(({ filter, outcome, audit, message, duration_ms }) => [
      filter,
      audit ? `${outcome} (tried)` : outcome,
      String(duration_ms),
      message ?? '',
    ]),
  );
  process.stdout.write('\n');
  for (const one of record.filters) {
    printChanges(one);
  }
}

/** Prints the value before and after as a diff. */
function printChanges({ filter, audit, changes = [], changes_left_out: leftOut = 0 }: FilterRecord): void {
  if (changes.length > 0) {
    const lines = changes.flatMap(({ path, before, after }) => [
      ...(before === null ? [] : [`- ${path}: ${before}`]),
      ...(after === null ? [] : [`+ ${path}: ${after}`]),
    ]);
    const heading = `${filter} ${audit ? 'would have changed' : 'changed'}:`;
    const more = leftOut > 0 ? [`and ${leftOut} more`] : [];
    process.stdout.write(`${[heading, ...lines, ...more].map(onOneLine).join('\n')}\n\n`);
  }
}

function projectCell({ project_id, project_name: name, project_domain: domain }: DecisionRecord): string {
  return namedCell(project_id, { name, domain });
}

function userCell({ user_id, user_name: name, user_domain: domain }: DecisionRecord): string {
  return namedCell(user_id, { name, domain });
}

export async function printStatistics(summary: StatisticsSummary, format: 'table' | 'json'): Promise<void> {
  if (format === 'json') {
    printJson(jsonOf(summary));
    return;
  }
  const { decisions, refused, from, to } = summary;
  process.stdout.write(
    decisions === 0
      ? 'no decisions\n'
      : `${decisions} decisions, ${refused} refused, from ${from} to ${to}\n`,
  );
  if (summary.launches.decisions > 0) {
    const { decisions: count, refused: bad } = summary.launches;
    process.stdout.write(`${count} launches of SkyPilot, ${bad} refused\n`);
  }
  if (decisions > 0) {
    await printTables(summary);
  }
  if (summary.cut.length > 0) {
    warn(`too many different ${summary.cut.join(', ')}: later ones are not counted by name`);
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
  for (const [head, { rows, others }] of [
    ['FILTER', summary.messages],
    ['AUDITED FILTER', summary.audited],
  ] as const) {
    if (rows.length > 0) {
      await section(
        ['TIMES', head, 'USERS', 'MESSAGE'],
        [
          ...rows.map(({ name: [filter, message], decisions, users }) => [
            String(decisions),
            filter ?? '',
            userCells(users, decisions),
            message,
          ]),
          ...(others.decisions > 0 ? [[String(others.decisions), '', '', '(all others)']] : []),
        ],
      );
    }
  }
}

const MAX_NAMED = 3;

/** `frank 2, bob 1`; with more users than fit, `…, others 4`. */
function userCells(users: readonly UserCount[], decisions: number): string {
  const named = users.slice(0, MAX_NAMED);
  const rest = named.reduce((left, user) => left - user.decisions, decisions);
  return [
    ...named.map((user) => `${user.user_id} ${user.decisions}`),
    ...(named.length > 0 && rest > 0 ? [`others ${rest}`] : []),
  ].join(', ');
}

const TIMES = ['P50 MS', 'P90 MS', 'P99 MS', 'MAX MS'];

function timeCells({ p50, p90, p99, max }: DurationQuantiles): string[] {
  return [p50, p90, p99, max].map((milliseconds) => String(rounded(milliseconds)));
}

/** Three digits suffice to compare durations. */
function rounded(milliseconds: number): number {
  return Number(milliseconds.toPrecision(3));
}

function jsonOf(summary: StatisticsSummary): object {
  const { decisions, refused, launches, from, to, outcomes, filters, projects, users } = summary;
  const { messages, audited, cut } = summary;
  const listed = <Name>({ rows, others }: Listed<Name>, named: (row: TallyRow<Name>) => object) => ({
    rows: rows.map((row) => ({ ...named(row), decisions: row.decisions, refused: row.refused })),
    others,
  });
  const reasons = (all: Listed<readonly [string | null, string]>) =>
    listed(all, ({ name: [filter, message], users: by }) => ({ filter, message, users: by }));
  return {
    decisions,
    refused,
    launches,
    from,
    to,
    outcomes: outcomes.map(({ name: [outcome, filter], decisions: count, refused: bad }) => ({
      outcome,
      filter,
      decisions: count,
      refused: bad,
    })),
    filters: filters.map((one) => ({
      filter: one.filter,
      asked: one.asked,
      rejected: one.rejected,
      failed: one.failed,
      allowed_on_error: one.allowedOnError,
      would_have_rejected: one.wouldHaveRejected,
      duration_ms: roundedAll(one.durations),
    })),
    projects: listed(projects, ({ name: project_id }) => ({ project_id })),
    users: listed(users, ({ name: user_id }) => ({ user_id })),
    messages: reasons(messages),
    audited: reasons(audited),
    duration_ms: roundedAll(summary.durations),
    cut,
  };
}

function roundedAll({ p50, p90, p99, max }: DurationQuantiles): DurationQuantiles {
  return { p50: rounded(p50), p90: rounded(p90), p99: rounded(p99), max: rounded(max) };
}
