/** Sends events in the background: bounded, slowly, and only once. */
import type { Logger } from '../../../base/logger.ts';
import { type ApiClient, ApiError } from '../api/contract.ts';
import type { StatusObserver } from './contract.ts';
import { type EventDraft, eventObject, MINUTE_MS } from './event-object.ts';
import { boundedCall, CLOCK, type Clock } from './timing.ts';

/** Waiting events. Each is at most a few kB. */
const MOST_WAITING = 256;
/** So that one namespace does not take the place of all others. */
const MOST_OF_ONE_NAMESPACE = 64;
/** Between two events, in milliseconds. */
const PAUSE_MS = 100;
/** Objects of which it is remembered when the last event was written. */
const MOST_REMEMBERED = 4096;
/** Between two log lines about failures, in milliseconds. */
const QUIET_MS = 600_000;

export interface EventSenderOptions {
  readonly client: ApiClient;
  readonly logger: Logger;
  readonly observer: StatusObserver;
  readonly clock?: Clock;
}

export class EventSender {
  readonly #client: ApiClient;
  readonly #logger: Logger;
  readonly #observer: StatusObserver;
  readonly #clock: Clock;
  readonly #closing = new AbortController();
  #waiting: EventDraft[] = [];
  readonly #ofNamespace = new Map<string, number>();
  /** By object and reason, oldest first: when its last event was accepted here. */
  readonly #last = new Map<string, number>();
  #loggedAt = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;

  constructor({ client, logger, observer, clock = CLOCK }: EventSenderOptions) {
    this.#client = client;
    this.#logger = logger;
    this.#observer = observer;
    this.#clock = clock;
  }

  /** Returns at once, and never throws. At most one event a minute for an object and a reason. `draft` is made only if it is sent. */
  send(uid: string, namespace: string, reason: string, draft: () => EventDraft): void {
    const now = this.#clock.now();
    const key = `${uid} ${reason}`;
    const last = this.#last.get(key);
    if (this.#closing.signal.aborted || (last !== undefined && now - last < MINUTE_MS)) {
      return;
    }
    const ofNamespace = this.#ofNamespace.get(namespace) ?? 0;
    if (this.#waiting.length >= MOST_WAITING || ofNamespace >= MOST_OF_ONE_NAMESPACE) {
      this.#observer.event('dropped');
      return;
    }
    this.#remember(key, now);
    this.#ofNamespace.set(namespace, ofNamespace + 1);
    this.#waiting.push(draft());
    this.#running ??= this.#run();
  }

  /** What waits is dropped. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
    for (const _ of this.#waiting.splice(0)) {
      this.#observer.event('dropped');
    }
  }

  #remember(key: string, now: number): void {
    this.#last.delete(key);
    this.#last.set(key, now);
    const oldest = this.#last.keys().next();
    if (this.#last.size > MOST_REMEMBERED && !oldest.done) {
      this.#last.delete(oldest.value);
    }
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    for (let draft = this.#next(); draft !== undefined && !signal.aborted; draft = this.#next()) {
      await this.#write(draft);
      await this.#clock.sleep(PAUSE_MS, signal);
    }
    this.#running = undefined;
  }

  #next(): EventDraft | undefined {
    const draft = this.#closing.signal.aborted ? undefined : this.#waiting.shift();
    if (draft !== undefined) {
      const left = (this.#ofNamespace.get(draft.namespace) ?? 1) - 1;
      if (left > 0) {
        this.#ofNamespace.set(draft.namespace, left);
      } else {
        this.#ofNamespace.delete(draft.namespace);
      }
    }
    return draft;
  }

  async #write(draft: EventDraft): Promise<void> {
    const path = `/api/v1/namespaces/${encodeURIComponent(draft.namespace)}/events`;
    try {
      const body = eventObject(draft);
      await boundedCall(this.#client, { method: 'POST', path, body }, this.#closing.signal);
      this.#observer.event('sent');
    } catch (error) {
      if (error instanceof ApiError && error.status === 409) {
        this.#observer.event('repeated');
      } else {
        this.#observer.event('failed');
        this.#logFailure(error);
      }
    }
  }

  #logFailure(error: unknown): void {
    if (this.#closing.signal.aborted || this.#clock.now() - this.#loggedAt < QUIET_MS) {
      return;
    }
    this.#loggedAt = this.#clock.now();
    this.#logger.warn({ error: String(error) }, 'events about refused pods and invalid policies are missing');
  }
}
