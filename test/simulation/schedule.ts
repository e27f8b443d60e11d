/** Chance from a seed, and the order in which concurrent work goes on: the same seed makes the same history. */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** A source of random numbers that repeats itself. Source: mulberry32, Tommy Ettinger. */
export class Chance {
  readonly #seed: number;
  #state: number;

  constructor(seed: number) {
    this.#seed = seed;
    this.#state = (seed ^ 0x9e3779b9) >>> 0;
  }

  /** Goes on as this step of the seed does, whatever was drawn before: a step stays what it is without those before it. */
  beginStep(step: number): void {
    this.#state = (Math.imul(this.#seed + 1, 0x85ebca6b) ^ Math.imul(step + 1, 0xc2b2ae35)) >>> 0;
  }

  /** From 0 to below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** From 0 to below `count`. */
  below(count: number): number {
    return Math.floor(this.next() * count);
  }

  happens(probability: number): boolean {
    return this.next() < probability;
  }

  pick<Item>(items: readonly [Item, ...Item[]]): Item {
    return items[this.below(items.length)] ?? items[0];
  }

  /** `undefined` = there is none. */
  some<Item>(items: readonly Item[]): Item | undefined {
    return items[this.below(items.length)];
  }
}

/** Whoever takes turns: a service that is frozen gets none until it is thawed, and a dead one never. */
export interface Actor {
  readonly name: string;
  readonly mayGo: boolean;
}

interface Waiting {
  readonly actor: Actor;
  readonly what: string;
  readonly go: () => void;
}

/** How often the loop turns with nothing new before all work is known to wait. */
const QUIET_TURNS = 3;

/** All work waits at `turn`, and one of the waiting is let go on at a time. */
export class Schedule {
  readonly #chance: Chance;
  readonly #log: (line: string) => void;
  #waiting: Waiting[] = [];
  #activity = 0;
  #underWay = 0;

  constructor(chance: Chance, log: (line: string) => void) {
    this.#chance = chance;
    this.#log = log;
  }

  /** Resolves when the caller may go on. */
  turn(actor: Actor, what: string): Promise<void> {
    this.#activity += 1;
    return new Promise((go) => {
      this.#waiting.push({ actor, what, go });
    });
  }

  /** Waits for work that needs turns of the loop. */
  async during<Result>(work: Promise<Result>): Promise<Result> {
    this.#underWay += 1;
    try {
      return await work;
    } finally {
      this.#underWay -= 1;
      this.#activity += 1;
    }
  }

  get isIdle(): boolean {
    return !this.#waiting.some(({ actor }) => actor.mayGo);
  }

  /** Lets up to `most` of the waiting go on at once, until each of them waits again, or is done. */
  async release(most = 1): Promise<void> {
    for (let count = 0; count < most; count += 1) {
      const ready = this.#waiting.filter(({ actor }) => actor.mayGo);
      const next = this.#chance.some(ready);
      if (next === undefined) {
        break;
      }
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      this.#log(`${next.actor.name}: ${next.what}`);
      next.go();
    }
    await this.settle();
  }

  /** Forgets whoever will never go on. */
  drop(actor: Actor): void {
    this.#waiting = this.#waiting.filter((one) => one.actor !== actor);
  }

  /** Resolves when all work waits for a turn, or for the time to pass. */
  async settle(): Promise<void> {
    for (let quiet = 0; quiet < QUIET_TURNS; quiet += 1) {
      const before = this.#activity;
      await nextTurn();
      if (before !== this.#activity || this.#underWay > 0) {
        quiet = -1;
      }
    }
  }
}
