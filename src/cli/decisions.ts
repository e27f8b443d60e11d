/** `decisions`: what a decision log says. */
import { once } from 'node:events';
import { addAbortSignal } from 'node:stream';
import { Command, Option } from 'commander';
import { systemErrorText } from '../config/read-file.ts';
import type { FollowedChunk } from '../decisions/files.ts';
import type { DecisionReader } from '../decisions/reader.ts';
import type { DecisionRecord } from '../decisions/record.ts';
import { DecisionTable, printStatistics } from './decision-output.ts';
import { addSelectionFlags, type SelectionFlags, selector } from './decision-selection.ts';
import { jsonLine, UsageError } from './output.ts';
import { formatFlag } from './sources.ts';

interface TailFlags extends SelectionFlags {
  readonly follow?: boolean;
  readonly lines: number;
  readonly format: 'table' | 'json';
}

interface StatsFlags extends SelectionFlags {
  readonly top: number;
  readonly format: 'table' | 'json';
}

/** They are held in memory. */
const MAX_LINES = 10_000;
const MAX_TOP = 10_000;

export function decisionsCommand(): Command {
  return new Command('decisions')
    .description('Read a decision log, as [service] decision_log has it written.')
    .addCommand(
      addSelectionFlags(new Command('tail').description('Print the latest decisions, and go on if asked to.'))
        .argument('<file>', 'The log; - is standard input. One that ends in .gz is unpacked.')
        .option('--follow', 'Go on with what is appended, also to the next file of that name, until SIGINT.')
        .addOption(
          new Option('--lines <number>', 'So many decisions at the start.')
            .argParser(wholeNumber('--lines', 0, MAX_LINES))
            .default(20),
        )
        .addOption(formatFlag('table', 'json'))
        .action(tail),
    )
    .addCommand(
      addSelectionFlags(new Command('stats').description('Who was refused, by which filter, how often.'))
        .argument('<file...>', 'Logs; - is standard input. One that ends in .gz is unpacked.')
        .addOption(
          new Option('--top <number>', 'So many projects, users and messages are listed.')
            .argParser(wholeNumber('--top', 1, MAX_TOP))
            .default(10),
        )
        .addOption(formatFlag('table', 'json'))
        .action(stats),
    );
}

async function tail(file: string, flags: TailFlags): Promise<void> {
  const { DecisionReader } = await import('../decisions/reader.ts');
  const selected = selector(flags);
  const reader = new DecisionReader();
  const table = flags.format === 'table' ? new DecisionTable() : undefined;
  const textOf = (records: readonly DecisionRecord[]) =>
    table === undefined ? records.map(jsonLine).join('') : table.lines(records);

  const latest = new Latest(flags.lines);
  if (flags.follow) {
    await follow(file, reader, { latest, selected, textOf });
  } else {
    for await (const chunk of chunksOf(file)) {
      latest.add(reader.push(chunk).filter(selected));
    }
    latest.add(reader.end().filter(selected));
    process.stdout.write(textOf(latest.list()));
  }
  warnOfSkipped([reader]);
}

interface Following {
  readonly latest: Latest;
  readonly selected: (record: DecisionRecord) => boolean;
  readonly textOf: (records: readonly DecisionRecord[]) => string;
}

/** Until a signal comes, or standard input ends. */
async function follow(
  file: string,
  reader: DecisionReader,
  { latest, selected, textOf }: Following,
): Promise<void> {
  const ended = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => ended.abort());
  }
  const print = async (records: readonly DecisionRecord[]) => {
    const text = textOf(records);
    if (text !== '' && !process.stdout.write(text)) {
      await once(process.stdout, 'drain', { signal: ended.signal });
    }
  };
  let caughtUp = false;
  try {
    for await (const chunk of followedChunks(file, ended.signal)) {
      if (chunk === 'caught up') {
        await print(caughtUp ? [] : latest.list());
        caughtUp = true;
        continue;
      }
      const records = (chunk === 'begins anew' ? reader.end() : reader.push(chunk)).filter(selected);
      if (caughtUp) {
        await print(records);
      } else {
        latest.add(records);
      }
    }
    await print(reader.end().filter(selected));
  } catch (thrown) {
    if (!ended.signal.aborted) {
      throw thrown;
    }
  }
}

async function stats(files: readonly string[], flags: StatsFlags): Promise<void> {
  if (files.filter((file) => file === '-').length > 1) {
    throw new UsageError('standard input (-) can be read once');
  }
  const { DecisionReader } = await import('../decisions/reader.ts');
  const { Statistics } = await import('../decisions/statistics.ts');
  const selected = selector(flags);
  const statistics = new Statistics();
  const count = (records: readonly DecisionRecord[]) => {
    for (const record of records) {
      if (selected(record)) {
        statistics.add(record);
      }
    }
  };
  const readers: DecisionReader[] = [];
  for (const file of files) {
    const reader = new DecisionReader();
    readers.push(reader);
    for await (const chunk of chunksOf(file)) {
      count(reader.push(chunk));
    }
    count(reader.end());
  }
  await printStatistics(statistics.summary(flags.top), flags.format);
  warnOfSkipped(readers);
}

async function* chunksOf(file: string): AsyncGenerator<Buffer> {
  const { readChunks } = await import('../decisions/files.ts');
  try {
    yield* file === '-' ? (process.stdin as AsyncIterable<Buffer>) : readChunks(file);
  } catch (thrown) {
    throw unreadable(file, thrown);
  }
}

async function* followedChunks(file: string, signal: AbortSignal): AsyncGenerator<FollowedChunk> {
  const { followChunks } = await import('../decisions/files.ts');
  try {
    if (file === '-') {
      yield 'caught up';
      yield* addAbortSignal(signal, process.stdin) as AsyncIterable<Buffer>;
    } else {
      yield* followChunks(file, signal);
    }
  } catch (thrown) {
    throw unreadable(file, thrown);
  }
}

function unreadable(file: string, thrown: unknown): UsageError {
  const name = file === '-' ? 'standard input' : file;
  return new UsageError(`${name}: could not be read: ${systemErrorText(thrown)}`);
}

/** The last so many that were added. */
class Latest {
  readonly #size: number;
  #records: DecisionRecord[] = [];

  constructor(size: number) {
    this.#size = size;
  }

  add(records: readonly DecisionRecord[]): void {
    this.#records.push(...records);
    // Not each time: it copies as many as are kept.
    if (this.#records.length > 2 * this.#size) {
      this.#records = this.list();
    }
  }

  list(): DecisionRecord[] {
    return this.#size === 0 ? [] : this.#records.slice(-this.#size);
  }
}

function wholeNumber(flag: string, least: number, most: number) {
  return (text: string): number => {
    const number = /^\d{1,9}$/.test(text) ? Number(text) : -1;
    if (number < least || number > most) {
      throw new UsageError(
        `${flag}: expected a whole number from ${least} to ${most}, got ${JSON.stringify(text)}`,
      );
    }
    return number;
  };
}

function warnOfSkipped(readers: readonly DecisionReader[]): void {
  const broken = readers.reduce((sum, { skipped }) => sum + skipped.broken, 0);
  const tooLong = readers.reduce((sum, { skipped }) => sum + skipped.tooLong, 0);
  if (broken + tooLong > 0) {
    process.stderr.write(
      `warning: lines that were skipped: ${broken} that are no decisions, ${tooLong} longer than 1 MiB\n`,
    );
  }
}
