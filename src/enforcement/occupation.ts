/** Begins and ends with what one thing does. */
export interface Turn {
  begin(): void;
  end(): void;
}

const BEATS = 0;
const AT = 1;

/** As another thread reads it. */
export interface OccupationSeen {
  /** Counts on for as long as the thread has turns to give. */
  readonly beats: number;
  /** The number of what is being done, from 1; below 0 what was done last; 0 = nothing yet. */
  readonly at: number;
}

/**
 * What this thread is doing, written where another thread can read it: when a filter holds the process, nobody else here can say which
 * one. A turn costs two writes of a number.
 */
export class Occupation {
  readonly memory = new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT);
  readonly #cells = new Int32Array(this.memory);
  readonly #names: string[] = [];
  readonly #named: (names: readonly string[]) => void;

  /** `named` is told whenever there is one more name; a number is the place of a name, from 1. */
  constructor(named: (names: readonly string[]) => void = () => {}) {
    this.#named = named;
  }

  /** The turn of something of this name; always the same one, however often a configuration is loaded. */
  turn(name: string): Turn {
    const cells = this.#cells;
    let number = this.#names.indexOf(name) + 1;
    if (number === 0) {
      number = this.#names.push(name);
      this.#named(this.#names);
    }
    // Not by Atomics, which cost ten times as much: the other thread looks at it when nothing has been written for long.
    return {
      begin() {
        cells[AT] = number;
      },
      end() {
        cells[AT] = -number;
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
