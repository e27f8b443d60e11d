/**
 * Runs a policy in a thread and replaces the thread when necessary:
 *
 * - One thread handles all questions, many at a time, so that the policy keeps its state in one place.
 * - If a question misses its deadline, later questions go to a new thread. The old one is stopped when it has
 *   no pending questions left, usually at once.
 * - If the policy blocks its thread, waiting questions go to a new thread after half a second. At the maximum
 *   number of threads, the one of the policy that is blocked for the longest time is stopped: no request waits
 *   for another's.
 * - If a thread exits unexpectedly, its accepted questions fail. The others go to a new thread.
 */
import type { Deadline } from '../../../base/deadline.ts';
import { type Answer, failure, type Question } from '../call-policy.ts';
import { type PendingQuestion, PolicyThread, type ThreadServices } from './policy-thread.ts';
import type { ThreadData } from './thread-messages.ts';

/** In milliseconds. */
const TIMES = {
  /** After the deadline: a policy that notices it and stops keeps its thread. */
  grace: 250,
  /** Without progress, while questions wait. */
  held: 500,
  /** Without progress, before a thread is stopped for others. */
  stop: 1000,
  /** Between two checks. Only the second one counts a thread as blocked: the main thread may be, too. */
  look: 100,
  close: 5000,
};

/** Maximum number of running threads, including those being stopped. */
const MAX_THREADS = 4;
/** The same of all policies in the process together, beyond the first thread of each. One takes some 25 MB. */
const MAX_MORE_THREADS = 6;
let moreThreads = 0;
/**
 * Maximum number of threads started in a row: a policy that always crashes must not keep the machine busy.
 * Replacements of threads that were stopped for blocking others do not count: at most `MAX_THREADS` of these
 * are stopped in a second.
 */
const MAX_STARTS = 10;
/** One more may be started after each answer, and after this time in milliseconds. */
const START_PAUSE = 5000;

export class IsolatedPolicy {
  readonly name: string;
  readonly #data: ThreadData;
  readonly #services: ThreadServices;
  readonly #threads = new Set<PolicyThread>();
  #current: PolicyThread | undefined;
  /** Questions that wait until a thread has exited. */
  readonly #queue = new Set<PendingQuestion>();
  #look: NodeJS.Timeout | undefined;
  #starts = MAX_STARTS;
  #startsAt = performance.now();
  #lastId = 0;
  #closing = false;

  private constructor(name: string, data: ThreadData, services: ThreadServices) {
    this.name = name;
    this.#data = data;
    this.#services = services;
  }

  /** Starts the first thread. @throws Error if the policy cannot be constructed */
  static async start(name: string, data: ThreadData, services: ThreadServices): Promise<IsolatedPolicy> {
    const policy = new IsolatedPolicy(name, data, services);
    await policy.#thread().started;
    return policy;
  }

  /** @throws Error if there is no answer, at most `TIMES.grace` after the deadline */
  ask(question: Question, deadline: Deadline): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#lastId += 1;
      const overdue = setTimeout(() => this.#overdue(pending), deadline.milliseconds + TIMES.grace).unref();
      const settled = <Value>(settle: (value: Value) => void) => {
        return (value: Value) => {
          clearTimeout(overdue);
          this.#queue.delete(pending);
          settle(value);
          this.#endIdle();
        };
      };
      const pending: PendingQuestion = {
        id: this.#lastId,
        question,
        left: () => deadline.milliseconds,
        resolve: settled((answer: Answer) => {
          this.#starts = Math.min(MAX_STARTS, this.#starts + 1);
          resolve(answer);
        }),
        reject: settled(reject),
        taken: false,
      };
      this.#put(pending);
    });
  }

  /** Closes the policy. @throws Error if the policy could not be closed */
  async close(): Promise<void> {
    this.#closing = true;
    clearTimeout(this.#look);
    for (const pending of this.#queue) {
      pending.reject(failure('closed'));
    }
    const causes = await Promise.all(
      [...this.#threads].map((thread) => {
        if (thread.pending.size === 0) {
          return thread.close(TIMES.close);
        }
        // A thread that did not answer will not process the close message either.
        thread.end(failure('closed'));
        return undefined;
      }),
    );
    const failed = causes.find((cause) => cause !== undefined);
    if (failed !== undefined) {
      throw new Error(failed);
    }
  }

  #put(pending: PendingQuestion): void {
    if (this.#current === undefined && !this.#mayStart) {
      this.#queue.add(pending);
      return;
    }
    try {
      this.#thread().ask(pending);
      this.#look ??= setTimeout(() => this.#lookForHeld(), TIMES.look).unref();
    } catch (thrown) {
      pending.reject(thrown instanceof Error ? thrown : failure(String(thrown)));
    }
  }

  #lookForHeld(): void {
    const waiting = [...this.#threads].filter((thread) => thread.hasWaiting);
    for (const thread of waiting) {
      const isHeld = thread.isReady && thread.heldFor >= TIMES.held;
      if (isHeld && thread.wasHeld) {
        this.#relieve(thread);
      }
      thread.wasHeld = isHeld;
    }
    const again = waiting.length > 0 && !this.#closing;
    this.#look = again ? setTimeout(() => this.#lookForHeld(), TIMES.look).unref() : undefined;
  }

  /** Moves waiting questions of a thread to another one. */
  #relieve(thread: PolicyThread): void {
    if (this.#mayStart) {
      this.#services.logger.error(
        { policy: this.name },
        'policy blocks its thread: moving to another thread',
      );
      this.#replace(thread);
      return;
    }
    const [longest] = [...this.#threads].sort((a, b) => b.silence - a.silence);
    if (longest !== undefined && !longest.isEnded && longest.silence >= TIMES.stop) {
      longest.end(failure('it blocked its thread, and other requests waited'));
    }
  }

  #overdue(pending: PendingQuestion): void {
    const thread = this.#threadOf(pending);
    thread?.pending.delete(pending.id);
    pending.reject(failure('no answer in time'));
    // A thread that is still loading has its own time limit.
    if (thread?.isReady && !this.#closing) {
      this.#services.logger.warn({ policy: this.name }, 'policy did not answer: stopping its thread');
      this.#replace(thread);
    }
  }

  /** Sends later questions, and those not yet accepted, to another thread. */
  #replace(thread: PolicyThread): void {
    if (this.#current === thread) {
      this.#current = undefined;
    }
    const waiting = [...thread.pending.values()].filter(({ taken }) => !taken);
    for (const pending of waiting) {
      thread.pending.delete(pending.id);
    }
    this.#endIdle();
    for (const pending of waiting) {
      this.#put(pending);
    }
  }

  #endIdle(): void {
    for (const thread of this.#threads) {
      if (thread !== this.#current && thread.pending.size === 0) {
        thread.end(failure('it did not answer in time'));
      }
    }
  }

  #ended(thread: PolicyThread, cause: Error, byItself: boolean): void {
    this.#threads.delete(thread);
    moreThreads -= this.#threads.size > 0 ? 1 : 0;
    if (this.#current === thread) {
      this.#current = undefined;
    }
    if (!byItself && thread.isReady) {
      this.#starts = Math.min(MAX_STARTS, this.#starts + 1);
    }
    const left = [...thread.pending.values()];
    thread.pending.clear();
    if (byItself && thread.isReady && !left.some(({ taken }) => taken)) {
      this.#services.logger.error({ policy: this.name, error: cause.message }, 'policy failed');
    }
    for (const pending of left) {
      if (pending.taken || !thread.isReady || this.#closing) {
        pending.reject(cause);
      } else {
        this.#put(pending);
      }
    }
    for (const pending of this.#queue) {
      this.#queue.delete(pending);
      this.#put(pending);
    }
  }

  #threadOf(pending: PendingQuestion): PolicyThread | undefined {
    return [...this.#threads].find((thread) => thread.pending.has(pending.id));
  }

  /** Without room for another one, a policy without a thread may still start its first. */
  get #mayStart(): boolean {
    const { size } = this.#threads;
    return size === 0 || (size < MAX_THREADS && moreThreads < MAX_MORE_THREADS);
  }

  /** The current thread, or a new one. @throws Error if no more may be started */
  #thread(): PolicyThread {
    if (this.#current !== undefined) {
      return this.#current;
    }
    this.#countStart();
    const thread = new PolicyThread(this.#data, {
      name: this.name,
      ...this.#services,
      ended: (...end) => this.#ended(...end),
    });
    moreThreads += this.#threads.size > 0 ? 1 : 0;
    this.#threads.add(thread);
    this.#current = thread;
    return thread;
  }

  /** @throws Error if too many were started */
  #countStart(): void {
    const now = performance.now();
    this.#starts = Math.min(MAX_STARTS, this.#starts + (now - this.#startsAt) / START_PAUSE);
    this.#startsAt = now;
    if (this.#starts < 1 || !this.#mayStart) {
      throw failure('its threads keep hanging or crashing: not starting another one for now');
    }
    this.#starts -= 1;
  }
}
