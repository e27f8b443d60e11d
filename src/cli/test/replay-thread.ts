/** A thread that judges blocks of a log by its own copy of the configuration. */
import { Worker } from 'node:worker_threads';
import type { ConfigSources } from '../../config/sources.ts';
import { errorText } from '../../errors.ts';
import { FailedError } from '../output.ts';
import type { JudgedBlock } from './judged-block.ts';
import type { BlockBuffers, LogBlock } from './log-blocks.ts';
import type { LogSelection } from './log-selection.ts';
import type { Wanted } from './replay-summary.ts';

/** What a thread is started with. */
export interface ReplayThreadData {
  readonly sources: ConfigSources;
  readonly selection: LogSelection;
  readonly assumeRecorded: boolean;
}

export interface ReplayTask {
  readonly id: number;
  readonly block: LogBlock;
  readonly wanted: Wanted;
}

/** `ready`: the configuration is read. `buffer`: of the block. */
export type FromReplayThread =
  | { readonly kind: 'ready' }
  | {
      readonly kind: 'judged';
      readonly id: number;
      readonly judged: JudgedBlock;
      readonly buffer: ArrayBuffer | undefined;
    }
  | { readonly kind: 'failed'; readonly error: string };

interface Pending {
  resolve(judged: JudgedBlock): void;
  reject(cause: Error): void;
}

/** Node 20 cannot run TypeScript: tests, which run from the source tree, use the built file. */
const ENTRY = new URL(
  import.meta.url.endsWith('.ts') ? '../../../dist/src/cli/test/replay-worker.js' : './replay-worker.js',
  import.meta.url,
);
/** Fewer collections than with the usual 48 MB, as nearly all that is read is garbage at once. Each thread has it. */
const YOUNG_MB = 96;

export class ReplayThread {
  readonly #worker: Worker;
  readonly #pending = new Map<number, Pending>();
  readonly #buffers: BlockBuffers;
  #last = 0;
  #failure: Error | undefined;
  isReady = false;

  constructor(data: ReplayThreadData, buffers: BlockBuffers) {
    this.#buffers = buffers;
    this.#worker = new Worker(ENTRY, {
      name: 'replay',
      workerData: data,
      execArgv: [],
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
    this.#worker.on('message', (message: FromReplayThread) => this.#heard(message));
    this.#worker.on('error', (thrown) => this.#fail(thrown));
    this.#worker.on('messageerror', (thrown) => this.#fail(thrown));
    this.#worker.on('exit', (code) => this.#fail(new Error(`it exited with code ${code}`)));
  }

  /** Why the thread can judge nothing any more. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** How many blocks it has. */
  get waiting(): number {
    return this.#pending.size;
  }

  /** Takes the bytes: they can no longer be read here. */
  judge(block: LogBlock, wanted: Wanted): Promise<JudgedBlock> {
    if (this.#failure !== undefined) {
      return Promise.reject(this.#failure);
    }
    this.#last += 1;
    const id = this.#last;
    const judged = new Promise<JudgedBlock>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
    });
    // It may be told before anybody waits for it.
    judged.catch(() => {});
    const task: ReplayTask = { id, block, wanted };
    this.#worker.postMessage(task, block === undefined ? [] : [block.buffer]);
    return judged;
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #heard(message: FromReplayThread): void {
    if (message.kind === 'ready') {
      this.isReady = true;
    } else if (message.kind === 'failed') {
      this.#fail(new Error(message.error));
    } else {
      const { id, judged, buffer } = message;
      if (buffer !== undefined) {
        this.#buffers.giveBack(buffer);
      }
      this.#pending.get(id)?.resolve(judged);
      this.#pending.delete(id);
    }
  }

  #fail(thrown: unknown): void {
    this.#failure ??= new FailedError(`a thread of the replay has ended: ${errorText(thrown)}`, {
      cause: thrown,
    });
    for (const { reject } of this.#pending.values()) {
      reject(this.#failure);
    }
    this.#pending.clear();
  }
}
