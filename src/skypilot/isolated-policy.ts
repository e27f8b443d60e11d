/**
 * A policy in a thread of its own, and what becomes of the thread:
 *
 * - All questions go to one thread, many at a time, so that what the policy keeps in memory is in one place.
 * - Where a question is not answered by its deadline, the next ones go to a new thread; the old one is ended as soon as nobody
 *   waits for it any longer, which mostly is at once.
 * - Where the policy does not even take a question for a second, since it holds its thread, the question goes to a new thread.
 * - A thread that ends by itself has failed at what the policy had taken. What it had not taken goes to a new one.
 */
import type { Deadline } from '../deadline.ts';
import type { HttpObserver } from '../http/contract.ts';
import type { Logger } from '../logger.ts';
import type { Answer, Question } from './asking.ts';
import type { ThreadData } from './policy-messages.ts';
import { type Asked, PolicyThread } from './policy-thread.ts';

/** All in milliseconds. */
const TIMES = {
  /** Behind the deadline: a policy that hears of it and gives up keeps its thread. */
  grace: 250,
  held: 1000,
  /** Between two looks, so that a service that was held itself sees what has come meanwhile. */
  look: 100,
  close: 5000,
};

/** Those that still run, ended ones included: more are not started. */
const MAX_THREADS = 4;
/** So many may be started in a row: a policy that breaks at every question must not keep the machine busy. */
const MAX_STARTS = 10;
/** After so many milliseconds it is one more. */
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
  #asked = 0;
  #closing = false;

  private constructor(name: string, data: ThreadData, services: IsolatedPolicyServices) {
    this.#name = name;
    this.#data = data;
    this.#services = services;
  }

  /** Starts the first thread. @throws Error why the policy could not be constructed */
  static async start(
    name: string,
    data: ThreadData,
    services: IsolatedPolicyServices,
  ): Promise<IsolatedPolicy> {
    const policy = new IsolatedPolicy(name, data, services);
    await policy.#thread().started;
    return policy;
  }

  /** @throws Error why there is no answer, at the latest `TIMES.grace` behind the deadline */
  ask(question: Question, deadline: Deadline): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#asked += 1;
      const overdue = setTimeout(() => this.#overdue(asked), deadline.milliseconds + TIMES.grace).unref();
      const settled = <Value>(settle: (value: Value) => void) => {
        return (value: Value) => {
          clearTimeout(overdue);
          clearTimeout(asked.look);
          settle(value);
          this.#endIdle();
        };
      };
      const asked: Asked = {
        id: this.#asked,
        question,
        left: () => deadline.milliseconds,
        resolve: settled(resolve),
        reject: settled(reject),
        taken: false,
        look: undefined,
      };
      this.#put(asked);
    });
  }

  /** Lets the policy release what it holds. Resolves to what went wrong at that, if something did. */
  async close(): Promise<string | undefined> {
    this.#closing = true;
    const causes = await Promise.all(
      [...this.#threads].map((thread) => {
        if (thread.pending.size === 0) {
          return thread.close(TIMES.close);
        }
        // One that did not even answer would not hear of it.
        thread.end(new Error('closed'));
        return undefined;
      }),
    );
    return causes.find((cause) => cause !== undefined);
  }

  #put(asked: Asked): void {
    try {
      this.#thread().ask(asked);
      asked.look = setTimeout(() => this.#look(asked), TIMES.held).unref();
    } catch (thrown) {
      asked.reject(thrown instanceof Error ? thrown : new Error(String(thrown)));
    }
  }

  /** Whether the policy has taken a question; where it has not, two looks in a row, another thread gets it. */
  #look(asked: Asked, isSecond = false): void {
    const thread = this.#threadOf(asked);
    if (thread === undefined || asked.taken) {
      return;
    }
    if (isSecond && this.#threads.size < MAX_THREADS) {
      this.#services.logger.error(
        { policy: this.#name },
        'policy holds its thread: another one takes the questions',
      );
      this.#replace(thread);
    } else {
      asked.look = setTimeout(() => this.#look(asked, thread.isReady), TIMES.look).unref();
    }
  }

  #overdue(asked: Asked): void {
    const thread = this.#threadOf(asked);
    thread?.pending.delete(asked.id);
    asked.reject(new Error('no answer in time'));
    // One that is being loaded has a time of its own for that.
    if (thread?.isReady && !this.#closing) {
      this.#services.logger.warn({ policy: this.#name }, 'policy did not answer: its thread is ended');
      this.#replace(thread);
    }
  }

  /** The next questions go to another thread, and those which the policy has not taken. */
  #replace(thread: PolicyThread): void {
    if (this.#current === thread) {
      this.#current = undefined;
    }
    const waiting = [...thread.pending.values()].filter(({ taken }) => !taken);
    for (const asked of waiting) {
      thread.pending.delete(asked.id);
    }
    this.#endIdle();
    for (const asked of waiting) {
      this.#put(asked);
    }
  }

  /** Ends those for which nobody waits and that get no further questions. */
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
    for (const asked of left) {
      if (asked.taken || !thread.isReady || this.#closing) {
        asked.reject(cause);
      } else {
        this.#put(asked);
      }
    }
  }

  #threadOf(asked: Asked): PolicyThread | undefined {
    return [...this.#threads].find(({ pending }) => pending.has(asked.id));
  }

  /** The one that is asked now. @throws Error if there is none, and none may be started */
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

  /** @throws Error when it has been too often */
  #countStart(): void {
    const now = performance.now();
    this.#starts = Math.min(MAX_STARTS, this.#starts + (now - this.#startsAt) / START_PAUSE);
    this.#startsAt = now;
    if (this.#starts < 1 || this.#threads.size >= MAX_THREADS) {
      throw new Error('its threads hang or end again and again: no other is started at present');
    }
    this.#starts -= 1;
  }
}
