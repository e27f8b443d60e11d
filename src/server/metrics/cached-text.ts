/** What is expensive to make, and what anybody who reads the metrics may ask for. */
import { type Deadline, inTime, withinDeadline } from '../../base/deadline.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { ChainLedger } from '../../ledger/service.ts';

/** How long it is kept, in milliseconds. Prometheus asks less often. */
const KEPT = 1000;

export class CachedText {
  readonly #make: () => Promise<Buffer>;
  readonly #now: () => number;
  #text: Promise<Buffer> | undefined;
  #until = 0;

  /** `now`: monotonic, in milliseconds. */
  constructor(make: () => Promise<Buffer>, now: () => number) {
    this.#make = make;
    this.#now = now;
  }

  /** Concurrent calls share the making of it, and later ones its result, for a second after it was made. A failure is not kept. */
  read(): Promise<Buffer> {
    if (this.#text === undefined || this.#now() >= this.#until) {
      // Until it is made: however long that takes, no second one is begun.
      this.#until = Number.POSITIVE_INFINITY;
      this.#text = this.#make().then(
        (text) => {
          this.#until = this.#now() + KEPT;
          return text;
        },
        (thrown: unknown) => {
          this.#text = undefined;
          throw thrown;
        },
      );
    }
    return this.#text;
  }
}

/** Reading the metrics must not wait longer for the ledger, in seconds. */
const PATIENCE = 2;

/** A reading of the ledger, which is asked again after a while, or if the question is another one. */
export class LedgerGauge<Question, Reading> {
  readonly #keptMs: number;
  readonly #ask: (opened: Ledger, question: Question, deadline: Deadline) => Promise<Reading>;
  readonly #now: () => number;
  #last:
    | {
        readonly ledger: ChainLedger | undefined;
        readonly question: Question;
        readonly at: number;
        readonly reading: Promise<Reading | undefined>;
      }
    | undefined;

  /** `now`: in milliseconds. */
  constructor(
    keptMs: number,
    ask: (opened: Ledger, question: Question, deadline: Deadline) => Promise<Reading>,
    now: () => number = () => performance.now(),
  ) {
    this.#keptMs = keptMs;
    this.#ask = ask;
    this.#now = now;
  }

  /** `undefined` when there is no ledger, or it does not answer. */
  read(ledger: ChainLedger | undefined, question: Question): Promise<Reading | undefined> {
    const { ledger: before, question: asked, at, reading } = this.#last ?? {};
    const now = this.#now();
    if (reading !== undefined && ledger === before && question === asked && now - (at ?? 0) < this.#keptMs) {
      return reading;
    }
    const next = this.#readNow(ledger, question);
    this.#last = { ledger, question, at: now, reading: next };
    return next;
  }

  async #readNow(ledger: ChainLedger | undefined, question: Question): Promise<Reading | undefined> {
    return withinDeadline(PATIENCE, async (deadline) => {
      try {
        const read = ledger?.read((opened) => this.#ask(opened, question, deadline));
        return await (read && inTime(read, deadline));
      } catch {
        return undefined;
      }
    });
  }
}
