/** Permissions to use policies, by SubjectAccessReviews that are repeated every few seconds. */
import { setMaxListeners } from 'node:events';
import { LRUCache } from 'lru-cache';
import { inTime, type Wait, waitFor } from '../../../base/deadline.ts';
import { type Account, SourceUnavailableError } from '../../policies/access.ts';
import { isSameList } from '../../policies/merge.ts';
import type { ApiClient } from '../api/contract.ts';
import { elapsed } from '../api/timing.ts';
import { AbandonedReviewError, AccessReviews, ReviewLine, type ReviewObserver } from './access-review.ts';
import type { UsePermissions } from './contract.ts';
import {
  answerFor,
  isFresh,
  isJustSent,
  LIFETIME_MILLISECONDS,
  type PermissionAnswers,
  type ReviewQuestion,
  type ReviewTools,
  reviewPolicies,
} from './permission-answers.ts';
import type { UseHint } from './rbac-hint.ts';

/** After a failure an account is refused at once for this long, so that not every pod calls a server in trouble. */
const PAUSE_MILLISECONDS = 1000;
const ACCOUNTS = 10_000;
const NAMES = 500_000;

export interface ReviewedPermissionsOptions {
  readonly client: ApiClient;
  readonly observer?: ReviewObserver | undefined;
  /** See `[kubernetes] rights`. */
  readonly rights: 'auto' | 'every';
  /** Default: none; every policy is reviewed. */
  readonly hint?: UseHint | undefined;
  /** Of accounts with cached answers. Default: 10,000. */
  readonly accounts?: number;
  /** Names in all cached answers. Default: 500,000. */
  readonly names?: number;
  /** A monotonic clock in milliseconds. Default: `elapsed`. */
  readonly now?: () => number;
}

interface Round {
  readonly names: readonly string[];
  readonly controller: AbortController;
  readonly answer: Promise<PermissionAnswers>;
  /** A round that nobody waits for any more is given up, unless nobody was to wait for it. */
  readonly isAhead: boolean;
  waiting: number;
}

interface AccountState {
  readonly key: string;
  readonly account: Account;
  answers: PermissionAnswers | undefined;
  round: Round | undefined;
  failure: { readonly until: number; readonly error: SourceUnavailableError } | undefined;
}

export class ReviewedPermissions implements UsePermissions {
  readonly #server: string;
  readonly #observer: ReviewObserver | undefined;
  readonly #tools: ReviewTools;
  readonly #accounts: LRUCache<string, AccountState>;
  readonly #rounds = new Set<Round>();
  #isClosed = false;

  constructor({ client, rights, hint, accounts, names, now, observer }: ReviewedPermissionsOptions) {
    this.#server = client.server;
    this.#observer = observer;
    const reviews = new AccessReviews(client, observer);
    this.#tools = { reviews, line: new ReviewLine(), rights, hint, now: now ?? elapsed };
    this.#accounts = new LRUCache({ max: accounts ?? ACCOUNTS, maxSize: names ?? NAMES });
  }

  /** Pass the same array while the names do not change: it is compared by identity first. */
  usable(
    account: Account,
    names: readonly string[],
    wait: Wait = waitFor(undefined),
  ): readonly string[] | Promise<readonly string[]> {
    const state = this.#stateOf(account);
    const usable = this.#known(state, names);
    if (usable === undefined) {
      return this.#ask(state, names, wait);
    }
    this.#observer?.answered('cached');
    return usable;
  }

  /** Aborts all reviews. Waiting callers are refused. */
  close(): void {
    this.#isClosed = true;
    for (const { controller } of this.#rounds) {
      controller.abort(this.#closed());
    }
  }

  #stateOf(account: Account): AccountState {
    const key = JSON.stringify([account.user, account.groups, account.namespace]);
    const known = this.#accounts.get(key);
    if (known !== undefined) {
      return known;
    }
    const state: AccountState = { key, account, answers: undefined, round: undefined, failure: undefined };
    this.#keep(state);
    return state;
  }

  #keep(state: AccountState): void {
    const { asked = [], usable = [] } = state.answers ?? {};
    this.#accounts.set(state.key, state, { size: 1 + (usable === asked ? 0 : usable.length) });
  }

  #known(state: AccountState, names: readonly string[]): readonly string[] | undefined {
    const { account, answers } = state;
    const now = this.#tools.now();
    if (answers === undefined || !isFresh(answers, account, this.#tools.hint, now)) {
      return undefined;
    }
    if (answers.asked !== names) {
      const other = answerFor(answers, names);
      if (other === undefined) {
        return undefined;
      }
      state.answers = other;
      this.#keep(state);
      return other.usable;
    }
    if (now >= answers.refreshAt && state.round === undefined && !this.#isPaused(state, now)) {
      this.#start(state, names, { isAhead: true });
    }
    return answers.usable;
  }

  #isPaused({ failure }: AccountState, now: number): boolean {
    return this.#isClosed || (failure !== undefined && now < failure.until);
  }

  async #ask(state: AccountState, names: readonly string[], wait: Wait): Promise<readonly string[]> {
    try {
      const usable = await this.#asked(state, names, wait);
      this.#observer?.answered('asked');
      return usable;
    } catch (error) {
      this.#observer?.answered('failed');
      if (error instanceof SourceUnavailableError) {
        throw error;
      }
      throw this.#unavailable(state.account, error);
    }
  }

  async #asked(state: AccountState, names: readonly string[], wait: Wait): Promise<readonly string[]> {
    for (;;) {
      if (this.#isClosed) {
        throw this.#closed();
      }
      if (state.failure !== undefined && this.#tools.now() < state.failure.until) {
        throw state.failure.error;
      }
      const round = state.round ?? this.#start(state, names, { isAhead: false });
      const answers = await this.#wait(state, round, wait);
      // The names of another round may be others, since a policy has come or gone meanwhile.
      const usable = isSameList(round.names, names) ? answers.usable : this.#known(state, names);
      if (usable !== undefined) {
        return usable;
      }
    }
  }

  async #wait(state: AccountState, round: Round, wait: Wait): Promise<PermissionAnswers> {
    round.waiting += 1;
    try {
      return await inTime(round.answer, wait);
    } finally {
      round.waiting -= 1;
      if (round.waiting === 0 && !round.isAhead) {
        if (state.round === round) {
          state.round = undefined;
        }
        round.controller.abort(new AbandonedReviewError());
      }
    }
  }

  #start(state: AccountState, names: readonly string[], { isAhead }: Pick<Round, 'isAhead'>): Round {
    const { account, answers } = state;
    const { hint, now } = this.#tools;
    const startedAt = now();
    const known =
      !isAhead &&
      answers !== undefined &&
      isFresh(answers, account, hint, startedAt) &&
      isJustSent(answers, startedAt)
        ? answers
        : undefined;
    const controller = new AbortController();
    // Every running review adds a listener, more than Node.js warns of.
    setMaxListeners(0, controller.signal);
    // A later answer would be too old.
    const timer = setTimeout(
      () => controller.abort(this.#unavailable(account)),
      (known?.sentAt ?? startedAt) + LIFETIME_MILLISECONDS - startedAt,
    );
    const answer = this.#run(state, { account, names, known, signal: controller.signal }).finally(() => {
      clearTimeout(timer);
      this.#rounds.delete(round);
      if (state.round === round) {
        state.round = undefined;
      }
      // The other reviews of a failed round.
      controller.abort(new AbandonedReviewError());
    });
    answer.catch(() => undefined);
    const round: Round = { names, controller, answer, isAhead, waiting: 0 };
    this.#rounds.add(round);
    state.round = round;
    return round;
  }

  async #run(state: AccountState, question: ReviewQuestion): Promise<PermissionAnswers> {
    const { account, names } = question;
    try {
      const found = await reviewPolicies(this.#tools, question);
      if (this.#tools.now() - found.sentAt >= LIFETIME_MILLISECONDS) {
        throw this.#unavailable(account);
      }
      const before = state.answers?.usable;
      const isAsBefore = before !== undefined && found.usable !== names && isSameList(found.usable, before);
      state.answers = isAsBefore ? { ...found, usable: before } : found;
      state.failure = undefined;
      this.#keep(state);
      return state.answers;
    } catch (cause) {
      const error = cause instanceof SourceUnavailableError ? cause : this.#unavailable(account, cause);
      if (!(cause instanceof AbandonedReviewError)) {
        state.failure = { until: this.#tools.now() + PAUSE_MILLISECONDS, error };
      }
      throw error;
    }
  }

  #unavailable({ user }: Account, cause?: unknown): SourceUnavailableError {
    return new SourceUnavailableError(
      `${this.#server} did not say in time which scheduling policies ${user} may use`,
      { cause },
    );
  }

  #closed(): SourceUnavailableError {
    return new SourceUnavailableError(`the service ends: ${this.#server} is not asked any more`);
  }
}
