/** A cache for what is expensive to compute or to ask for, and may be requested by anyone. */
import { type Deadline, inTime, withinDeadline } from '../../base/deadline.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { ChainLedger } from '../../ledger/service.ts';

/** A value that is computed again after a while, or for another question. */
export class Cached<Question extends readonly unknown[], Value> {
  readonly #keptMs: number;
  readonly #failureMs: number;
  readonly #make: (...question: Question) => Promise<Value>;
  readonly #now: () => number;
  #last: { readonly question: Question; readonly value: Promise<Value>; until: number } | undefined;

  /**
   * `keptMs`: how long a value is cached after it was computed. `now`: monotonic, in milliseconds. `failureMs`:
   * how long a failure is cached.
   */
  constructor(
    keptMs: number,
    make: (...question: Question) => Promise<Value>,
    now: () => number = () => performance.now(),
    failureMs = 0,
  ) {
    this.#keptMs = keptMs;
    this.#failureMs = failureMs;
    this.#make = make;
    this.#now = now;
  }

  /** Concurrent calls share one computation, however long it takes. */
  read(...question: Question): Promise<Value> {
    const last = this.#last;
    if (
      last !== undefined &&
      this.#now() < last.until &&
      question.every((part, index) => part === last.question[index])
    ) {
      return last.value;
    }
    const next = { question, value: this.#make(...question), until: Number.POSITIVE_INFINITY };
    this.#last = next;
    next.value.then(
      () => {
        next.until = this.#now() + this.#keptMs;
      },
      () => {
        next.until = this.#now() + this.#failureMs;
      },
    );
    return next.value;
  }
}

/** Maximum delay of the metrics, or of a reload, by the ledger, in seconds. */
const PATIENCE = 2;

/** Resolves to `undefined` if there is no ledger, or it does not answer. */
export function readLedger<Reading>(
  ledger: ChainLedger | undefined,
  ask: (opened: Ledger, deadline: Deadline) => Promise<Reading>,
): Promise<Reading | undefined> {
  return withinDeadline(PATIENCE, async (deadline) => {
    const read = ledger?.read((opened) => ask(opened, deadline));
    return read && inTime(read, deadline);
  }).catch(() => undefined);
}
