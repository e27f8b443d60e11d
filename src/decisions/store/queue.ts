/**
 * The queue of decisions for the database: a bounded buffer, written in batches; decisions are dropped when
 * it is full.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { withinDeadline } from '../../base/deadline.ts';
import { errorText, LedgerContentError } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import type { RequestedLease } from '../lease-record.ts';
import type { DecisionRecord } from '../record.ts';
import type { DecisionTarget, Retention } from './contract.ts';
import { rowJson } from './rows.ts';

/** Limits of queued decisions, and of their characters. */
const MAX_WAITING = 10_000;
const MAX_LENGTH = 32 * 1024 * 1024;
/** Decisions serialized together: long-lived objects cost the garbage collector more than text. */
const PIECE = 32;
/** Limits of one transaction: SQLite has one writer, and leases must not wait for it. */
const BATCH_PIECES = 8;
const BATCH_LENGTH = 1024 * 1024;
/** Gathering time in milliseconds: not noticeable on live pages. */
const GATHER = 100;
/** Pause between two batches, relative to the duration of one: others write in the meantime. */
const REST = 0.5;
const RETRY = 500;
const LONGEST_RETRY = 10_000;
/** Intervals of removing old decisions, and of logging missing ones, in milliseconds. */
const TRIM_EVERY = 60_000;
const LOG_EVERY = 60_000;
/** Parts removed after each batch: together more than a batch has, so that removing keeps up with writing. */
const TRIMMED_PARTS = 8;

/** Which decisions are kept. `refused`: all except allowed, changed and exempt ones. */
export type StoredKind = 'all' | 'refused' | 'none';

export interface DecisionQueueObserver {
  stored(count: number): void;
  /** Decisions that will never be in the database. */
  dropped(count: number): void;
  /** A write failed and will be retried. */
  failed(): void;
  removed(count: number): void;
}

export interface DecisionQueueOptions extends Retention {
  readonly kind: StoredKind;
  /** Of one transaction, in seconds. */
  readonly timeout: number;
}

interface Piece {
  readonly rows: readonly string[];
  readonly length: number;
}

export class DecisionQueue {
  readonly #target: DecisionTarget;
  readonly #logger: Logger;
  readonly #observer: DecisionQueueObserver;
  /** May change while decisions are queued. */
  options: DecisionQueueOptions;
  /** The latest decisions; earlier ones are queued as text. */
  #latest: { readonly record: DecisionRecord; readonly asked: RequestedLease | undefined }[] = [];
  #pieces: Piece[] = [];
  #waiting = 0;
  #length = 0;
  #working: Promise<void> | undefined;
  #isTrimDue = false;
  readonly #trimming: NodeJS.Timeout;
  #failures = 0;
  /** Not logged yet. */
  #dropped = 0;
  #logged = Number.NEGATIVE_INFINITY;
  /** Aborted = no more gathering. */
  readonly #flushNow = new AbortController();
  readonly #givenUp = new AbortController();
  #closing: Promise<void> | undefined;

  constructor(
    target: DecisionTarget,
    options: DecisionQueueOptions,
    logger: Logger,
    observer: DecisionQueueObserver,
  ) {
    this.#target = target;
    this.options = options;
    this.#logger = logger;
    this.#observer = observer;
    this.#trimming = setInterval(() => this.#trimSoon(), TRIM_EVERY).unref();
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Never waits, and never throws. */
  add(record: DecisionRecord, asked: RequestedLease | undefined): void {
    if (!isKept(this.options.kind, record)) {
      return;
    }
    if (this.#waiting >= MAX_WAITING || this.#length >= MAX_LENGTH || this.#givenUp.signal.aborted) {
      this.#drop(1);
      return;
    }
    this.#latest.push({ record, asked });
    this.#waiting += 1;
    if (this.#latest.length >= PIECE) {
      this.#endPiece();
    }
    this.#working ??= this.#work();
  }

  /**
   * Writes the rest and closes the target. Decisions that cannot be written within `withinMs` are dropped. A
   * later call may shorten the time.
   */
  async close(withinMs: number): Promise<void> {
    const late = setTimeout(() => this.#givenUp.abort(), withinMs);
    this.#closing ??= this.#close();
    await this.#closing;
    clearTimeout(late);
  }

  async #close(): Promise<void> {
    clearInterval(this.#trimming);
    this.#isTrimDue = false;
    this.#flushNow.abort();
    // A blocked write is abandoned.
    await Promise.race([this.#working, aborted(this.#givenUp.signal)]);
    this.#givenUp.abort();
    if (this.#waiting > 0) {
      this.#drop(this.#waiting);
      this.#waiting = 0;
    }
    this.#logDropped(0);
    await this.#target.close();
  }

  #endPiece(): void {
    if (this.#latest.length > 0) {
      const rows = this.#latest.map(({ record, asked }) => rowJson(record, asked));
      const length = rows.reduce((sum, row) => sum + row.length, 0);
      this.#pieces.push({ rows, length });
      this.#length += length;
      this.#latest = [];
    }
  }

  #trimSoon(): void {
    this.#isTrimDue = true;
    this.#logDropped(LOG_EVERY);
    this.#working ??= this.#work();
  }

  async #work(): Promise<void> {
    while ((this.#waiting > 0 || this.#isTrimDue) && !this.#givenUp.signal.aborted) {
      if (this.#pieces.length < BATCH_PIECES) {
        await pause(GATHER, undefined, { signal: this.#flushNow.signal }).catch(() => {});
        this.#endPiece();
      }
      const started = performance.now();
      if (this.#pieces.length > 0) {
        await this.#writeNext();
      }
      if (this.#isTrimDue && this.#failures === 0) {
        await this.#trim();
      }
      await this.#pause((performance.now() - started) * REST);
    }
    // In the same tick as the check above: the next decision must start a new run.
    this.#working = undefined;
  }

  async #writeNext(): Promise<void> {
    let length = 0;
    const end = this.#pieces.slice(0, BATCH_PIECES).findIndex((piece) => {
      length += piece.length;
      return length > BATCH_LENGTH;
    });
    const pieces = this.#pieces.splice(0, end === -1 ? BATCH_PIECES : Math.max(1, end));
    const rows = pieces.flatMap((piece) => piece.rows);
    const written = await this.#write(rows);
    this.#length -= pieces.reduce((sum, piece) => sum + piece.length, 0);
    this.#waiting -= rows.length;
    if (written < rows.length) {
      this.#drop(rows.length - written);
    }
  }

  /** Retries until the rows are written or given up; resolves to the number of stored rows. */
  async #write(rows: readonly string[]): Promise<number> {
    for (let attempt = 1; !this.#givenUp.signal.aborted; attempt += 1) {
      try {
        await withinDeadline(this.options.timeout, async (deadline) => {
          // A failed write may have been committed nevertheless.
          if (attempt === 1 || !(await this.#target.has(rows[0] ?? '', deadline))) {
            await this.#target.write(rows, deadline);
          }
        });
        this.#succeeded(rows.length);
        return rows.length;
      } catch (thrown) {
        if (thrown instanceof LedgerContentError) {
          return this.#writeApart(rows, thrown);
        }
        await this.#failed(thrown);
      }
    }
    return 0;
  }

  /** One of the rows cannot be stored: writes the halves separately. */
  async #writeApart(rows: readonly string[], reason: LedgerContentError): Promise<number> {
    if (rows.length <= 1) {
      this.#logger.warn({ error: errorText(reason) }, 'a decision cannot be stored');
      return 0;
    }
    const middle = Math.ceil(rows.length / 2);
    return (await this.#write(rows.slice(0, middle))) + (await this.#write(rows.slice(middle)));
  }

  async #trim(): Promise<void> {
    try {
      const { timeout, days, most } = this.options;
      for (let part = 0; part < TRIMMED_PARTS && this.#isTrimDue; part += 1) {
        const started = performance.now();
        const removed = await withinDeadline(timeout, (deadline) =>
          this.#target.trim({ days, most }, deadline),
        );
        this.#isTrimDue = removed > 0 && !this.#flushNow.signal.aborted;
        this.#observer.removed(removed);
        await this.#pause((performance.now() - started) * REST);
      }
    } catch (thrown) {
      this.#isTrimDue = false;
      this.#logger.warn({ error: errorText(thrown) }, 'old decisions could not be removed');
    }
  }

  #succeeded(count: number): void {
    this.#observer.stored(count);
    if (this.#failures > 0) {
      this.#failures = 0;
      this.#logger.info('decisions are stored again');
    }
  }

  async #failed(thrown: unknown): Promise<void> {
    this.#observer.failed();
    this.#failures += 1;
    if (this.#failures === 1) {
      this.#logger.error({ error: errorText(thrown) }, 'decisions could not be stored; they are tried again');
    }
    await this.#pause(Math.min(RETRY * 2 ** Math.min(this.#failures - 1, 10), LONGEST_RETRY));
  }

  #drop(count: number): void {
    this.#observer.dropped(count);
    this.#dropped += count;
    this.#logDropped(LOG_EVERY);
  }

  #logDropped(every: number): void {
    if (this.#dropped > 0 && performance.now() - this.#logged >= every) {
      this.#logged = performance.now();
      this.#logger.error({ decisions: this.#dropped }, 'decisions are missing from the store');
      this.#dropped = 0;
    }
  }

  /** Ends early when the rest is given up. */
  #pause(milliseconds: number): Promise<void> {
    return pause(milliseconds, undefined, { signal: this.#givenUp.signal }).catch(() => {});
  }
}

function isKept(kind: StoredKind, { outcome }: DecisionRecord): boolean {
  return (
    kind === 'all' ||
    (kind === 'refused' && outcome !== 'allowed' && outcome !== 'changed' && outcome !== 'exempt')
  );
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
