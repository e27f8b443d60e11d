/** `test --replay`: finds decisions of a log that a configuration would change. */

import { type CaseResult, printResults, resultsJunit, writeJunit } from '../cases/case-report.ts';
import { ExitCode, printJson, printRows, UsageError, warn } from '../common/output.ts';
import type { SourceFlags } from '../common/sources.ts';
import { type DamagedLines, type LogFlags, LogRun } from './log-run.ts';
import {
  DIFFERENCES,
  type Difference,
  type Example,
  ReplaySummary,
  replayDecision,
} from './replay-decision.ts';

interface ReplayFlags extends LogFlags, SourceFlags {
  readonly format: ReplayFormat;
  readonly junit?: string;
}

/** Prints the differences, and returns the exit code. @throws UsageError, ConfigurationError */
export async function replay(
  logs: readonly string[],
  folders: readonly string[],
  flags: ReplayFlags,
): Promise<number> {
  const run = await LogRun.open(logs, folders, flags);
  const summary = new ReplaySummary(flags.examples);
  const options = { assumeRecorded: flags.assumeRecorded === true };
  try {
    await run.each(async (past) => {
      summary.add(past, await replayDecision(past, run.replay, run.notes, options));
    });
  } finally {
    await run.close();
  }
  const { damaged } = run;
  if (summary.decisions - summary.count('skipped') === 0) {
    const lines =
      damaged.count === 0 ? '' : `, and ${damaged.count} lines are damaged: ${damaged.first.join(', ')}`;
    throw new UsageError(`${logs.join(' ')}: no decision to judge again${lines}`);
  }
  await printReplay(summary, damaged, flags);
  return exitCodeOf(summary, damaged, flags.allowUndecidable === true);
}

/** Decisions that could not be judged may differ: no success, unless the operator accepts them. */
function exitCodeOf(summary: ReplaySummary, damaged: DamagedLines, allowsUndecidable: boolean): number {
  if (summary.count('failed') > 0) {
    return ExitCode.failed;
  }
  const unknown = summary.count('undecidable') + damaged.count;
  const differing = summary.count('now-refused') + summary.count('now-allowed');
  return differing > 0 || (unknown > 0 && !allowsUndecidable) ? ExitCode.rejected : ExitCode.ok;
}

type ReplayFormat = 'table' | 'json' | 'junit' | 'tap';

const nameOf = (difference: Difference) => difference.replace('-', ' ');
const SHOWN = ['now-refused', 'now-allowed', 'failed', 'undecidable'] as const;
const SUITE = 'blazar-enforcement test --replay';

/** @throws UsageError if the file of `junit` cannot be written */
async function printReplay(
  summary: ReplaySummary,
  damaged: DamagedLines,
  { format, junit }: { readonly format: ReplayFormat; readonly junit?: string },
): Promise<void> {
  if (junit !== undefined) {
    writeJunit(junit, resultsJunit(SUITE, resultsOf(summary, damaged)));
  }
  if (format === 'table') {
    if (junit !== '-') {
      await printAsTable(summary);
    }
  } else if (format === 'json') {
    printJson(jsonOf(summary, damaged));
  } else {
    await printResults(SUITE, resultsOf(summary, damaged), format);
  }
  for (const line of damaged.first) {
    warn(line);
  }
  if (damaged.count > damaged.first.length) {
    process.stderr.write(`warning: ${damaged.count - damaged.first.length} more damaged lines\n`);
  }
}

async function printAsTable(summary: ReplaySummary): Promise<void> {
  const { decisions, period } = summary;
  process.stdout.write(`${decisions} decisions, from ${period?.from} to ${period?.to}\n\n`);
  await printRows(DIFFERENCES, { DIFFERENCE: nameOf, DECISIONS: (one) => summary.count(one) });
  const { causes } = summary;
  if (causes.length > 0) {
    process.stdout.write('\n');
    await printRows(causes, {
      DIFFERENCE: ({ difference }) => nameOf(difference),
      DECISIONS: ({ decisions }) => decisions,
      BY: ({ by }) => by,
    });
  }
  const examples = SHOWN.flatMap((one) => summary.examples(one));
  if (examples.length > 0) {
    process.stdout.write('\n');
    await printRows(examples, {
      DIFFERENCE: ({ difference }) => nameOf(difference),
      TIME: ({ time }) => time,
      OPERATION: ({ operation }) => operation,
      PROJECT: ({ project_id }) => project_id,
      USER: ({ user_id }) => user_id,
      LEASE: ({ lease_name }) => lease_name,
      BEFORE: beforeOf,
      NOW: afterOf,
    });
    for (const one of SHOWN) {
      const more = summary.count(one) - summary.examples(one).length;
      if (more > 0) {
        process.stdout.write(`… and ${more} more that are ${nameOf(one)}\n`);
      }
    }
  }
}

function beforeOf({ before }: Example): string {
  return before.allowed ? 'allowed' : `${before.filter ?? ''}: ${before.message ?? ''}`;
}

function afterOf({ after }: Example): string {
  if (after.allowed === true) {
    return 'allowed';
  }
  return after.by.length === 0 ? (after.message ?? '') : `${after.by.join(', ')}: ${after.message ?? ''}`;
}

function jsonOf(summary: ReplaySummary, damaged: DamagedLines): object {
  const counts = Object.fromEntries(DIFFERENCES.map((one) => [one.replace('-', '_'), summary.count(one)]));
  return {
    decisions: summary.decisions,
    from: summary.period?.from ?? null,
    to: summary.period?.to ?? null,
    ...counts,
    damaged_lines: damaged.count,
    first_damaged_lines: damaged.first,
    causes: summary.causes,
    examples: SHOWN.flatMap((one) => summary.examples(one)),
  };
}

const STATUS = {
  'now-refused': 'failed',
  'now-allowed': 'failed',
  undecidable: 'mistake',
  failed: 'broken',
} as const;

/** One result for all unchanged decisions, one for each example, and one for the rest of each difference. */
function resultsOf(summary: ReplaySummary, damaged: DamagedLines): CaseResult[] {
  const result = (id: string, more: Pick<CaseResult, 'status' | 'reasons'>): CaseResult => ({
    id,
    file: '',
    name: id,
    diff: '',
    problems: [],
    milliseconds: 0,
    ...more,
  });
  const rest = (what: string, count: number, status: CaseResult['status']) =>
    count > 0 ? [result(what, { status, reasons: [`${count} decisions`] })] : [];
  return [
    result(`${summary.count('same')} decisions are the same`, { status: 'passed', reasons: [] }),
    ...SHOWN.flatMap((one) => [
      ...summary.examples(one).map((example) =>
        result(`${nameOf(one)}: ${titleOf(example)}`, {
          status: STATUS[one],
          reasons: [`before: ${beforeOf(example)}`, `now: ${afterOf(example)}`],
        }),
      ),
      ...rest(`more are ${nameOf(one)}`, summary.count(one) - summary.examples(one).length, STATUS[one]),
    ]),
    ...rest('damaged lines', damaged.count, 'mistake'),
  ];
}

function titleOf({ time, operation, project_id, user_id, lease_name, request_id }: Example): string {
  return [time, operation, project_id, user_id, lease_name, request_id].filter(Boolean).join(' ');
}
