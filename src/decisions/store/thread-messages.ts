/** What the thread that writes to a file is asked, and what it answers. */

import { errorText, LedgerContentError, LedgerUnavailableError } from '../../base/errors.ts';
import { CursorError, type PageOf } from '../../ledger/reports/pages.ts';
import type { DecisionsQuery, Retention, StoredDecision } from './contract.ts';

export interface ThreadStart {
  readonly file: string;
  readonly replica: string;
}

export type ThreadTask =
  | { readonly kind: 'verify' }
  | { readonly kind: 'write'; readonly rows: readonly string[] }
  | { readonly kind: 'has'; readonly row: string }
  | { readonly kind: 'search'; readonly query: DecisionsQuery }
  | { readonly kind: 'newest' }
  | { readonly kind: 'trim'; readonly retention: Retention }
  | { readonly kind: 'close' };

/** By the kind of task. */
export interface ThreadResults {
  readonly verify: string | undefined;
  readonly write: undefined;
  readonly has: boolean;
  readonly search: PageOf<StoredDecision>;
  readonly newest: bigint;
  readonly trim: number;
  readonly close: undefined;
}

export interface ThreadQuestion {
  readonly id: number;
  readonly task: ThreadTask;
  /** How long its sender waits. */
  readonly milliseconds: number;
}

export type ThreadAnswer =
  | { readonly id: number; readonly result: ThreadResults[keyof ThreadResults] }
  | { readonly id: number; readonly error: ThreadError };

/** Classes do not pass between threads. */
export interface ThreadError {
  readonly kind: 'content' | 'cursor' | 'unavailable' | 'other';
  readonly message: string;
}

export function threadError(thrown: unknown): ThreadError {
  const kind =
    thrown instanceof LedgerContentError
      ? 'content'
      : thrown instanceof CursorError
        ? 'cursor'
        : thrown instanceof LedgerUnavailableError
          ? 'unavailable'
          : 'other';
  return { kind, message: errorText(thrown) };
}

export function errorOf({ kind, message }: ThreadError): Error {
  switch (kind) {
    case 'content':
      return new LedgerContentError(message);
    case 'cursor':
      return new CursorError();
    case 'unavailable':
      return new LedgerUnavailableError(message);
    case 'other':
      return new Error(message);
  }
}
