/** How long a transaction may take: as long as its caller waits, and no longer than `[ledger] timeout`. */
import type { Deadline, Wait } from '../../base/deadline.ts';
import { LedgerUnavailableError } from '../../base/errors.ts';

/** For work that nobody waits for. `[ledger] timeout` still bounds it. */
export const UNBOUNDED: Wait = { signal: undefined, throwIfOver() {} };

/** Ends with the first of both. The combined signal is created on first use: most transactions on SQLite never wait. */
export function firstOf(wait: Wait, deadline: Deadline): Wait {
  let signal: AbortSignal | undefined;
  return {
    get signal() {
      signal ??= AbortSignal.any([deadline.signal, wait.signal].filter((one) => one !== undefined));
      return signal;
    },
    throwIfOver() {
      wait.throwIfOver();
      try {
        deadline.throwIfOver();
      } catch (thrown) {
        throw tookTooLong(thrown);
      }
    },
  };
}

export function tookTooLong(cause: unknown): LedgerUnavailableError {
  return new LedgerUnavailableError('the transaction took too long', { cause });
}
