/** Decision logs as `decisions` reads them: whole or as they grow, from files or standard input. */
import { once } from 'node:events';
import { addAbortSignal } from 'node:stream';
import { systemErrorText } from '../../config/read-file.ts';
import type { FollowedChunk } from '../../decisions/files.ts';
import type { DecisionReader } from '../../decisions/reader.ts';
import type { DecisionRecord } from '../../decisions/record.ts';
import { UsageError } from '../output.ts';

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** Runs something that prints, until it ends or a signal comes. */
export async function untilSignal(
  work: (signal: AbortSignal, print: (text: string) => Promise<void>) => Promise<void>,
): Promise<void> {
  const ended = new AbortController();
  const end = () => ended.abort();
  for (const signal of SIGNALS) {
    process.once(signal, end);
  }
  const print = async (text: string) => {
    if (text !== '' && !process.stdout.write(text)) {
      await once(process.stdout, 'drain', { signal: ended.signal });
    }
  };
  try {
    await work(ended.signal, print);
  } catch (thrown) {
    if (!ended.signal.aborted) {
      throw thrown;
    }
  } finally {
    for (const signal of SIGNALS) {
      process.off(signal, end);
    }
  }
}

/** `-` = standard input. @throws UsageError */
export async function* chunksOf(file: string): AsyncGenerator<Buffer> {
  const { readChunks } = await import('../../decisions/files.ts');
  try {
    yield* file === '-' ? (process.stdin as AsyncIterable<Buffer>) : readChunks(file);
  } catch (thrown) {
    throw unreadable(file, thrown);
  }
}

/** Until the signal aborts; of standard input until its end. @throws UsageError */
export async function* followedChunks(file: string, signal: AbortSignal): AsyncGenerator<FollowedChunk> {
  const { followChunks } = await import('../../decisions/files.ts');
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

/** The last `size` decisions that were added. */
export class Latest {
  readonly #size: number;
  #records: DecisionRecord[] = [];

  constructor(size: number) {
    this.#size = size;
  }

  add(records: readonly DecisionRecord[]): void {
    this.#records.push(...records);
    // Cutting each time would copy the whole list each time.
    if (this.#records.length > 2 * this.#size) {
      this.#records = this.list();
    }
  }

  list(): DecisionRecord[] {
    return this.#size === 0 ? [] : this.#records.slice(-this.#size);
  }
}

/** Says on standard error how many lines were not read. */
export function warnOfSkipped(readers: readonly DecisionReader[]): void {
  const broken = readers.reduce((sum, { skipped }) => sum + skipped.broken, 0);
  const tooLong = readers.reduce((sum, { skipped }) => sum + skipped.tooLong, 0);
  if (broken + tooLong > 0) {
    process.stderr.write(
      `warning: skipped lines: ${broken} that are not decisions, ${tooLong} longer than 1 MiB\n`,
    );
  }
}
