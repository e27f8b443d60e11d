/** Shared by `--replay` and `--record`: the configuration, and the decisions of the logs. */

import type { ConfigSources } from '../../config/sources.ts';
import { NumberedLines } from '../../decisions/reader.ts';
import { isSelected, type Selection } from '../../decisions/selection.ts';
import { requireConfiguration } from '../../enforcement/configuration.ts';
import { Replay } from '../../enforcement/replay.ts';
import { causeLogger } from '../cases/explanations.ts';
import { UsageError } from '../common/output.ts';
import { Progress } from '../common/progress.ts';
import { type SourceFlags, sourcesOf } from '../common/sources.ts';
import { type LogFile, logFiles } from '../decisions/log-files.ts';
import { type SelectionFlags, selectionOf } from '../decisions.ts';
import { type PastDecision, pastDecision } from './past-decision.ts';
import type { Notes } from './replay-decision.ts';

/** The flags of `test` about logs. */
export interface LogFlags extends Pick<SelectionFlags, 'since' | 'until' | 'project' | 'user'> {
  readonly replay?: readonly string[];
  readonly record?: readonly string[];
  readonly examples: number;
  readonly assumeRecorded?: boolean;
  readonly allowUndecidable?: boolean;
  readonly out: string;
  readonly max: number;
  readonly force?: boolean;
}

/** Lines that are not decisions, such as a truncated one. */
export interface DamagedLines {
  count: number;
  /** The first damaged lines, as `file:line` with the reason. */
  readonly first: string[];
}

const MAX_SHOWN = 10;

/** The decisions of logs, and a configuration to judge them again. */
export class LogRun {
  readonly replay: Replay;
  readonly notes: Notes;
  readonly damaged: DamagedLines = { count: 0, first: [] };
  readonly #files: readonly LogFile[];
  readonly #selection: Selection;

  private constructor(
    { replay, notes }: Awaited<ReturnType<typeof openReplay>>,
    files: readonly LogFile[],
    selection: Selection,
  ) {
    this.replay = replay;
    this.notes = notes;
    this.#files = files;
    this.#selection = selection;
  }

  /** @throws UsageError, ConfigurationError */
  static async open(
    logs: readonly string[],
    folders: readonly string[],
    flags: LogFlags & SourceFlags,
  ): Promise<LogRun> {
    const [first] = folders;
    if (first !== undefined) {
      throw new UsageError(
        `${first}: expected no folder beside a decision log: repeat the flag for more logs`,
      );
    }
    const files = logFiles(logs);
    const selection = selectionOf(flags);
    return new LogRun(await openReplay(sourcesOf(flags)), files, selection);
  }

  /** Calls `take` for selected decisions in order; shows progress. @throws UsageError on unreadable files */
  async each(take: (past: PastDecision) => Promise<void>): Promise<void> {
    const total = this.#files.reduce((sum, { size }) => sum + (size ?? Number.NaN), 0);
    const progress = new Progress('decisions', Number.isNaN(total) ? undefined : total);
    let bytes = 0;
    let taken = 0;
    const takeOne = (past: PastDecision) => {
      taken += 1;
      return take(past);
    };
    try {
      for (const file of this.#files) {
        const lines = new NumberedLines();
        const chunks = file.chunks((more) => {
          bytes += more;
        });
        for await (const chunk of chunks) {
          await this.#take(file, lines.push(chunk), takeOne);
          progress.show(bytes, taken);
        }
        await this.#take(file, lines.end(), takeOne);
      }
    } finally {
      progress.end();
    }
  }

  close(): Promise<void> {
    return this.replay.close();
  }

  async #take(
    file: LogFile,
    lines: ReturnType<NumberedLines['push']>,
    take: (past: PastDecision) => Promise<void>,
  ): Promise<void> {
    for (const { number, text } of lines) {
      const past = text === undefined ? undefined : pastDecision(text);
      if (past === undefined) {
        this.damaged.count += 1;
        if (this.damaged.first.length < MAX_SHOWN) {
          const why = text === undefined ? 'longer than 1 MiB' : 'not a decision';
          this.damaged.first.push(`${file.name}:${number}: ${why}`);
        }
      } else if (isSelected(past, this.#selection)) {
        await take(past);
      }
    }
  }
}

/** @throws ConfigurationError */
export async function openReplay(sources: ConfigSources): Promise<{ replay: Replay; notes: Notes }> {
  const { SECTIONS } = await import('../../server/configuration/sections.ts');
  const configuration = await requireConfiguration(sources, SECTIONS);
  const notes: Notes = { refusing: [], causes: [] };
  const replay = await Replay.open(configuration, {
    logger: causeLogger(notes.causes),
    ruleObserver: {
      rulesRead: () => {},
      ruleJudged: (rule, said) => {
        if (said === 'refused' && !rule.audit && !notes.refusing.includes(rule)) {
          notes.refusing.push(rule);
        }
      },
    },
  });
  return { replay, notes };
}
