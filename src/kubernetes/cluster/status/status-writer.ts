/** What is written into a cluster: events, and the status of each policy: what is accepted, and what is in force. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Logger } from '../../../base/logger.ts';
import type { BindingRequest, PodRequest } from '../../admission/admission-review.ts';
import { AUDIT_ALL } from '../../admission/pod-admission.ts';
import type { ApiClient } from '../api/contract.ts';
import { boundedCall, CLOCK, type Clock } from '../api/timing.ts';
import type { LivePolicies, LivePolicy } from '../live/contract.ts';
import {
  ACCEPTED,
  type Condition,
  conditionsOf,
  isWritten,
  type StatusObserver,
  type StatusOutcome,
  statusPatch,
  writtenCondition,
} from './conditions.ts';
import { EventSender, type Refusal } from './events.ts';
import { Leader, type LeaderOptions } from './leader.ts';
import { DueNames, WriteHistory, WriteSchedule } from './write-schedule.ts';

/** Between two writes, in milliseconds: ten a second. */
const PAUSE_MS = 100;
/** An idle writer looks whether it is still the leader, in milliseconds. */
const IDLE_MS = 5000;
/** Policies that are compared before others have their turn: comparing them must not delay an admission. */
const LOOKS = 50;

interface InForce {
  /** Names of the policies in audit mode; `*` = all. */
  readonly audit: readonly string[];
  /** What API servers do not ask about. */
  readonly notAsked: readonly string[];
}

interface StatusWriterOptions {
  readonly client: ApiClient;
  readonly policies: LivePolicies;
  /** `lookAgain` when it changes. */
  readonly inForce: () => InForce;
  readonly logger: Logger;
  readonly observer: StatusObserver;
  readonly election?: Pick<LeaderOptions, 'name' | 'namespace' | 'identity' | 'timing'>;
  readonly clock?: Clock;
}

/** Of all replicas, one writes. Nothing here delays an admission. */
export class StatusWriter {
  readonly #options: Required<Omit<StatusWriterOptions, 'election'>>;
  readonly #events: EventSender;
  readonly #leader: Leader;
  readonly #closing = new AbortController();
  readonly #due = new DueNames();
  readonly #history = new WriteHistory();
  readonly #pace = new WriteSchedule();
  /** The generation of each invalid policy that an event has told of, by name. */
  readonly #told = new Map<string, string>();
  #looks = 0;
  #wake = new AbortController();
  #problem: string | undefined;
  #running: Promise<void> | undefined;
  #unlisten: (() => void) | undefined;

  constructor({ election, clock = CLOCK, ...options }: StatusWriterOptions) {
    this.#options = { clock, ...options };
    this.#events = new EventSender(this.#options);
    const { client, logger } = options;
    this.#leader = new Leader({ client, logger, clock, onElected: () => this.lookAgain(), ...election });
  }

  get isLeader(): boolean {
    return this.#leader.isLeader;
  }

  start(): void {
    if (this.#running === undefined) {
      this.#unlisten = this.#options.policies.onChange((names) => this.#changed(names));
      this.#leader.start();
      this.#running = this.#run();
    }
  }

  /** At all policies. */
  lookAgain(): void {
    this.#changed([...this.#options.policies.policies.keys()]);
  }

  /** Returns at once. */
  refused(request: PodRequest | BindingRequest, refusal: Refusal): void {
    this.#events.refused(request, refusal);
  }

  /** Ends what is under way, drops the events that wait, and lets another replica lead. */
  async close(): Promise<void> {
    this.#unlisten?.();
    this.#closing.abort();
    this.#wake.abort();
    await Promise.all([this.#events.close(), this.#leader.close(), this.#running]);
  }

  #changed(names: readonly string[]): void {
    // Whoever becomes the leader looks at all.
    if (!this.#leader.isLeader || this.#closing.signal.aborted) {
      return;
    }
    for (const name of names) {
      this.#due.add(name);
      this.#tell(name);
    }
    this.#wake.abort();
  }

  async #run(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      try {
        await this.#next();
      } catch (error) {
        this.#options.logger.error({ error }, 'a fault in writing the status of scheduling policies');
        await this.#options.clock.sleep(IDLE_MS, this.#closing.signal);
      }
    }
  }

  async #next(): Promise<void> {
    const now = this.#options.clock.now();
    const name = this.#leader.isLeader && now >= this.#pace.pausedUntil ? this.#due.take(now) : undefined;
    if (name === undefined) {
      await this.#idle(now);
    } else if (await this.#look(name, now)) {
      await this.#options.clock.sleep(PAUSE_MS, this.#closing.signal);
    } else {
      this.#looks += 1;
      if (this.#looks % LOOKS === 0) {
        await nextTurn();
      }
    }
  }

  /** Until something is to be done. */
  async #idle(now: number): Promise<void> {
    const next = Math.max(this.#due.next ?? Number.POSITIVE_INFINITY, this.#pace.pausedUntil);
    const milliseconds = this.#leader.isLeader ? Math.min(Math.max(next - now, 1), IDLE_MS) : IDLE_MS;
    const waker = now >= this.#pace.pausedUntil ? this.#wake : this.#closing;
    await this.#options.clock.sleep(milliseconds, waker.signal);
    if (this.#wake.signal.aborted && !this.#closing.signal.aborted) {
      this.#wake = new AbortController();
    }
  }

  /** Whether something was written, or tried. */
  async #look(name: string, now: number): Promise<boolean> {
    const policy = this.#options.policies.policies.get(name);
    if (policy === undefined) {
      this.#history.forget(name);
      return false;
    }
    const { audit, notAsked } = this.#options.inForce();
    const conditions = conditionsOf(policy, audit.includes(AUDIT_ALL) || audit.includes(name), notAsked);
    if (isWritten(policy, conditions) || this.#history.isDone(policy)) {
      return false;
    }
    const allowedAt = this.#history.allowedAt(policy, conditions, now);
    if (allowedAt > now) {
      this.#due.addAt(name, allowedAt);
      return false;
    }
    const outcome = await this.#write(policy, conditions);
    if (outcome !== undefined) {
      this.#options.observer.statusWritten(outcome);
    }
    return true;
  }

  /** An event, once for each generation that is not valid, also while no status can be written. A status that says so was told of before. */
  #tell(name: string): void {
    const policy = this.#options.policies.policies.get(name);
    if (policy?.mistake === undefined) {
      this.#told.delete(name);
      return;
    }
    const { uid, generation, status, mistake } = policy;
    const which = `${uid} ${generation}`;
    if (this.#told.get(name) === which) {
      return;
    }
    this.#told.set(name, which);
    const written = writtenCondition(status, ACCEPTED);
    if (written?.status !== 'False' || written.observedGeneration !== generation) {
      this.#events.invalid(policy, mistake);
    }
  }

  /** `undefined` = the service ends. */
  async #write(policy: LivePolicy, conditions: readonly Condition[]): Promise<StatusOutcome | undefined> {
    try {
      await boundedCall(
        this.#options.client,
        statusPatch(policy, conditions, new Date()),
        this.#closing.signal,
      );
    } catch (error) {
      return this.#closing.signal.aborted ? undefined : this.#failed(policy, error);
    }
    this.#pace.succeeded();
    this.#problem = undefined;
    this.#history.succeeded(policy, conditions, this.#options.clock.now());
    return 'written';
  }

  #failed(policy: LivePolicy, error: unknown): StatusOutcome {
    const { name } = policy;
    const now = this.#options.clock.now();
    const { outcome, againAt, hint } = this.#pace.failed(error, now);
    this.#due.addAt(name, againAt);
    if (outcome === 'conflict') {
      this.#history.conflicted(policy, now);
    }
    const line = { policy: name, error: String(error), ...(hint !== undefined && { hint }) };
    // What lasts is logged once, until a write succeeds.
    if (hint === undefined || hint === this.#problem) {
      this.#options.logger.debug(line, 'the status of a scheduling policy was not written');
    } else {
      this.#problem = hint;
      this.#options.logger.warn(line, 'the status of a scheduling policy cannot be written');
    }
    return outcome;
  }
}
