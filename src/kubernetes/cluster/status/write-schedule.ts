/** The schedule of status writes: what is due, what was written before, and retries after failures. */
import { ApiError } from '../api/contract.ts';
import type { LivePolicy } from '../live/contract.ts';
import type { Condition, StatusOutcome } from './conditions.ts';

/** After a fault of the API server, in milliseconds; doubled with each further one. */
const FIRST_MS = 1000;
const LONGEST_MS = 30_000;
/** If only an administrator can fix it, in milliseconds. */
const MENDED_MS = 60_000;
/** One policy may be deleted during its write. With this many, the definition has no status. */
const MANY_GONE = 3;

interface Failure {
  readonly outcome: StatusOutcome;
  /** When this policy may be retried. */
  readonly againAt: number;
  /** For the operator; `undefined` = nothing. */
  readonly hint: string | undefined;
}

export class WriteSchedule {
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #faults = 0;
  #gone = 0;

  /** No writes before this time, in the unit of `now`. */
  get pausedUntil(): number {
    return this.#pausedUntil;
  }

  succeeded(): void {
    this.#faults = 0;
    this.#gone = 0;
  }

  failed(error: unknown, now: number): Failure {
    const againAt = now + MENDED_MS;
    switch (error instanceof ApiError ? error.status : undefined) {
      case 409:
        // The watch sends the state that we did not have. This is only for a watch that does not.
        return { outcome: 'conflict', againAt, hint: undefined };
      case 404:
        this.#gone += 1;
        if (this.#gone < MANY_GONE) {
          return { outcome: 'gone', againAt, hint: undefined };
        }
        this.#pausedUntil = againAt;
        return { outcome: 'gone', againAt, hint: 'apply the CustomResourceDefinition of this version' };
      case 403:
        this.#pausedUntil = againAt;
        return { outcome: 'refused', againAt, hint: 'grant patch on schedulingpolicies/status' };
      case 400:
      case 415:
      case 422:
        return { outcome: 'refused', againAt, hint: 'the API server finds it invalid' };
      default: {
        const backoff = Math.min(FIRST_MS * 2 ** this.#faults, LONGEST_MS);
        this.#faults += 1;
        this.#pausedUntil = now + backoff * (1 + Math.random() / 5);
        return { outcome: 'failed', againAt: this.#pausedUntil, hint: undefined };
      }
    }
  }
}

/** Names with work, now or later. In order, so that a busy one does not block the others. */
export class DueNames {
  readonly #at = new Map<string, number>();

  /** As soon as possible, after those that wait already. */
  add(name: string): void {
    const at = this.#at.get(name);
    if (at === undefined || at > 0) {
      this.#at.delete(name);
      this.#at.set(name, 0);
    }
  }

  /** Not before a time, unless it is due earlier for another reason. */
  addAt(name: string, at: number): void {
    this.#at.set(name, Math.min(at, this.#at.get(name) ?? at));
  }

  /** The first that is due, which is removed. */
  take(now: number): string | undefined {
    for (const [name, at] of this.#at) {
      if (at <= now) {
        this.#at.delete(name);
        return name;
      }
    }
    return undefined;
  }

  /** When the next one is due; `undefined` = none. */
  get next(): number | undefined {
    let next: number | undefined;
    for (const at of this.#at.values()) {
      next = next === undefined || at < next ? at : next;
    }
    return next;
  }
}

/** After the first repair, in milliseconds. Doubled with each further one. */
const FIRST_REWRITE_MS = 1000;
const LONGEST_REWRITE_MS = 300_000;
/** After this long without a repair, the next one counts as the first. */
const FORGOTTEN_MS = 2 * LONGEST_REWRITE_MS;

interface Written {
  readonly uid: string;
  readonly what: string;
  /** The state of the policy that the write was about. */
  readonly about: string;
  readonly at: number;
  readonly repairs: number;
}

/** Writes that came too late, because the policy keeps changing. */
interface Conflicts {
  readonly count: number;
  readonly at: number;
}
/** After the first conflict, in milliseconds. Doubled with each further one. */
const CONFLICT_MS = 100;
const LONGEST_CONFLICT_MS = 10_000;

export class WriteHistory {
  readonly #written = new Map<string, Written>();
  readonly #conflicts = new Map<string, Conflicts>();

  /** Whether a write about this state has succeeded: the watch will send its result. */
  isDone({ name, uid, resourceVersion }: LivePolicy): boolean {
    const written = this.#written.get(name);
    return written?.uid === uid && written.about === resourceVersion;
  }

  /** When a policy may be written: new content at once, the same content with growing pauses. */
  allowedAt(policy: LivePolicy, conditions: readonly Condition[], now: number): number {
    const conflicts = this.#conflicts.get(policy.name);
    const afterConflict =
      conflicts === undefined
        ? now
        : conflicts.at + Math.min(CONFLICT_MS * 2 ** conflicts.count, LONGEST_CONFLICT_MS);
    const before = this.#sameBefore(policy, conditions, now);
    return before === undefined
      ? afterConflict
      : Math.max(
          afterConflict,
          before.at + Math.min(FIRST_REWRITE_MS * 2 ** before.repairs, LONGEST_REWRITE_MS),
        );
  }

  conflicted({ name }: LivePolicy, now: number): void {
    this.#conflicts.set(name, { count: (this.#conflicts.get(name)?.count ?? 0) + 1, at: now });
  }

  succeeded(policy: LivePolicy, conditions: readonly Condition[], now: number): void {
    this.#conflicts.delete(policy.name);
    const before = this.#sameBefore(policy, conditions, now);
    this.#written.set(policy.name, {
      uid: policy.uid,
      what: JSON.stringify(conditions),
      about: policy.resourceVersion,
      at: now,
      repairs: before === undefined ? 0 : before.repairs + 1,
    });
  }

  forget(name: string): void {
    this.#written.delete(name);
    this.#conflicts.delete(name);
  }

  /** The last write, if writing this content is a repair of it. */
  #sameBefore({ name, uid }: LivePolicy, conditions: readonly Condition[], now: number): Written | undefined {
    const written = this.#written.get(name);
    return written?.uid === uid &&
      written.what === JSON.stringify(conditions) &&
      now - written.at <= FORGOTTEN_MS
      ? written
      : undefined;
  }
}
