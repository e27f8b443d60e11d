/** What is expensive to make, and what anybody who reads the metrics may ask for. */
import { type Deadline, inTime, withinDeadline } from '../../base/deadline.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { ChainLedger } from '../../ledger/service.ts';

/** A value that is made again after a while, or for another question. */
export class Cached<Question extends readonly unknown[], Value> {
  readonly #keptMs: number;
  readonly #make: (...question: Question) => Promise<Value>;
  readonly #now: () => number;
  #last: { readonly question: Question; readonly value: Promise<Value>; until: number } | undefined;

  /** `keptMs`: for how long a value is given after it was made. `now`: monotonic, in milliseconds. */
  constructor(
    keptMs: number,
    make: (...question: Question) => Promise<Value>,
    now: () => number = () => performance.now(),
  ) {
    this.#keptMs = keptMs;
    this.#make = make;
    this.#now = now;
  }

  /** Concurrent calls share the making of it, however long it takes. A failure is not kept. */
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
        next.until = 0;
      },
    );
    return next.value;
  }
}

/** Reading the metrics must not wait longer for the ledger, in seconds. */
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
