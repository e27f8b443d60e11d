/**
 * Limits wrong tokens and passwords, and concurrent logins. Valid tokens are not limited here: they pass even
 * if others guess from the same address.
 */
import { createHash } from 'node:crypto';
import createError, { type HttpError } from 'http-errors';
import type { Context } from 'koa';
import { LRUCache } from 'lru-cache';
import { addressBlock } from '../../base/addresses.ts';
import { withinDeadline } from '../../base/deadline.ts';
import { FairLimiter } from '../../base/fair-limiter.ts';
import { stateOf } from '../request-state.ts';
import type { Guess, GuessCount } from './sessions/session-table.ts';
import type { Sessions } from './sessions/sessions.ts';

/** The message of a 429. */
export const TOO_MANY =
  'there were ten wrong tokens from this address within a minute; please try again later';

const WINDOW_MS = 60_000;
/** Maximum number of addresses or accounts that are remembered; beyond it the oldest is dropped. */
const MAX_REMEMBERED = 10_000;
/** For tokens from one address, and for passwords of one account. */
const MAX_WRONG = 10;
/** For passwords from one address, across accounts. Many users may share the address. */
const MAX_WRONG_FROM_ADDRESS = 30;

class Wrong {
  /** Time of the first failure and number of failures; without `get`, the oldest is dropped first. */
  readonly #wrong = new LRUCache<string, { readonly since: number; count: number }>({ max: MAX_REMEMBERED });

  /** Seconds until the count restarts, if there were `max` failures; otherwise 0. */
  wait(name: string, max = MAX_WRONG): number {
    const wrong = this.#wrong.peek(name);
    if (wrong === undefined) {
      return 0;
    }
    const left = wrong.since + WINDOW_MS - Date.now();
    // If a clock was set back, nobody must be locked out for long.
    if (left <= 0 || left > WINDOW_MS) {
      this.#wrong.delete(name);
      return 0;
    }
    return wrong.count < max ? 0 : Math.ceil(left / 1000);
  }

  count(name: string): void {
    const wrong = this.#wrong.peek(name);
    if (wrong === undefined) {
      this.#wrong.set(name, { since: Date.now(), count: 1 });
    } else {
      wrong.count += 1;
    }
  }

  forgive(name: string): void {
    const wrong = this.#wrong.peek(name);
    if (wrong !== undefined && wrong.count > 0) {
      wrong.count -= 1;
    }
  }
}

/** Wrong tokens, by address. Not used for valid tokens. */
export class WrongTokens {
  readonly #wrong = new Wrong();

  /** Counts one. Returns seconds to wait if there were too many from the address before; otherwise 0. */
  count(address: string | undefined): number {
    const name = addressBlock(address ?? '');
    const seconds = this.#wrong.wait(name);
    if (seconds === 0) {
      this.#wrong.count(name);
    }
    return seconds;
  }

  /** Counts one. Returns the error to throw: 401 with the message, or 429 if there were too many. */
  error(
    address: string | undefined,
    expected: string,
    headers: Readonly<Record<string, string>> = {},
  ): HttpError {
    const seconds = this.count(address);
    return seconds > 0
      ? createError(429, TOO_MANY, { headers: { 'Retry-After': String(seconds) } })
      : createError(401, expected, { headers });
  }
}

/** Keystone may compare names like its database: MySQL ignores case, accents and trailing spaces. */
function digest(...texts: string[]): string {
  const compared = JSON.stringify(texts)
    .normalize('NFKD')
    .replaceAll(/[\p{M}\p{Z}\p{Cf}]/gu, '')
    .toLowerCase();
  return createHash('sha256').update(compared).digest('base64');
}

/** Concurrent and queued logins at Keystone: each costs it the time of a password hash. */
const MAX_UNDER_WAY = 8;
const MAX_WAITING = 64;

/** Too many failures: seconds to wait. */
interface Delayed {
  readonly seconds: number;
}

/**
 * Logins with a password; failures are counted across replicas that share a ledger. Where an account has
 * logged in before, it has its own count, so that strangers who use its name elsewhere, or other names there,
 * cannot lock it out. Elsewhere failures are counted by account and by address.
 */
export class LoginAttempts {
  readonly #wrong = { account: new Wrong(), address: new Wrong(), 'at-known': new Wrong() };
  /** Where accounts have logged in before. */
  readonly #known = new LRUCache<string, true>({ max: MAX_REMEMBERED });
  readonly #line = new FairLimiter(MAX_UNDER_WAY, MAX_WAITING);
  readonly #sessions: Pick<Sessions, 'shared'>;

  constructor(sessions: Pick<Sessions, 'shared'>) {
    this.#sessions = sessions;
  }

  /**
   * A login with a password. It is counted before it begins, which limits concurrent guesses, and reverted if
   * it was not wrong.
   *
   * @throws OverloadedError
   */
  async byPassword<Outcome extends { readonly isWrong?: boolean }>(
    ctx: Context,
    account: string,
    login: () => Promise<Outcome>,
  ): Promise<Outcome | Delayed> {
    const guess = guessOf(account, ctx.ip);
    const counts = this.#known.has(guess.both) ? guess.atKnown : guess.elsewhere;
    // Guesses from one address are refused without a query.
    const atAddress = this.#wait(counts.filter(({ kind }) => kind === 'address'));
    if (atAddress > 0) {
      return { seconds: atAddress };
    }
    const shared = await this.#sessions.shared(ctx, (table, wait) =>
      table.countGuess(guess, WINDOW_MS, wait),
    );
    const seconds = shared?.seconds ?? this.#wait(counts);
    if (seconds > 0) {
      return { seconds };
    }
    for (const { kind, name } of counts) {
      this.#wrong[kind].count(name);
    }
    let outcome: Outcome | undefined;
    try {
      outcome = await this.inLine(ctx, login);
      return outcome;
    } finally {
      if (outcome?.isWrong !== true) {
        const known = outcome !== undefined && 'proof' in outcome ? guess.both : undefined;
        for (const { kind, name } of counts) {
          this.#wrong[kind].forgive(name);
        }
        if (known !== undefined) {
          this.#known.set(known, true);
        }
        if (shared !== undefined) {
          await this.#sessions.shared(ctx, (table, wait) => table.forgive(shared.counts, known, wait));
        }
      }
    }
  }

  /** Within the deadline of the service, including the time in the queue. @throws OverloadedError */
  inLine<Result>(ctx: Context, work: () => Promise<Result>): Promise<Result> {
    return withinDeadline(stateOf(ctx).generation.options.deadline, (deadline) =>
      this.#line.run(deadline, ctx.ip, work),
    );
  }

  #wait(counts: readonly GuessCount[]): number {
    return Math.max(0, ...counts.map(({ kind, name, max }) => this.#wrong[kind].wait(name, max)));
  }
}

function guessOf(account: string, address: string): Guess {
  const block = addressBlock(address);
  const both = digest(account, block);
  return {
    both,
    atKnown: [{ kind: 'at-known', name: both, max: MAX_WRONG }],
    elsewhere: [
      { kind: 'account', name: digest(account), max: MAX_WRONG },
      { kind: 'address', name: digest(block), max: MAX_WRONG_FROM_ADDRESS },
    ],
  };
}
