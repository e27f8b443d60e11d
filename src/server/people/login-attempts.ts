/** Logins that take time: few at once, and not too many wrong ones. */
import type { Context } from 'koa';
import { Admission } from '../../admission.ts';
import { withinDeadline } from '../../deadline.ts';
import { stateOf } from '../request-state.ts';
import { AccountLimit, LoginLimit } from './login-limit.ts';

/** Logins that Keystone is being asked about, and those that wait: each costs it the time of a password hash. */
const MAX_UNDER_WAY = 8;
const MAX_WAITING = 64;

export class LoginAttempts {
  readonly #addresses = new LoginLimit();
  readonly #accounts = new AccountLimit();
  readonly #line = new Admission(MAX_UNDER_WAY, MAX_WAITING);

  /** Seconds until the address may try again, and for this account; 0 = now. `account`: `undefined` = a login without a name. */
  wait({ ip }: Context, account?: string): number {
    const ofAccount = account === undefined ? 0 : this.#accounts.wait(account, ip);
    return Math.max(this.#addresses.wait(ip), ofAccount);
  }

  /** Counts the login unless it turns out not to be wrong. @throws OverloadedError */
  async run<Outcome extends { readonly isWrong?: boolean }>(
    ctx: Context,
    account: string | undefined,
    login: () => Promise<Outcome>,
  ): Promise<Outcome> {
    const { ip } = ctx;
    // Before it begins, so that no more guesses than these go on at once.
    this.#addresses.count(ip);
    if (account !== undefined) {
      this.#accounts.count(account);
    }
    let outcome: Outcome | undefined;
    try {
      outcome = await this.inLine(ctx, login);
      return outcome;
    } finally {
      if (outcome?.isWrong !== true) {
        this.#addresses.forgive(ip);
        if (account !== undefined) {
          const isRight = outcome !== undefined && 'proof' in outcome;
          this.#accounts.forgive(account, isRight ? ip : undefined);
        }
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
