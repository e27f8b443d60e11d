/** One thread that runs one policy, from start to end, and its pending questions. */
import { Worker } from 'node:worker_threads';
import { codeOf, errorText } from '../../../base/errors.ts';
import type { Logger } from '../../../base/logger.ts';
import type { RuleObserver } from '../../../filter/services.ts';
import type { HttpObserver } from '../../../http/contract.ts';
import { type Answer, failure, type Question, stackText } from '../call-policy.ts';
import { type FromThread, fromThreadSchema, type ThreadData, type ToThread } from './thread-messages.ts';

/** Heap limit; a thread that exceeds it is stopped. */
const MEMORY_MB = 256;
/** Time limit for loading the policy with its imports and constructing it. */
const START_MILLISECONDS = 15_000;

/** Node 20 cannot run TypeScript: tests, which run from the source tree, use the built file. */
const ENTRY = new URL(
  import.meta.url.endsWith('.ts')
    ? '../../../../dist/src/skypilot/policies/isolation/policy-worker.js'
    : './policy-worker.js',
  import.meta.url,
);

export interface PendingQuestion {
  readonly id: number;
  readonly question: Question;
  /** Milliseconds left until the deadline. */
  readonly left: () => number;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (cause: Error) => void;
  /** Whether the policy is working on it. */
  taken: boolean;
}

/** Receivers of a thread's log lines and observations. */
export interface ThreadServices {
  readonly logger: Logger;
  readonly httpObserver: HttpObserver | undefined;
  /** Only for `skypilot test`. */
  readonly ruleObserver?: RuleObserver | undefined;
}

interface ThreadEvents extends ThreadServices {
  readonly name: string;
  /** The thread has exited; unanswered questions are still in `pending`. */
  readonly ended: (thread: PolicyThread, cause: Error, byItself: boolean) => void;
}

export class PolicyThread {
  readonly pending = new Map<number, PendingQuestion>();
  /** Resolves when the policy is constructed. @throws Error if that fails */
  readonly started: Promise<void>;
  isReady = false;
  /** Whether it was blocked at the last check. */
  wasHeld = false;
  isEnded = false;
  readonly #worker: Worker;
  readonly #events: ThreadEvents;
  readonly #exited: Promise<void>;
  #lastMessageAt = performance.now();
  #waitingSince = 0;
  #cause: Error | undefined;
  #closed: ((cause: string | undefined) => void) | undefined;

  constructor(data: ThreadData, events: ThreadEvents) {
    this.#events = events;
    this.#worker = new Worker(ENTRY, {
      name: events.name,
      workerData: data,
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
    });
    // Callers have timers that keep the process alive; an idle thread must not.
    this.#worker.unref();
    this.#exited = new Promise((resolve) => {
      this.#worker.once('exit', (code) => {
        const cause = this.#cause ?? failure(`its thread exited with code ${code}`);
        this.#cause = cause;
        events.ended(this, cause, !this.isEnded);
        resolve();
      });
    });
    this.started = this.#start();
    // Callers are also notified when the thread exits.
    this.started.catch(() => {});
    this.#worker.on('error', (thrown: unknown) => {
      this.#cause ??= failure(`its thread exited: ${endOf(thrown)}`, stackText(thrown));
    });
    this.#worker.on('messageerror', () => this.end(failure('its answer cannot be read')));
  }

  /** Milliseconds since it took or answered a question, or got one while idle. Log lines do not count. */
  get silence(): number {
    return performance.now() - this.#lastMessageAt;
  }

  /** Milliseconds for which questions have waited without progress; 0 if none waits. */
  get heldFor(): number {
    return this.hasWaiting ? performance.now() - Math.max(this.#lastMessageAt, this.#waitingSince) : 0;
  }

  /** Whether any of its questions is not yet taken. */
  get hasWaiting(): boolean {
    return [...this.pending.values()].some(({ taken }) => !taken);
  }

  ask(asked: PendingQuestion): void {
    const now = performance.now();
    this.#lastMessageAt = this.pending.size === 0 ? now : this.#lastMessageAt;
    this.#waitingSince = this.hasWaiting ? this.#waitingSince : now;
    this.pending.set(asked.id, asked);
    this.#post({ kind: 'ask', id: asked.id, question: asked.question, milliseconds: asked.left() });
  }

  /** Stops the thread at once. */
  end(cause: Error): void {
    this.#cause ??= cause;
    this.isEnded = true;
    void this.#worker.terminate();
  }

  /** Closes the policy and stops the thread. Resolves to the error of the policy, if any. */
  async close(milliseconds: number): Promise<string | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const cause = await new Promise<string | undefined>((resolve) => {
      this.#closed = resolve;
      timer = setTimeout(resolve, milliseconds, `it did not close within ${milliseconds / 1000} s`);
      void this.#exited.then(() => resolve(undefined));
      this.#post({ kind: 'close' });
    });
    clearTimeout(timer);
    this.end(failure('closed'));
    // A system call cannot be interrupted: the thread then ends with the process.
    await Promise.race([this.#exited, new Promise((resolve) => setTimeout(resolve, milliseconds).unref())]);
    return cause;
  }

  #post(message: ToThread): void {
    this.#worker.postMessage(message);
  }

  #start(): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.end(failure(`it was not loaded within ${START_MILLISECONDS / 1000} s`));
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
          this.end(failure(message.cause));
        } else if (message !== undefined) {
          this.#received(message);
        }
      });
    });
  }

  #received(message: FromThread): void {
    const { logger, httpObserver, ruleObserver, name } = this.#events;
    switch (message.kind) {
      case 'taken':
        this.#take(message.id);
        break;
      case 'answered':
        this.#answer(message);
        break;
      case 'rejected':
        this.#settle(message.id)?.resolve({ rejected: message.rejected, rules: message.rules });
        break;
      case 'failed':
        this.#settle(message.id)?.reject(
          Object.assign(failure(message.cause, message.stack), { rules: message.rules }),
        );
        break;
      case 'rules-read':
        ruleObserver?.rulesRead(message.read);
        break;
      case 'rule-judged':
        ruleObserver?.ruleJudged(message.rule, message.said, () => []);
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

  #answer({ id, task, skypilotConfig, rules }: Extract<FromThread, { kind: 'answered' }>): void {
    const asked = this.#settle(id);
    asked?.resolve({
      task: task ?? asked.question.task,
      skypilotConfig: skypilotConfig ?? asked.question.skypilotConfig,
      rules,
    });
  }

  #take(id: number): void {
    this.#lastMessageAt = performance.now();
    const asked = this.pending.get(id);
    if (asked !== undefined) {
      asked.taken = true;
    }
  }

  #settle(id: number): PendingQuestion | undefined {
    this.#lastMessageAt = performance.now();
    const asked = this.pending.get(id);
    this.pending.delete(id);
    return asked;
  }
}

function endOf(thrown: unknown): string {
  const isMemory = codeOf(thrown) === 'ERR_WORKER_OUT_OF_MEMORY';
  return isMemory ? `it took more than ${MEMORY_MB} MB of memory` : errorText(thrown);
}
