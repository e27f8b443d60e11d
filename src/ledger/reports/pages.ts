/** Lists in pages: a cursor says where the next page begins, so that what is added meanwhile moves nothing. */

import type { Wait } from '../../base/deadline.ts';
import { timedYield } from '../../base/yield-to-event-loop.ts';
import { textMistake } from '../identity.ts';
import type { Ledger } from '../ledger.ts';
import type { Work } from '../storage/database.ts';
import { Semaphore } from '../storage/semaphore.ts';

export interface PageQuery {
  /** 1 to 1000. */
  readonly limit: number;
  /** `next` of the page before; `undefined` = the first page. Anything else throws a `CursorError`. */
  readonly after: string | undefined;
}

export interface PageOf<Item, Next = string> {
  readonly items: readonly Item[];
  /** `undefined` = this is the last page. */
  readonly next: Next | undefined;
}

/** The cursor is none of this list. */
export class CursorError extends Error {
  override readonly name = 'CursorError';

  constructor() {
    super('expected the cursor of the page before');
  }
}

const MAX_CURSOR = 2000;
/** What the columns of both databases hold. */
const MAX_NUMBER = 2n ** 63n - 1n;

/** A cursor is opaque to clients: the sort key of the last row. */
export function cursorOf(key: readonly (string | bigint)[]): string {
  const plain = key.map((part) => (typeof part === 'bigint' ? `#${part}` : `=${part}`));
  return Buffer.from(JSON.stringify(plain)).toString('base64url');
}

/** The key in a cursor, of the given kinds of parts. @throws CursorError */
export function keyOf(cursor: string, kinds: readonly ('text' | 'number')[]): (string | bigint)[] {
  if (cursor.length > MAX_CURSOR) {
    throw new CursorError();
  }
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(cursor, 'base64url').toString());
  } catch {
    throw new CursorError();
  }
  if (!Array.isArray(parsed) || parsed.length !== kinds.length) {
    throw new CursorError();
  }
  return parsed.map((part: unknown, index) => {
    const text = typeof part === 'string' ? part : '';
    if (kinds[index] === 'number' && /^#-?\d{1,19}$/.test(text)) {
      const number = BigInt(text.slice(1));
      if (number >= -MAX_NUMBER && number <= MAX_NUMBER) {
        return number;
      }
    }
    if (kinds[index] === 'text' && text.startsWith('=') && textMistake(text.slice(1)) === undefined) {
      return text.slice(1);
    }
    throw new CursorError();
  });
}

/** Reads of one process under way at the same time: each takes a connection of PostgreSQL, of which leases need most. */
const READERS = 2;

const semaphores = new WeakMap<Ledger, Semaphore>();

/** Runs a piece of reading that takes a few milliseconds at most. @throws LedgerUnavailableError */
export type ReadPiece = <Result>(work: () => Work<Result>) => Promise<Result>;

/** For one view. Its pieces do not see the same moment. */
export function reading(ledger: Ledger, wait: Wait): ReadPiece {
  let semaphore = semaphores.get(ledger);
  if (semaphore === undefined) {
    semaphore = new Semaphore(READERS);
    semaphores.set(ledger, semaphore);
  }
  const entered = semaphore;
  const yieldIfDue = timedYield();
  return async (work) => {
    await yieldIfDue();
    const leave = await entered.enter(wait);
    try {
      return await ledger.read('read', work, wait);
    } finally {
      leave();
    }
  };
}

/** The key of a list that is sorted by one number; `undefined` = the first page. @throws CursorError */
export function numberIn(after: string | undefined): bigint | undefined {
  const [key] = after === undefined ? [] : keyOf(after, ['number']);
  return typeof key === 'bigint' ? key : undefined;
}

/** Of the rows of a page and the next one, those of the page. `keyOf`: by what the list is sorted. */
export function pageOf<Row>(
  found: readonly Row[],
  limit: number,
  keyOf: (row: Row) => readonly (string | bigint)[],
): PageOf<Row> {
  const last = found.length > limit ? found[limit - 1] : undefined;
  return { items: found.slice(0, limit), next: last && cursorOf(keyOf(last)) };
}

/** Rows that are looked at in one piece, where not all of them may be wanted. */
export const SCANNED = 500;
/** Rows that are looked at for one page: one with few matches may be shorter than its limit, and have a next one. */
export const LOOKED_AT = 10_000;

export interface Piece<Item> {
  readonly found: readonly Item[];
  /** The last row that was looked at; `undefined` = there are no more. */
  readonly lowest: bigint | undefined;
}

/**
 * Goes back from the newest row, a piece at a time, until there are enough or the time is better left to others. `piece`: may find more than
 * `wanted`, which tells that another page follows.
 */
export async function scanned<Item>(
  limit: number,
  before: bigint | undefined,
  piece: (last: bigint | undefined, wanted: number) => Promise<Piece<Item>>,
  idOf: (item: Item) => bigint,
): Promise<PageOf<Item, bigint>> {
  const items: Item[] = [];
  let last = before;
  for (let looked = 0; looked < LOOKED_AT; looked += SCANNED) {
    const wanted = limit - items.length;
    const { found, lowest } = await piece(last, wanted);
    items.push(...found.slice(0, wanted));
    const end = items.at(-1);
    if (found.length > wanted && end !== undefined) {
      return { items, next: idOf(end) };
    }
    if (lowest === undefined) {
      return { items, next: undefined };
    }
    last = lowest;
  }
  return { items, next: last };
}
