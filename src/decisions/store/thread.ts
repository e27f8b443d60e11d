/** The decision store in a file, run in a worker thread: see `worker.ts`. */
import { Worker } from 'node:worker_threads';
import { inTime, type Wait, withinDeadline } from '../../base/deadline.ts';
import { errorText, LedgerContentError, LedgerUnavailableError } from '../../base/errors.ts';
import { CursorError } from '../../ledger/reports/pages.ts';
import { CommitInDoubtError } from '../../ledger/storage/database.ts';
import type { DecisionTarget } from './contract.ts';

export interface ThreadStart {
  readonly file: string;
  readonly replica: string;
}

/** The methods of the thread, called by name. */
export interface ThreadMethods extends DecisionTarget {
  /** What is wrong with the tables; `undefined` = nothing. */
  verify(wait: Wait): Promise<string | undefined>;
}

export interface ThreadQuestion {
  readonly id: number;
  readonly method: keyof ThreadMethods;
  /** The arguments of the method, without the wait. */
  readonly given: readonly unknown[];
  /** How long the caller waits. */
  readonly milliseconds: number;
}

export type ThreadAnswer =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: ThreadError };

/** Class instances cannot be passed between threads. */
interface ThreadError {
  readonly kind: keyof typeof ERRORS;
  readonly message: string;
}

const ERRORS = {
  content: LedgerContentError,
  cursor: CursorError,
  unavailable: LedgerUnavailableError,
  other: Error,
};

export function threadError(thrown: unknown): ThreadError {
  const kinds = ['content', 'cursor', 'unavailable'] as const;
  return {
    kind: kinds.find((kind) => thrown instanceof ERRORS[kind]) ?? 'other',
    message: errorText(thrown),
  };
}

/** Node 20 cannot run TypeScript: tests, which run from the source tree, use the built file. */
const ENTRY = new URL(
  import.meta.url.endsWith('.ts') ? '../../../dist/src/decisions/store/worker.js' : './worker.js',
  import.meta.url,
);

/** Milliseconds per second of the timeout: the thread gives up before its caller. */
const IN_TIME = 900;

interface Asked {
  readonly resolve: (result: unknown) => void;
  readonly reject: (reason: unknown) => void;
}

/** A method of the target that runs in the thread. */
type Remote<Method extends keyof ThreadMethods> = (
  ...given: Parameters<ThreadMethods[Method]>
) => ReturnType<ThreadMethods[Method]>;

export class DecisionThread implements ThreadMethods {
  readonly #start: ThreadStart;
  /** Of one call, in seconds. */
  readonly #timeout: number;
  readonly #asked = new Map<number, Asked>();
  #worker: Worker | undefined;
  #last = 0;

  readonly verify = this.#remote('verify');
  readonly write = this.#remote('write');
  readonly has = this.#remote('has');
  readonly search = this.#remote('search');
  readonly newest = this.#remote('newest');
  readonly changesSince = this.#remote('changesSince');
  readonly revisions = this.#remote('revisions');
  readonly trim = this.#remote('trim');
  readonly present = this.#remote('present');
  readonly replicas = this.#remote('replicas');

  /** The thread starts with the first call, and again after it has ended. */
  constructor(start: ThreadStart, timeout: number) {
    this.#start = start;
    this.#timeout = timeout;
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    if (worker !== undefined) {
      // It may be blocked in a system call.
      await withinDeadline(1, (deadline) => this.#ask('close', [], deadline)).catch(() => {});
      this.#worker = undefined;
      await worker.terminate();
    }
  }

  #remote<Method extends Exclude<keyof ThreadMethods, 'close'>>(method: Method): Remote<Method> {
    return (...all: readonly unknown[]) =>
      this.#ask(method, all.slice(0, -1), all.at(-1) as Wait) as ReturnType<ThreadMethods[Method]>;
  }

  /** Calls the method in the thread; resolves to its result. */
  async #ask(method: ThreadQuestion['method'], given: readonly unknown[], wait: Wait): Promise<unknown> {
    wait.throwIfOver();
    this.#last += 1;
    const id = this.#last;
    const answer = new Promise<unknown>((resolve, reject) => {
      this.#asked.set(id, { resolve, reject });
    });
    // The caller may no longer wait.
    answer.catch(() => {});
    const question: ThreadQuestion = { id, method, given, milliseconds: this.#timeout * IN_TIME };
    this.#running().postMessage(question);
    return inTime(answer, wait).catch((thrown: unknown) => {
      throw thrown === wait.signal?.reason
        ? new LedgerUnavailableError('the thread of the store did not answer in time', { cause: thrown })
        : thrown;
    });
  }

  #running(): Worker {
    if (this.#worker === undefined) {
      const worker = new Worker(ENTRY, { name: 'decisions', workerData: this.#start, execArgv: [] });
      worker.unref();
      worker.on('message', (answer: ThreadAnswer) => this.#answered(answer));
      let reason = 'its thread has ended';
      worker.on('error', (thrown) => {
        reason = `its thread has ended: ${errorText(thrown)}`;
      });
      worker.on('exit', () => this.#ended(worker, reason));
      this.#worker = worker;
    }
    return this.#worker;
  }

  #answered(answer: ThreadAnswer): void {
    const asked = this.#asked.get(answer.id);
    this.#asked.delete(answer.id);
    if ('error' in answer) {
      const { kind, message } = answer.error;
      asked?.reject(kind === 'cursor' ? new CursorError() : new ERRORS[kind](message));
    } else {
      asked?.resolve(answer.result);
    }
  }

  /** Pending writes may have been committed. */
  #ended(worker: Worker, reason: string): void {
    if (this.#worker === worker) {
      this.#worker = undefined;
    }
    for (const { reject } of this.#asked.values()) {
      reject(new CommitInDoubtError(reason, undefined, {}));
    }
    this.#asked.clear();
  }
}
