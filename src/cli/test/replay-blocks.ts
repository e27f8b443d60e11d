/** Judges the logs of a replay block by block: a large log in several threads, and in the order of the log for whoever sees the answers. */
import { availableParallelism } from 'node:os';
import type { Judge, JudgedBlock } from './judged-block.ts';
import { judgeBlock, MAX_SHOWN } from './judged-block.ts';
import { BlockBuffers, type LogBlock, LogBlocks } from './log-blocks.ts';
import type { DamagedLines } from './log-decisions.ts';
import type { LogFile } from './log-files.ts';
import type { ReplaySummary } from './replay-summary.ts';
import { ReplayThread, type ReplayThreadData } from './replay-thread.ts';

/** In bytes, unpacked. A smaller log is judged before a thread has read the configuration. */
const WORTH_THREADS = 8 * 1024 * 1024;
const MAX_THREADS = 8;
/** One that is judged, and one that waits. */
const BLOCKS_PER_THREAD = 2;

export interface BlockOptions extends ReplayThreadData {
  /** In this process. */
  readonly judge: Judge;
  /** 0 = this process judges all. */
  readonly threads: number;
  /** For tests. Default: 8 MiB. */
  readonly worthThreads?: number;
}

export class ReplayBlocks {
  readonly #options: BlockOptions;
  readonly #summary: ReplaySummary;
  readonly #buffers = new BlockBuffers();
  readonly #threads: ReplayThread[] = [];
  /** In the order of the log. */
  readonly #judging: { readonly place: Place; readonly judged: Promise<JudgedBlock> }[] = [];
  #damaged = 0;
  readonly #firstDamaged: string[] = [];
  #seen = 0;
  /** Bytes that were read from the disk. */
  bytes = 0;

  constructor(summary: ReplaySummary, options: BlockOptions) {
    this.#summary = summary;
    this.#options = options;
  }

  get damaged(): DamagedLines {
    return { count: this.#damaged, first: this.#firstDamaged };
  }

  /** How many threads have read the configuration. */
  get readyThreads(): number {
    return this.#threads.filter(({ isReady }) => isReady).length;
  }

  /** Adds all decisions of the files to the summary, and calls `shown` now and then. @throws UsageError if a file cannot be read */
  async judge(files: readonly LogFile[], shown: () => void): Promise<void> {
    try {
      for (const { name, chunks } of files) {
        const place: Place = { name, line: 0 };
        const blocks = new LogBlocks(this.#buffers);
        for await (const chunk of chunks((bytes) => {
          this.bytes += bytes;
        })) {
          this.#seen += chunk.length;
          await this.#each(blocks.push(chunk), place);
          shown();
        }
        await this.#each(blocks.end(), place);
      }
      await this.#finish(0);
    } finally {
      await Promise.all(this.#threads.map((thread) => thread.close()));
    }
  }

  async #each(blocks: Iterable<LogBlock>, place: Place): Promise<void> {
    for (const block of blocks) {
      const thread = this.#thread();
      if (thread !== undefined) {
        this.#judging.push({ place, judged: thread.judge(block, this.#summary.missing) });
        await this.#finish(this.#threads.length * BLOCKS_PER_THREAD);
      } else {
        const { judge, selection } = this.#options;
        await this.#finish(0);
        this.#add(place, await judgeBlock(block, { judge, selection, wanted: this.#summary.missing }));
        if (block !== undefined) {
          this.#buffers.giveBack(block.buffer);
        }
      }
    }
  }

  /** The one that has least to do; `undefined` = none is ready. */
  #thread(): ReplayThread | undefined {
    const { threads, worthThreads = WORTH_THREADS, ...data } = this.#options;
    if (this.#threads.length === 0 && this.#seen > worthThreads) {
      const { sources, selection, assumeRecorded } = data;
      for (let count = 0; count < threads; count += 1) {
        this.#threads.push(new ReplayThread({ sources, selection, assumeRecorded }, this.#buffers));
      }
    }
    let free: ReplayThread | undefined;
    for (const thread of this.#threads) {
      if (thread.failure !== undefined) {
        throw thread.failure;
      }
      if (thread.isReady && thread.waiting < (free?.waiting ?? Number.POSITIVE_INFINITY)) {
        free = thread;
      }
    }
    return free;
  }

  /** Waits until no more than so many blocks are judged. */
  async #finish(most: number): Promise<void> {
    while (this.#judging.length > most) {
      const first = this.#judging.shift();
      if (first !== undefined) {
        this.#add(first.place, await first.judged);
      }
    }
  }

  #add(place: Place, { lines, damaged, firstDamaged, part }: JudgedBlock): void {
    this.#summary.addPart(part);
    this.#damaged += damaged;
    for (const { number, why } of firstDamaged) {
      if (this.#firstDamaged.length < MAX_SHOWN) {
        this.#firstDamaged.push(`${place.name}:${place.line + number}: ${why}`);
      }
    }
    place.line += lines;
  }
}

/** Where the next block begins. */
interface Place {
  readonly name: string;
  line: number;
}

/** How many threads share the work. With one processor, a thread would only take turns with this one. */
export function replayThreads(): number {
  const processors = availableParallelism();
  return processors < 2 ? 0 : Math.min(processors, MAX_THREADS);
}
