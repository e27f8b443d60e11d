/** `test --replay`: which decisions of a log a configuration would decide otherwise. */
import { ExitCode, UsageError } from '../output.ts';
import type { SourceFlags } from '../sources.ts';
import { judgeAgain } from './judge-again.ts';
import type { DamagedLines } from './log-decisions.ts';
import { openLogRun } from './log-run.ts';
import type { LogFlags } from './replay-flags.ts';
import { printReplay, type ReplayFormat } from './replay-report.ts';
import { ReplaySummary } from './replay-summary.ts';

export interface ReplayFlags extends LogFlags, SourceFlags {
  readonly format: ReplayFormat;
  readonly junit?: string;
}

/** Prints the differences, and returns the exit code. @throws UsageError, ConfigurationError */
export async function replay(
  logs: readonly string[],
  folders: readonly string[],
  flags: ReplayFlags,
): Promise<number> {
  const run = await openLogRun(logs, folders, flags);
  const summary = new ReplaySummary(flags.examples);
  const options = { assumeRecorded: flags.assumeRecorded === true };
  try {
    await run.each(async (past) => {
      summary.add(past, await judgeAgain(past, run.rehearsal, run.notes, options));
    });
  } finally {
    await run.close();
  }
  const { damaged } = run.decisions;
  if (summary.decisions - summary.count('skipped') === 0) {
    const lines =
      damaged.count === 0 ? '' : `, and ${damaged.count} lines are damaged: ${damaged.first.join(', ')}`;
    throw new UsageError(`${logs.join(' ')}: no decision to judge again${lines}`);
  }
  await printReplay(summary, damaged, flags);
  return exitCodeOf(summary, damaged, flags.allowUndecidable === true);
}

/** What could not be judged may differ: it is no success, unless the operator says so. */
function exitCodeOf(summary: ReplaySummary, damaged: DamagedLines, allowsUndecidable: boolean): number {
  if (summary.count('failed') > 0) {
    return ExitCode.failed;
  }
  const unknown = summary.count('undecidable') + damaged.count;
  const differing = summary.count('now-refused') + summary.count('now-allowed');
  return differing > 0 || (unknown > 0 && !allowsUndecidable) ? ExitCode.rejected : ExitCode.ok;
}
