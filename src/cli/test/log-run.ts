/** Shared by `--replay` and `--record`: the configuration, and the decisions of the logs. */

import { createReadStream, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { systemErrorText } from '../../config/read-file.ts';
import type { ConfigSources } from '../../config/sources.ts';
import { NumberedLines } from '../../decisions/reader.ts';
import { requireConfiguration } from '../../enforcement/configuration.ts';
import { Replay } from '../../enforcement/replay.ts';
import { causeLogger } from '../cases/explanations.ts';
import { UsageError } from '../common/output.ts';
import { Progress } from '../common/progress.ts';
import { periodOf, type SourceFlags, sourcesOf } from '../common/sources.ts';
import type { SelectionFlags } from '../decisions.ts';
import { isSelected, type LogSelection, type PastDecision, pastDecision } from './past-decision.ts';
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
  readonly #selection: LogSelection;

  private constructor(
    { replay, notes }: Awaited<ReturnType<typeof openReplay>>,
    files: readonly LogFile[],
    selection: LogSelection,
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

/** @throws UsageError */
function selectionOf(flags: LogFlags): LogSelection {
  return {
    projects: flags.project && new Set(flags.project),
    users: flags.user && new Set(flags.user),
    ...periodOf(flags),
  };
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

const STDIN = '-';
const CHUNK_BYTES = 256 * 1024;
const GZIP = Buffer.of(0x1f, 0x8b);

interface LogFile {
  /** For output: the path, or `standard input`. */
  readonly name: string;
  /** In bytes on disk; `undefined` = unknown. */
  readonly size: number | undefined;
  /** Decompressed if necessary. `read` receives the number of bytes read from disk. @throws UsageError */
  chunks(read: (bytes: number) => void): AsyncGenerator<Buffer>;
}

/** In the order of the command line; the files of a pattern by name. @throws UsageError */
function logFiles(named: readonly string[]): LogFile[] {
  if (named.filter((one) => one === STDIN).length > 1) {
    throw new UsageError('standard input (-) can be read only once');
  }
  return named.flatMap(expanded).map(logFile);
}

/** For shells that leave `*` and `?` unexpanded. Only in the last part of a path. */
function expanded(path: string): string[] {
  const pattern = basename(path);
  if (path === STDIN || !/[*?]/.test(pattern) || isFile(path)) {
    return [path];
  }
  const parts = pattern.split(/([*?]+)/).map((part, index) => {
    const wildcard = part.includes('*') ? '.*' : '.'.repeat(part.length);
    return index % 2 === 1 ? wildcard : part.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
  });
  const matching = new RegExp(`^${parts.join('')}$`, 'su');
  const folder = dirname(path);
  let names: string[];
  try {
    names = readdirSync(folder).filter((name) => matching.test(name) && isFile(join(folder, name)));
  } catch (thrown) {
    throw new UsageError(`${path}: ${systemErrorText(thrown)}`);
  }
  if (names.length === 0) {
    throw new UsageError(`${path}: no file has such a name`);
  }
  return names.sort().map((name) => join(folder, name));
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function logFile(path: string): LogFile {
  const name = path === STDIN ? 'standard input' : path;
  const size = path === STDIN ? undefined : sizeOf(path);
  return {
    name,
    size,
    async *chunks(read) {
      try {
        const bytes: AsyncIterable<Buffer> =
          path === STDIN ? process.stdin : createReadStream(path, { highWaterMark: CHUNK_BYTES });
        yield* unpacked(counted(bytes, read));
      } catch (thrown) {
        throw new UsageError(`${name}: could not be read: ${systemErrorText(thrown)}`);
      }
    },
  };
}

function sizeOf(path: string): number {
  try {
    return statSync(path).size;
  } catch (thrown) {
    throw new UsageError(`${path}: could not be read: ${systemErrorText(thrown)}`);
  }
}

async function* counted(bytes: AsyncIterable<Buffer>, read: (bytes: number) => void): AsyncGenerator<Buffer> {
  for await (const chunk of bytes) {
    read(chunk.length);
    yield chunk;
  }
}

/** By the first bytes, not by name: logrotate compresses late, and standard input has no name. */
async function* unpacked(bytes: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  const first = await bytes.next();
  if (first.done === true) {
    return;
  }
  const all = again(first.value, bytes);
  yield* first.value.subarray(0, GZIP.length).equals(GZIP)
    ? pipeline(Readable.from(all, { objectMode: false }), createGunzip(), () => {})
    : all;
}

async function* again(first: Buffer, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  yield first;
  yield* rest;
}
