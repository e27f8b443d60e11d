/** What was written for each policy, so that nothing is written twice, and a quarrel with another writer stays slow. */
import type { LivePolicy } from '../live/contract.ts';
import type { Condition } from './conditions.ts';

/** After the first repair, in milliseconds. Doubled with each further one. */
const FIRST_MS = 1000;
const LONGEST_MS = 300_000;
/** After that long without a repair the next one is the first again. */
const FORGOTTEN_MS = 2 * LONGEST_MS;

interface Written {
  readonly uid: string;
  readonly what: string;
  /** The state of the policy that it was decided about. */
  readonly about: string;
  readonly at: number;
  readonly repairs: number;
}

/** Writes that were too late, because the policy changes all the time. */
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

  /** Whether a write about this state has succeeded: the watch will tell of its result. */
  isDone({ name, uid, resourceVersion }: LivePolicy): boolean {
    const written = this.#written.get(name);
    return written?.uid === uid && written.about === resourceVersion;
  }

  /** When a policy may be written: new content at once, the same content later and later. */
  allowedAt(policy: LivePolicy, conditions: readonly Condition[], now: number): number {
    const conflicts = this.#conflicts.get(policy.name);
    const afterConflict =
      conflicts === undefined
        ? now
        : conflicts.at + Math.min(CONFLICT_MS * 2 ** conflicts.count, LONGEST_CONFLICT_MS);
    const written = this.#written.get(policy.name);
    return written === undefined || !isRepair(written, policy, conditions) || isForgotten(written, now)
      ? afterConflict
      : Math.max(afterConflict, written.at + Math.min(FIRST_MS * 2 ** written.repairs, LONGEST_MS));
  }

  conflicted({ name }: LivePolicy, now: number): void {
    this.#conflicts.set(name, { count: (this.#conflicts.get(name)?.count ?? 0) + 1, at: now });
  }

  succeeded(policy: LivePolicy, conditions: readonly Condition[], now: number): void {
    this.#conflicts.delete(policy.name);
    const before = this.#written.get(policy.name);
    const isAgain = before !== undefined && isRepair(before, policy, conditions) && !isForgotten(before, now);
    this.#written.set(policy.name, {
      uid: policy.uid,
      what: contentOf(conditions),
      about: policy.resourceVersion,
      at: now,
      repairs: isAgain ? before.repairs + 1 : 0,
    });
  }

  forget(name: string): void {
    this.#written.delete(name);
    this.#conflicts.delete(name);
  }
}

function isRepair({ uid, what }: Written, policy: LivePolicy, conditions: readonly Condition[]): boolean {
  return uid === policy.uid && what === contentOf(conditions);
}

function isForgotten({ at }: Written, now: number): boolean {
  return now - at > FORGOTTEN_MS;
}

function contentOf(conditions: readonly Condition[]): string {
  return JSON.stringify(conditions);
}
