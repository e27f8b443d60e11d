/**
 * Refusals of leases, merged: a client that is refused a thousand times a second is one event a minute. The first refusal is told at
 * once, those that follow within a minute when it is over.
 */
import { outsideTraces } from '../../base/tracing.ts';
import type { Refusals, Refused } from './events.ts';

/** In milliseconds. */
const WINDOW = 60_000;
/** So many projects, users and filters are told apart in a minute; all others are one event. */
const MOST = 100;
const OTHERS = 'others';

export class MergedRefusals {
  readonly #tell: (refusals: Refusals) => void;
  /** `undefined` = told in this window, and not refused again since. */
  readonly #merged = new Map<string, Refusals | undefined>();
  #timer: NodeJS.Timeout | undefined;

  /** `tell` is called at most once for each project, user, filter and minute. */
  constructor(tell: (refusals: Refusals) => void) {
    this.#tell = tell;
  }

  add(refused: Refused): void {
    const own = JSON.stringify([refused.project_id, refused.user_id, refused.filter]);
    const isMixed = !this.#merged.has(own) && this.#merged.size >= MOST;
    const key = isMixed ? OTHERS : own;
    if (!isMixed && !this.#merged.has(key)) {
      this.#merged.set(key, undefined);
      this.#tell({ last: refused, isMixed, count: 1, firstAt: refused.time });
      this.#begin();
      return;
    }
    const { count, firstAt } = this.#merged.get(key) ?? { count: 0, firstAt: refused.time };
    this.#merged.set(key, { last: refused, isMixed, count: count + 1, firstAt });
  }

  /** Tells the rest. */
  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const one of this.#merged.values()) {
      if (one !== undefined) {
        this.#tell(one);
      }
    }
    this.#merged.clear();
  }

  #begin(): void {
    this.#timer ??= setTimeout(() => outsideTraces(() => this.#over()), WINDOW).unref();
  }

  /** Who was refused in this window is not told of before the end of the next one. */
  #over(): void {
    const rest = [...this.#merged];
    this.#timer = undefined;
    this.#merged.clear();
    for (const [key, one] of rest) {
      if (one !== undefined) {
        if (key !== OTHERS) {
          this.#merged.set(key, undefined);
        }
        this.#tell(one);
        this.#begin();
      }
    }
  }
}
