/** `test --replay`: which decisions of a log a configuration would decide otherwise. */

import { ExitCode, UsageError } from '../output.ts';
import { Progress } from '../progress.ts';
import { type SourceFlags, sourcesOf } from '../sources.ts';
import { judgeAgain } from './judge-again.ts';
import type { DamagedLines } from './log-decisions.ts';
import { namedLogs, openRehearsal, selectionOf, sizeOf } from './log-run.ts';
import { ReplayBlocks, replayThreads } from './replay-blocks.ts';
import type { LogFlags } from './replay-flags.ts';
import { printReplay, type ReplayFormat } from './replay-report.ts';
import { ReplaySummary, wantedOf } from './replay-summary.ts';

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
  const files = namedLogs(logs, folders);
  const selection = selectionOf(flags);
  const sources = sourcesOf(flags);
  const assumeRecorded = flags.assumeRecorded === true;
  const { rehearsal, notes, isTheSameInThreads } = await openRehearsal(sources);
  const summary = new ReplaySummary(wantedOf(() => flags.examples));
  const blocks = new ReplayBlocks(summary, {
    ...{ sources, selection, assumeRecorded },
    judge: (past) => judgeAgain(past, rehearsal, notes, { assumeRecorded }),
    threads: isTheSameInThreads ? replayThreads() : 0,
  });
  const progress = new Progress('decisions', sizeOf(files));
  try {
    await blocks.judge(files, () => progress.show(blocks.bytes, summary.decisions));
  } finally {
    progress.end();
    await rehearsal.close();
  }
  const { damaged } = blocks;
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
