/**
 * Refusals of leases, merged: a client that is refused a thousand times a second is one event a minute. The first refusal is told at
 * once, those that follow within a minute when it is over.
 */
import { outsideTraces } from '../../base/tracing.ts';
import type { LastRefusal, Named, Refusals } from './events.ts';

/** One refusal. Texts are of bounded length. */
export interface Refused extends LastRefusal {
  /** ISO 8601. */
  readonly time: string;
  readonly project: Named;
  readonly user: Named;
  readonly filter: string | null;
}

/** In milliseconds. */
const WINDOW = 60_000;
/** So many projects, users and filters are told apart in a minute; all others are one event. */
const MOST = 100;
const OTHERS = 'others';

interface Merged {
  readonly project: Named;
  readonly user: Named;
  readonly filter: string | null;
  count: number;
  firstAt: string;
  lastAt: string;
  last: LastRefusal | null;
}

export class MergedRefusals {
  readonly #tell: (refusals: Refusals) => void;
  /** `undefined` = told in this window, and not refused again since. */
  readonly #merged = new Map<string, Merged | undefined>();
  #timer: NodeJS.Timeout | undefined;

  /** `tell` is called at most once for each project, user, filter and minute. */
  constructor(tell: (refusals: Refusals) => void) {
    this.#tell = tell;
  }

  add(refused: Refused): void {
    const own = JSON.stringify([refused.project.id, refused.user.id, refused.filter]);
    const isOther = !this.#merged.has(own) && this.#merged.size >= MOST;
    const key = isOther ? OTHERS : own;
    if (!this.#merged.has(key) && !isOther) {
      this.#merged.set(key, undefined);
      this.#tell(merged(refused));
      this.#begin();
      return;
    }
    const known = this.#merged.get(key);
    if (known === undefined) {
      this.#merged.set(key, isOther ? { ...merged(refused), ...SEVERAL } : merged(refused));
    } else {
      known.count += 1;
      known.lastAt = refused.time;
      known.last = isOther ? null : lastOf(refused);
    }
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

const SEVERAL = { project: { id: null }, user: { id: null }, filter: null, last: null };

function merged(refused: Refused): Merged {
  const { project, user, filter, time } = refused;
  return { project, user, filter, count: 1, firstAt: time, lastAt: time, last: lastOf(refused) };
}

function lastOf({ requestId, operation, outcome, message, leaseId, leaseName }: Refused): LastRefusal {
  return { requestId, operation, outcome, message, leaseId, leaseName };
}
