/** Lists in pages: a cursor marks the start of the next page, so that new rows do not shift it. */

import { Semaphore } from '../../base/concurrency-limiter.ts';
import type { Wait } from '../../base/deadline.ts';
import { jsonIn } from '../../base/yaml/tree.ts';
import { timedYield } from '../../base/yield-to-event-loop.ts';
import { textMistake } from '../identity.ts';
import type { Ledger } from '../ledger.ts';
import type { Work } from '../storage/database.ts';

export interface PageQuery {
  /** 1 to 1000. */
  readonly limit: number;
  /** `next` of the previous page; `undefined` = first page. Anything else throws a `CursorError`. */
  readonly after: string | undefined;
}

export interface PageOf<Item, Next = string> {
  readonly items: readonly Item[];
  /** `undefined` = last page. */
  readonly next: Next | undefined;
}

/** The cursor does not belong to this list. */
export class CursorError extends Error {
  override readonly name = 'CursorError';

  constructor() {
    super('this page of the list does not exist: start at its first page');
  }
}

const MAX_CURSOR = 2000;
/** The range of the columns of both databases. */
const MAX_NUMBER = 2n ** 63n - 1n;

/** Encodes the sort key of the last row; opaque to clients. */
export function cursorOf(key: readonly (string | bigint)[]): string {
  const plain = key.map((part) => (typeof part === 'bigint' ? `#${part}` : `=${part}`));
  return Buffer.from(JSON.stringify(plain)).toString('base64url');
}

/** Decodes a cursor into a key with these kinds of parts. @throws CursorError */
export function keyOf(cursor: string, kinds: readonly ('text' | 'number')[]): (string | bigint)[] {
  if (cursor.length > MAX_CURSOR) {
    throw new CursorError();
  }
  const parsed = jsonIn(Buffer.from(cursor, 'base64url').toString());
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

/**
 * Concurrent reads per process: each takes a PostgreSQL connection, and most of them are reserved for leases.
 */
const READERS = 2;

const semaphores = new WeakMap<Ledger, Semaphore>();

/** Runs a read that takes at most a few milliseconds. @throws LedgerUnavailableError */
export type ReadPiece = <Result>(work: () => Work<Result>) => Promise<Result>;

/** For one view. Its reads do not share a snapshot. */
export function reading(ledger: Ledger, wait: Wait): ReadPiece {
  const semaphore = semaphores.get(ledger) ?? new Semaphore(READERS);
  semaphores.set(ledger, semaphore);
  const yieldIfDue = timedYield();
  return async (work) => {
    await yieldIfDue();
    const leave = await semaphore.enter(wait);
    try {
      return await ledger.read('read', work, wait);
    } finally {
      leave();
    }
  };
}

/** The key of a list that is sorted by one number; `undefined` = first page. @throws CursorError */
export function numberIn(after: string | undefined): bigint | undefined {
  const [key] = after === undefined ? [] : keyOf(after, ['number']);
  return typeof key === 'bigint' ? key : undefined;
}

/** The page from rows that may include one of the next page. `keyOf`: the sort key. */
export function pageOf<Row>(
  found: readonly Row[],
  limit: number,
  keyOf: (row: Row) => readonly (string | bigint)[],
): PageOf<Row> {
  const last = found.length > limit ? found[limit - 1] : undefined;
  return { items: found.slice(0, limit), next: last && cursorOf(keyOf(last)) };
}

/** Rows read at once when not all of them may match. */
export const SCANNED = 500;
/**
 * Maximum number of rows read for one page: a page with few matches may be shorter than its limit, and have a
 * next one.
 */
const LOOKED_AT = 10_000;

export interface Piece<Item> {
  readonly found: readonly Item[];
  /** The last row that was read; `undefined` = no more rows. */
  readonly lowest: bigint | undefined;
}

/**
 * Reads from newest to oldest in batches, until the page is full or `LOOKED_AT` rows were read. `piece`: may
 * return more than `wanted`, which shows that another page follows.
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
