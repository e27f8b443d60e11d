/** What each failure of SQLite means, and how to wait for a file that another process writes to. */
import { setTimeout as pause } from 'node:timers/promises';
import SqliteConnection from 'better-sqlite3';
import type { Wait } from '../../base/deadline.ts';
import { LedgerContentError, LedgerUnavailableError } from '../../base/errors.ts';

/** Between two attempts to lock a file that another process writes to, in milliseconds. */
const SHORTEST_PAUSE = 1;
const LONGEST_PAUSE = 20;

/** A number of more than 64 bits, or a text of more than a gigabyte. Source of all codes: SQLite docs, "Result and Error Codes". */
const CONTENT = /^SQLITE_(TOOBIG|MISMATCH|RANGE)/;
/** With these, and with `CONTENT`, only the statement has failed: a savepoint takes back what was done before it. */
const OWN = /^SQLITE_(CONSTRAINT|ERROR)/;
/** With these codes the connection has failed, and not only the query. */
const SUSPECT = /^SQLITE_(READONLY|IOERR|CORRUPT|NOTADB|CANTOPEN)/;
/** With these the file itself may be damaged. */
const DAMAGED = /^SQLITE_(IOERR|CORRUPT|NOTADB)/;

/** Tries until the file is free. SQLite's own wait would block the whole process. */
export async function whenFree<Result>(wait: Wait, attempt: () => Result): Promise<Result> {
  for (let longest = SHORTEST_PAUSE; ; longest = Math.min(2 * longest, LONGEST_PAUSE)) {
    wait.throwIfOver();
    try {
      return attempt();
    } catch (thrown) {
      if (!isBusy(thrown)) {
        throw asUnavailable(thrown);
      }
    }
    await pause(Math.random() * longest, undefined, { signal: wait.signal }).catch(() => {
      wait.throwIfOver();
      throw new LedgerUnavailableError('the file is locked by another process');
    });
  }
}

/** @throws LedgerUnavailableError, LedgerContentError */
export function unavailable<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (thrown) {
    throw asUnavailable(thrown);
  }
}

/** An error of SQLite as one of the ledger's; one about a value that cannot be stored as a `LedgerContentError`. */
export function asUnavailable(thrown: unknown): unknown {
  const isContent =
    thrown instanceof RangeError ||
    (thrown instanceof SqliteConnection.SqliteError && CONTENT.test(thrown.code));
  if (isContent) {
    return new LedgerContentError(thrown.message, { cause: thrown });
  }
  return thrown instanceof SqliteConnection.SqliteError
    ? new LedgerUnavailableError(thrown.message, { cause: thrown })
    : thrown;
}

/** What one of several callers in a transaction is told when only its part has failed; `undefined` = the transaction has. */
export function ownError(thrown: unknown): { readonly error: unknown } | undefined {
  const isOwn =
    !(thrown instanceof SqliteConnection.SqliteError) || OWN.test(thrown.code) || CONTENT.test(thrown.code);
  return isOwn ? { error: asUnavailable(thrown) } : undefined;
}

/**
 * Whether a commit that failed with this may come back: it can be whole in the write-ahead log when the disk does not confirm it. Whoever
 * recovers the log next, after a crash or when the file is opened again, finds it there.
 */
export function isInDoubt(thrown: unknown): thrown is Error {
  return thrown instanceof SqliteConnection.SqliteError && thrown.code.startsWith('SQLITE_IOERR');
}

/** What an error tells about the connection and the file behind it. */
export function suspicionOf(thrown: unknown): { isSuspect: boolean; mayBeDamaged: boolean } {
  const cause = thrown instanceof LedgerUnavailableError ? thrown.cause : undefined;
  const code = cause instanceof SqliteConnection.SqliteError ? cause.code : '';
  return { isSuspect: SUSPECT.test(code), mayBeDamaged: DAMAGED.test(code) };
}

/** Whether another process has the file. */
export function isBusy(thrown: unknown): boolean {
  const code = thrown instanceof SqliteConnection.SqliteError ? thrown.code : '';
  return code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED');
}
