/** Logins that take time: few at once, and not too many wrong passwords. */
import type { Context } from 'koa';
import { ConcurrencyLimiter } from '../../base/concurrency-limiter.ts';
import { withinDeadline } from '../../base/deadline.ts';
import { stateOf } from '../request-state.ts';
import { PasswordLimit } from './wrong-tokens.ts';

/** Logins that Keystone is being asked about, and those that wait: each costs it the time of a password hash. */
const MAX_UNDER_WAY = 8;
const MAX_WAITING = 64;

export class LoginAttempts {
  readonly #passwords = new PasswordLimit();
  readonly #line = new ConcurrencyLimiter(MAX_UNDER_WAY, MAX_WAITING);

  /** Seconds until the address may try a password of this account again; 0 = now. */
  wait({ ip }: Context, account: string): number {
    return this.#passwords.wait(account, ip);
  }

  /** A login with a password. Counts it unless it turns out not to be wrong. @throws OverloadedError */
  async byPassword<Outcome extends { readonly isWrong?: boolean }>(
    ctx: Context,
    account: string,
    login: () => Promise<Outcome>,
  ): Promise<Outcome> {
    const forgive = this.#passwords.count(account, ctx.ip);
    let outcome: Outcome | undefined;
    try {
      outcome = await this.inLine(ctx, login);
      return outcome;
    } finally {
      if (outcome?.isWrong !== true) {
        forgive(outcome !== undefined && 'proof' in outcome);
      }
    }
  }

  /** Within the deadline of the service, waiting included. @throws OverloadedError */
  inLine<Result>(ctx: Context, work: () => Promise<Result>): Promise<Result> {
    return withinDeadline(stateOf(ctx).generation.options.deadline, async (deadline) => {
      await this.#line.enter(deadline);
      try {
        return await work();
      } finally {
        this.#line.leave();
      }
    });
  }
}
