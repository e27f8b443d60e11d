/**
 * Concurrent transactions are committed together: the parts of a group run one after the other in one
 * transaction, and one commit makes all of them durable. A commit waits for the disk, which takes longer than
 * several parts.
 *
 * Each part has a savepoint. A refused or failed part is rolled back alone; the next part sees the writes of
 * the parts before it. No caller gets a result before the commit. If the commit fails, all callers fail,
 * including refused ones: they were judged by rows that are not recorded.
 *
 * Cost: a part waits for the other parts of its group, up to the bounds. Parts only query the database, so
 * none waits for anything else. A slow database may hold a part longer than its caller waits: then the caller
 * is refused at once, the transaction is aborted, and the others of the group start again.
 */
import type { Wait } from '../../base/deadline.ts';
import { errorText, LedgerUnavailableError } from '../../base/errors.ts';
import { CommitInDoubtError, type Memory, Undone, type Work } from './database.ts';
import {
  type GroupBounds,
  type Outcome,
  type Part,
  type PartRules,
  runAlone,
  runTogether,
} from './group-parts.ts';

/** PostgreSQL keeps at most 64 subtransactions of a transaction in memory. */
const BOUNDS: GroupBounds = { members: 64, milliseconds: 10, characters: 1024 * 1024 };

/** Begins the work of the next group. */
export type GroupWork = () => Work<undefined | Undone<undefined>>;

interface GroupParts {
  /**
   * Runs the work in one transaction, and resolves when it is durable. Rejects if nothing is recorded, or
   * with a `CommitInDoubtError`. May restart the work after a rollback; if it waits in between, it calls
   * `undone` first.
   */
  readonly commit: (work: GroupWork, wait: Wait, undone: () => void) => Promise<unknown>;
  /**
   * Whether one of the parts has failed alone, and which one is unknown: nothing is recorded, and each part runs in a
   * transaction of its own. Default: that is always known.
   */
  readonly isOfOne?: (thrown: unknown) => boolean;
  readonly ownError: PartRules<Part>['ownError'];
  /** Default: false. */
  readonly asksAhead?: PartRules<Part>['asksAhead'];
  /** The memory of a group; `undefined` = each part queries for itself. */
  readonly memory?: (() => Memory | undefined) | undefined;
  readonly bounds?: GroupBounds | undefined;
}

/** `hasBegun`: its part runs or has run in the current group. */
interface Member extends Part {
  readonly wait: Wait;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
  stopListening: (() => void) | undefined;
}

class NoCallersError extends LedgerUnavailableError {}
const NO_CALLERS = 'no caller waits for the transaction';

/** For a part that has begun but not ended, which is impossible. */
const NO_OUTCOME: Outcome = { kind: 'failed', error: new LedgerUnavailableError('the part has not ended') };

export class CommitGroups {
  readonly #parts: GroupParts;
  readonly #bounds: GroupBounds;
  readonly #rules: PartRules<Member>;
  /** In the order of arrival, until they are settled. */
  readonly #waiting = new Set<Member>();
  #isBusy = false;
  /** How many of the next members run in a transaction of their own. */
  #apart = 0;
  #most: number;
  /** The phase of the current group: its parts may begin, run, or have run. */
  #phase: 'begins' | 'runs' | 'commits' = 'begins';
  /** The member whose wait is being checked by its own part. */
  #judged: Member | undefined;
  /** Aborts the transaction; `undefined` = the group is not waiting for the database. */
  #givenUp: AbortController | undefined;

  constructor(parts: GroupParts) {
    this.#parts = parts;
    this.#bounds = parts.bounds ?? BOUNDS;
    this.#most = this.#bounds.members;
    const { ownError, asksAhead = false } = parts;
    const throwIfOver = (member: Member) => this.#throwIfOver(member);
    this.#rules = { bounds: this.#bounds, ownError, asksAhead, throwIfOver };
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  /** Runs the part in the next group with room. Settles when the group or the wait ends. */
  join<Result>(work: () => Work<Result | Undone<Result>>, wait: Wait): Promise<Result> {
    return new Promise<unknown>((resolve, reject) => {
      const member: Member = {
        work,
        wait,
        resolve,
        reject,
        hasBegun: false,
        outcome: undefined,
        stopListening: undefined,
      };
      this.#waiting.add(member);
      if (this.#givenUp !== undefined) {
        this.#listen(member);
      }
      if (!this.#isBusy) {
        this.#isBusy = true;
        // Requests that arrive together join the same group.
        setImmediate(() => void this.#commitAll());
      }
    }) as Promise<Result>;
  }

  async #commitAll(): Promise<void> {
    while (this.#waiting.size > 0) {
      await this.#commitGroup();
      // Lets responses go out and requests come in before the next group.
      await new Promise((resolve) => setImmediate(resolve));
    }
    this.#isBusy = false;
  }

  async #commitGroup(): Promise<void> {
    this.#most = this.#apart > 0 ? 1 : this.#bounds.members;
    this.#apart = Math.max(0, this.#apart - 1);
    try {
      const work = () => this.#run(this.#nextMembers());
      await this.#parts.commit(work, this.#wait(), () => this.#beginAgain());
      for (const member of this.#begun()) {
        this.#settle(member, member.outcome ?? NO_OUTCOME);
      }
    } catch (thrown) {
      this.#fail(thrown);
    }
    this.#givenUp = undefined;
    this.#phase = 'begins';
  }

  #fail(thrown: unknown): void {
    if (thrown instanceof NoCallersError || this.#givenUp?.signal.aborted) {
      this.#beginAgain();
      return;
    }
    const begun = this.#begun();
    const failed = begun.length > 0 ? begun : this.#nextMembers();
    if (failed.length > 1 && this.#parts.isOfOne?.(thrown)) {
      this.#apart = failed.length;
      this.#beginAgain();
      return;
    }
    for (const member of failed) {
      this.#settle(member, { kind: 'failed', error: errorFor(member, thrown) });
    }
  }

  /**
   * Nothing was recorded for the remaining members: they come first in the next transaction, and may leave
   * until then.
   */
  #beginAgain(): void {
    this.#phase = 'begins';
    for (const member of this.#begun()) {
      member.hasBegun = false;
      member.outcome = undefined;
    }
  }

  *#run(group: readonly Member[]): Work<undefined | Undone<undefined>> {
    this.#phase = 'runs';
    for (const member of group) {
      member.hasBegun = false;
      member.outcome = undefined;
    }
    const [first, ...others] = group;
    if (first !== undefined && others.length === 0) {
      yield* runAlone(first, this.#rules);
    } else {
      yield* runTogether(group, this.#rules, this.#parts.memory?.());
    }
    // Members that left were refused: nothing may be recorded.
    this.#givenUp?.signal.throwIfAborted();
    this.#phase = 'commits';
    return group.some(({ outcome }) => outcome?.kind === 'written') ? undefined : new Undone(undefined);
  }

  /** Without leaving the group: only this part is rolled back. */
  #throwIfOver(member: Member): void {
    this.#judged = member;
    try {
      member.wait.throwIfOver();
    } finally {
      this.#judged = undefined;
    }
  }

  #nextMembers(): Member[] {
    const members: Member[] = [];
    for (const member of this.#waiting) {
      if (members.length === this.#most) {
        break;
      }
      members.push(member);
    }
    return members;
  }

  #begun(): Member[] {
    return [...this.#waiting].filter(({ hasBegun }) => hasBegun);
  }

  #settle(member: Member, outcome: Outcome): void {
    member.stopListening?.();
    this.#waiting.delete(member);
    if (outcome.kind === 'failed') {
      member.reject(outcome.error);
    } else {
      member.resolve(outcome.result);
    }
  }

  /** Ends when no member needs the result. Members whose wait ends are refused in the meantime. */
  #wait(): Wait {
    const groups = this;
    return {
      get signal() {
        groups.#givenUp ??= groups.#listenToAll();
        return groups.#givenUp.signal;
      },
      throwIfOver() {
        groups.#givenUp?.signal.throwIfAborted();
        // Parts check their own waits.
        if (groups.#phase !== 'runs') {
          groups.#refuseLate();
        }
      },
    };
  }

  #listenToAll(): AbortController {
    const givenUp = new AbortController();
    this.#givenUp = givenUp;
    for (const member of this.#waiting) {
      this.#listen(member);
    }
    return givenUp;
  }

  #listen(member: Member): void {
    const { signal } = member.wait;
    if (signal === undefined || member.stopListening !== undefined) {
      return;
    }
    const leave = () => {
      if (member !== this.#judged) {
        this.#leave(member, lateness(member.wait) ?? signal.reason);
      }
    };
    if (signal.aborted) {
      leave();
      return;
    }
    signal.addEventListener('abort', leave, { once: true });
    member.stopListening = () => signal.removeEventListener('abort', leave);
  }

  #refuseLate(): void {
    for (const member of this.#waiting) {
      const error = member.hasBegun ? undefined : lateness(member.wait);
      if (error !== undefined) {
        this.#leave(member, error);
      }
    }
    if (this.#waiting.size === 0) {
      throw new NoCallersError(NO_CALLERS);
    }
  }

  #leave(member: Member, error: unknown): void {
    const { hasBegun, outcome } = member;
    const isInDoubt = hasBegun && this.#phase === 'commits' && outcome?.kind === 'written';
    this.#settle(member, {
      kind: 'failed',
      error: isInDoubt ? new CommitInDoubtError(errorText(error), outcome.result, { cause: error }) : error,
    });
    const isOfNoUse = hasBegun && (this.#phase === 'runs' || this.#begun().length === 0);
    if (isOfNoUse || this.#waiting.size === 0) {
      this.#givenUp?.abort(new NoCallersError(NO_CALLERS));
    }
  }
}

/** Why the wait is over; `undefined` = it is not over. */
function lateness(wait: Wait): unknown {
  try {
    wait.throwIfOver();
    return undefined;
  } catch (thrown) {
    return thrown ?? new LedgerUnavailableError('the wait is over');
  }
}

/** The error for a caller if the whole transaction failed. */
function errorFor({ outcome }: Member, thrown: unknown): unknown {
  if (outcome?.kind === 'failed') {
    return outcome.error;
  }
  if (!(thrown instanceof CommitInDoubtError)) {
    return thrown;
  }
  const { message, cause } = thrown;
  return outcome?.kind === 'written'
    ? new CommitInDoubtError(message, outcome.result, { cause })
    : new LedgerUnavailableError(message, { cause });
}
