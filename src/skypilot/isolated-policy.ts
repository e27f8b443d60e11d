/**
 * Runs a policy in a thread and replaces the thread when necessary:
 *
 * - One thread handles all questions, many at a time, so that the policy keeps its state in one place.
 * - If a question misses its deadline, later questions go to a new thread. The old one is stopped once nobody waits
 *   for it, usually at once.
 * - If the policy blocks its thread and does not accept a question within a second, the question goes to a new
 *   thread.
 * - If a thread stops by itself, the questions that it had accepted fail. The others go to a new thread.
 */
import type { Deadline } from '../deadline.ts';
import type { HttpObserver } from '../http/contract.ts';
import type { Logger } from '../logger.ts';
import type { Answer, Question } from './call-policy.ts';
import { type PendingQuestion, PolicyThread } from './policy-thread.ts';
import type { ThreadData } from './thread-messages.ts';

/** In milliseconds. */
const TIMES = {
  /** After the deadline: a policy that notices it and gives up keeps its thread. */
  grace: 250,
  held: 1000,
  /** Between two checks, so that a main thread that was itself blocked can process pending messages. */
  look: 100,
  close: 5000,
};

/** Maximum number of running threads, including those being stopped. */
const MAX_THREADS = 4;
/** Maximum number of threads started in a row: a policy that always crashes must not keep the machine busy. */
const MAX_STARTS = 10;
/** After this many milliseconds, one more may be started. */
const START_PAUSE = 5000;

export interface IsolatedPolicyServices {
  readonly logger: Logger;
  readonly httpObserver: HttpObserver | undefined;
}

export class IsolatedPolicy {
  readonly #name: string;
  readonly #data: ThreadData;
  readonly #services: IsolatedPolicyServices;
  readonly #threads = new Set<PolicyThread>();
  #current: PolicyThread | undefined;
  #starts = MAX_STARTS;
  #startsAt = performance.now();
  #lastId = 0;
  #closing = false;

  private constructor(name: string, data: ThreadData, services: IsolatedPolicyServices) {
    this.#name = name;
    this.#data = data;
    this.#services = services;
  }

  /** Starts the first thread. @throws Error if the policy cannot be constructed */
  static async start(
    name: string,
    data: ThreadData,
    services: IsolatedPolicyServices,
  ): Promise<IsolatedPolicy> {
    const policy = new IsolatedPolicy(name, data, services);
    await policy.#thread().started;
    return policy;
  }

  /** @throws Error if there is no answer, at the latest `TIMES.grace` after the deadline */
  ask(question: Question, deadline: Deadline): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#lastId += 1;
      const overdue = setTimeout(() => this.#overdue(pending), deadline.milliseconds + TIMES.grace).unref();
      const settled = <Value>(settle: (value: Value) => void) => {
        return (value: Value) => {
          clearTimeout(overdue);
          clearTimeout(pending.look);
          settle(value);
          this.#endIdle();
        };
      };
      const pending: PendingQuestion = {
        id: this.#lastId,
        question,
        left: () => deadline.milliseconds,
        resolve: settled(resolve),
        reject: settled(reject),
        taken: false,
        look: undefined,
      };
      this.#put(pending);
    });
  }

  /** Closes the policy. Resolves to the error message if that failed. */
  async close(): Promise<string | undefined> {
    this.#closing = true;
    const causes = await Promise.all(
      [...this.#threads].map((thread) => {
        if (thread.pending.size === 0) {
          return thread.close(TIMES.close);
        }
        // A thread that did not answer will not process the close message either.
        thread.end(new Error('closed'));
        return undefined;
      }),
    );
    return causes.find((cause) => cause !== undefined);
  }

  #put(pending: PendingQuestion): void {
    try {
      this.#thread().ask(pending);
      pending.look = setTimeout(() => this.#look(pending), TIMES.held).unref();
    } catch (thrown) {
      pending.reject(thrown instanceof Error ? thrown : new Error(String(thrown)));
    }
  }

  /** Moves a question to another thread if the policy has not accepted it by the second check. */
  #look(pending: PendingQuestion, isSecond = false): void {
    const thread = this.#threadOf(pending);
    if (thread === undefined || pending.taken) {
      return;
    }
    if (isSecond && this.#threads.size < MAX_THREADS) {
      this.#services.logger.error(
        { policy: this.#name },
        'policy blocks its thread: moving to another thread',
      );
      this.#replace(thread);
    } else {
      pending.look = setTimeout(() => this.#look(pending, thread.isReady), TIMES.look).unref();
    }
  }

  #overdue(pending: PendingQuestion): void {
    const thread = this.#threadOf(pending);
    thread?.pending.delete(pending.id);
    pending.reject(new Error('no answer in time'));
    // A thread that is still loading has its own time limit.
    if (thread?.isReady && !this.#closing) {
      this.#services.logger.warn({ policy: this.#name }, 'policy did not answer: stopping its thread');
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

  /** Stops replaced threads that nobody waits for. */
  #endIdle(): void {
    for (const thread of this.#threads) {
      if (thread !== this.#current && thread.pending.size === 0) {
        thread.end(new Error('it did not answer in time'));
      }
    }
  }

  #ended(thread: PolicyThread, cause: Error, byItself: boolean): void {
    this.#threads.delete(thread);
    if (this.#current === thread) {
      this.#current = undefined;
    }
    const left = [...thread.pending.values()];
    thread.pending.clear();
    if (byItself && thread.isReady && !left.some(({ taken }) => taken)) {
      this.#services.logger.error({ policy: this.#name, error: cause.message }, 'policy failed');
    }
    for (const pending of left) {
      if (pending.taken || !thread.isReady || this.#closing) {
        pending.reject(cause);
      } else {
        this.#put(pending);
      }
    }
  }

  #threadOf(pending: PendingQuestion): PolicyThread | undefined {
    return [...this.#threads].find((thread) => thread.pending.has(pending.id));
  }

  /** The current thread, or a new one. @throws Error if no more may be started */
  #thread(): PolicyThread {
    if (this.#current !== undefined) {
      return this.#current;
    }
    this.#countStart();
    const { logger, httpObserver } = this.#services;
    const thread = new PolicyThread(this.#data, {
      name: this.#name,
      logger,
      httpObserver,
      ended: (...end) => this.#ended(...end),
    });
    this.#threads.add(thread);
    this.#current = thread;
    return thread;
  }

  /** @throws Error if too many were started */
  #countStart(): void {
    const now = performance.now();
    this.#starts = Math.min(MAX_STARTS, this.#starts + (now - this.#startsAt) / START_PAUSE);
    this.#startsAt = now;
    if (this.#starts < 1 || this.#threads.size >= MAX_THREADS) {
      throw new Error('its threads keep hanging or crashing: not starting another one for now');
    }
    this.#starts -= 1;
  }
}
