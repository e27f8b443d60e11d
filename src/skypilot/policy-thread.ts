/** One thread with one policy in it: from its start to its end, and the questions that it has been sent. */
import { Worker } from 'node:worker_threads';
import { errorText } from '../errors.ts';
import type { HttpObserver } from '../http/contract.ts';
import type { Logger } from '../logger.ts';
import type { Answer, Question } from './asking.ts';
import { type FromThread, fromThreadSchema, type ThreadData, type ToThread } from './policy-messages.ts';

/** Of objects and texts; beyond it the thread is ended. */
const MEMORY_MB = 256;
/** For loading the policy with all that it imports, and constructing it. */
const START_MILLISECONDS = 15_000;

/** Node 20 reads no TypeScript: in the source tree, where only tests run, it is the one that is built. */
const ENTRY = new URL(
  import.meta.url.endsWith('.ts') ? '../../dist/src/skypilot/policy-worker.js' : './policy-worker.js',
  import.meta.url,
);

/** A question on its way. */
export interface Asked {
  readonly id: number;
  readonly question: Question;
  /** How long somebody waits for the answer yet, in milliseconds. */
  readonly left: () => number;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (cause: Error) => void;
  /** Whether the policy has been asked. */
  taken: boolean;
  /** When it is looked whether it has. */
  look: NodeJS.Timeout | undefined;
}

/** What is told of a thread. */
export interface ThreadEvents {
  readonly name: string;
  readonly logger: Logger;
  readonly httpObserver: HttpObserver | undefined;
  /** It has ended; what it was asked and has not answered is in `pending` still. */
  readonly ended: (thread: PolicyThread, cause: Error, byItself: boolean) => void;
}

/** An error of a policy's, with the stack that it had over there. */
function failure(cause: string, stack?: string): Error {
  return Object.assign(new Error(cause), stack === undefined ? {} : { stack });
}

export class PolicyThread {
  /** What it has been sent and has not answered, by number. */
  readonly pending = new Map<number, Asked>();
  /** Resolves when the policy is constructed. @throws Error why it could not be */
  readonly started: Promise<void>;
  isReady = false;
  readonly #worker: Worker;
  readonly #events: ThreadEvents;
  readonly #exited: Promise<void>;
  #cause: Error | undefined;
  #isEnded = false;
  #closed: ((cause: string | undefined) => void) | undefined;

  constructor(data: ThreadData, events: ThreadEvents) {
    this.#events = events;
    this.#worker = new Worker(ENTRY, {
      name: events.name,
      workerData: data,
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
    });
    // Whoever waits for an answer has a timer that keeps the process alive; a thread that waits for questions must not.
    this.#worker.unref();
    this.#exited = new Promise((resolve) => {
      this.#worker.once('exit', (code) => {
        const cause = this.#cause ?? new Error(`its thread has ended itself, with exit code ${code}`);
        this.#cause = cause;
        events.ended(this, cause, !this.#isEnded);
        resolve();
      });
    });
    this.started = this.#start();
    // Whoever asks is told by the end of the thread, too.
    this.started.catch(() => {});
    this.#worker.on('error', (thrown: unknown) => {
      this.#cause ??= failure(`its thread has ended: ${endOf(thrown)}`, stackOf(thrown));
    });
    this.#worker.on('messageerror', () => this.end(new Error('what it answered cannot be read')));
  }

  ask(asked: Asked): void {
    this.pending.set(asked.id, asked);
    this.#post({ kind: 'ask', id: asked.id, question: asked.question, milliseconds: asked.left() });
  }

  /** Ends it at once, whatever it does. */
  end(cause: Error): void {
    this.#cause ??= cause;
    this.#isEnded = true;
    void this.#worker.terminate();
  }

  /** Lets the policy release what it holds, and ends it. Resolves to what the policy threw at that, if it did. */
  async close(milliseconds: number): Promise<string | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const cause = await new Promise<string | undefined>((resolve) => {
      this.#closed = resolve;
      timer = setTimeout(resolve, milliseconds, `it did not close within ${milliseconds / 1000} s`);
      void this.#exited.then(() => resolve(undefined));
      this.#post({ kind: 'close' });
    });
    clearTimeout(timer);
    this.end(new Error('closed'));
    // A call into the system cannot be interrupted: it ends with the process then.
    await Promise.race([this.#exited, new Promise((resolve) => setTimeout(resolve, milliseconds).unref())]);
    return cause;
  }

  #post(message: ToThread): void {
    this.#worker.postMessage(message);
  }

  #start(): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.end(new Error(`it was not loaded within ${START_MILLISECONDS / 1000} s`));
      }, START_MILLISECONDS);
      void this.#exited.then(() => {
        clearTimeout(timer);
        reject(this.#cause);
      });
      this.#worker.on('message', (received: unknown) => {
        const { data: message } = fromThreadSchema.safeParse(received);
        if (message?.kind === 'ready') {
          clearTimeout(timer);
          this.isReady = true;
          resolve();
        } else if (message?.kind === 'not-ready') {
          this.end(new Error(message.cause));
        } else if (message !== undefined) {
          this.#received(message);
        }
      });
    });
  }

  #received(message: FromThread): void {
    const { logger, httpObserver, name } = this.#events;
    switch (message.kind) {
      case 'taken':
        this.#take(message.id);
        break;
      case 'answered':
        this.#settle(message.id)?.resolve(message);
        break;
      case 'rejected':
        this.#settle(message.id)?.resolve({ rejected: message.rejected });
        break;
      case 'failed':
        this.#settle(message.id)?.reject(failure(message.cause, message.stack));
        break;
      case 'logged':
        logger[message.level]({ policy: name, ...message.fields }, message.message ?? '');
        break;
      case 'called':
        httpObserver?.called(message.origin, message.outcome, message.seconds);
        break;
      case 'breaker':
        httpObserver?.breakerChanged(message.origin, message.state);
        break;
      case 'closed':
        this.#closed?.(message.cause);
        break;
    }
  }

  #take(id: number): void {
    const asked = this.pending.get(id);
    if (asked !== undefined) {
      asked.taken = true;
    }
  }

  #settle(id: number): Asked | undefined {
    const asked = this.pending.get(id);
    this.pending.delete(id);
    return asked;
  }
}

function endOf(thrown: unknown): string {
  const isMemory = thrown instanceof Error && 'code' in thrown && thrown.code === 'ERR_WORKER_OUT_OF_MEMORY';
  return isMemory ? `it took more than ${MEMORY_MB} MB of memory` : errorText(thrown);
}

function stackOf(thrown: unknown): string | undefined {
  return thrown instanceof Error ? thrown.stack : undefined;
}
