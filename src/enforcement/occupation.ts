/** What the thread is executing, for a watchdog in another thread. */

/** Marks when a filter executes. */
export interface Execution {
  /** Until `work` returns or throws: for a promise, up to the first `await`. */
  run<Result>(work: () => Result): Result;
}

const BEATS = 0;
const AT = 1;

/** The state as another thread reads it. */
interface OccupationSeen {
  /** Increases as long as the event loop runs. */
  readonly beats: number;
  /** Number of the executing filter, from 1. Negative: the last filter that executed. 0 = none yet. */
  readonly at: number;
}

/**
 * Writes the executing filter to shared memory: if it blocks the event loop, only another thread can report
 * it. An execution costs two number writes.
 */
export class Occupation {
  readonly memory = new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT);
  readonly #cells = new Int32Array(this.memory);
  readonly #names: string[] = [];
  readonly #named: (names: readonly string[]) => void;

  /** `named` gets all names whenever there is a new one. The number of a name is its position, from 1. */
  constructor(named: (names: readonly string[]) => void = () => {}) {
    this.#named = named;
  }

  /** The marks for a name. Its number does not change when a configuration is reloaded. */
  executionOf(name: string): Execution {
    const cells = this.#cells;
    let number = this.#names.indexOf(name) + 1;
    if (number === 0) {
      number = this.#names.push(name);
      this.#named(this.#names);
    }
    // Plain writes: Atomics cost ten times as much, and the other thread reads long after the last write.
    return {
      run(work) {
        cells[AT] = number;
        try {
          return work();
        } finally {
          cells[AT] = -number;
        }
      },
    };
  }

  beat(): void {
    Atomics.add(this.#cells, BEATS, 1);
  }
}

export function occupationSeen(memory: SharedArrayBuffer): OccupationSeen {
  const cells = new Int32Array(memory);
  return { beats: Atomics.load(cells, BEATS), at: Atomics.load(cells, AT) };
}
