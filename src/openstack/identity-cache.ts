/** The records of one kind that were asked for last: bounded, refreshed while they are used, one request for any number of callers. */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../filter/services.ts';
import { type IdentityRecord, isPlausible, type Missing, type MissingReason } from './identity-records.ts';

export interface CacheTimes {
  /** In milliseconds. After it, a record is used only if Keystone cannot be asked. */
  readonly cacheMs: number;
  /** In milliseconds. After it, a record is not used. */
  readonly maxAgeMs: number;
}

interface Kept {
  readonly record: IdentityRecord;
  readonly askedAt: number;
}

/** At most so many, and so many characters: some 10 MB. */
const MAX_KEPT = 10_000;
const MAX_CHARACTERS = 4_000_000;
/** At the same time. More are not asked, and count as not available. */
const MAX_UNDER_WAY = 128;
/** How long nobody waits for an answer after one that was late, and the same record is not asked for after a failure. */
const PAUSE_MS = 5_000;
/** A project may be used before Keystone's other replicas know it. */
const UNKNOWN_MS = 30_000;

const IMPLAUSIBLE: Missing = { missing: 'implausible', error: 'it does not look like an id of Keystone' };
const BUSY: Missing = { missing: 'unavailable', error: 'too many names are being asked for' };
const LATE: Missing = { missing: 'unavailable', error: 'Keystone has not answered in time' };

export class IdentityCache {
  readonly #ask: (id: string) => Promise<IdentityRecord | Missing>;
  readonly #clock: Clock;
  readonly #times: CacheTimes;
  readonly #kept = new LRUCache<string, Kept>({
    max: MAX_KEPT,
    maxSize: MAX_CHARACTERS,
    sizeCalculation: ({ record: { name, tags } }, id) =>
      tags.reduce((size, tag) => size + 20 + tag.length, 100 + id.length + name.length),
  });
  /** Apart from the records, so that random ids push none of them out. */
  readonly #missing = new LRUCache<string, Missing & { readonly until: number }>({ max: MAX_KEPT });
  readonly #underWay = new Map<string, Promise<void>>();
  #noWaitUntil = Number.NEGATIVE_INFINITY;

  constructor(ask: (id: string) => Promise<IdentityRecord | Missing>, clock: Clock, times: CacheTimes) {
    this.#ask = ask;
    this.#clock = clock;
    this.#times = times;
  }

  /** The record to use now, as old as it may be. Asks nobody. */
  get(id: string): IdentityRecord | Missing {
    const kept = this.#kept.get(id);
    if (kept !== undefined && this.#age(kept) < this.#times.maxAgeMs) {
      return kept.record;
    }
    return isPlausible(id) ? (this.#missing.get(id) ?? (this.#underWay.has(id) ? LATE : BUSY)) : IMPLAUSIBLE;
  }

  /**
   * Asks for a record, if it is not known or old. Returns a promise only if it is worth waiting for: it resolves when `get` says more.
   * A record is asked for anew after half of its time, so that one in use never makes anybody wait.
   */
  refresh(id: string): Promise<void> | undefined {
    const kept = this.#kept.get(id);
    const age = kept === undefined ? Number.POSITIVE_INFINITY : this.#age(kept);
    // A clock that was set back makes no record younger.
    if (age >= 0 && age < this.#times.cacheMs / 2) {
      return undefined;
    }
    if (kept === undefined && !isPlausible(id)) {
      return undefined;
    }
    const now = this.#clock.now().getTime();
    const missing = this.#missing.get(id);
    if (missing !== undefined && now < missing.until && missing.until <= now + this.#longest()) {
      return undefined;
    }
    const asked = this.#askOnce(id);
    return (age >= 0 && age < this.#times.cacheMs) || this.#isLate(now) ? undefined : asked;
  }

  /** When the record was asked for, in milliseconds of the epoch; `undefined` = there is none. */
  askedAt(id: string): number | undefined {
    return this.#kept.peek(id)?.askedAt;
  }

  isUnderWay(id: string): boolean {
    return this.#underWay.has(id);
  }

  /** An answer was late: for a while, nobody waits. */
  late(): void {
    this.#noWaitUntil = this.#clock.now().getTime() + PAUSE_MS;
  }

  #isLate(now: number): boolean {
    return now < this.#noWaitUntil && this.#noWaitUntil <= now + PAUSE_MS;
  }

  #age({ askedAt }: Kept): number {
    return this.#clock.now().getTime() - askedAt;
  }

  #longest(): number {
    return Math.max(UNKNOWN_MS, this.#times.cacheMs);
  }

  #askOnce(id: string): Promise<void> | undefined {
    const underWay = this.#underWay.get(id);
    if (underWay !== undefined || this.#underWay.size >= MAX_UNDER_WAY) {
      return underWay;
    }
    const askedAt = this.#clock.now().getTime();
    const asked = this.#ask(id)
      .then((answer) => this.#keep(id, answer, askedAt))
      .finally(() => this.#underWay.delete(id));
    this.#underWay.set(id, asked);
    return asked;
  }

  #keep(id: string, answer: IdentityRecord | Missing, askedAt: number): void {
    if (!('missing' in answer)) {
      this.#kept.set(id, { record: answer, askedAt });
      this.#missing.delete(id);
      return;
    }
    if (answer.missing === 'unknown') {
      this.#kept.delete(id);
    }
    this.#missing.set(id, {
      ...answer,
      until: this.#clock.now().getTime() + this.#pauseAfter(answer.missing),
    });
  }

  #pauseAfter(reason: MissingReason): number {
    switch (reason) {
      case 'forbidden':
        return this.#times.cacheMs;
      case 'unknown':
        return Math.min(UNKNOWN_MS, this.#times.cacheMs);
      default:
        return PAUSE_MS;
    }
  }
}
