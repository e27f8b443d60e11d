/** How much time has passed, also while the machine was suspended: then `performance.now()` stands still on Linux, and the cluster does not. */
import { uptime } from 'node:os';

export interface ElapsedClocks {
  /** Milliseconds since 1970. Default: `Date.now` */
  readonly wall?: () => number;
  /** Milliseconds that never jump, without suspensions. Default: `performance.now` */
  readonly awake?: () => number;
  /** Milliseconds since the machine was started, with suspensions. Default: `os.uptime` */
  readonly sinceBoot?: () => number;
}

/** A suspension moves the wall clock. Reading the time since boot costs a hundred times as much, so it is read only then. */
const JUMP_MS = 500;

/** Milliseconds that never go back. Whoever sets the wall clock changes nothing. */
export class ElapsedClock {
  readonly #wall: () => number;
  readonly #awake: () => number;
  readonly #sinceBoot: () => number;
  readonly #startedAt: number;
  #ahead: number;
  #suspended = 0;

  constructor({
    wall = Date.now,
    awake = () => performance.now(),
    sinceBoot = () => uptime() * 1000,
  }: ElapsedClocks = {}) {
    this.#wall = wall;
    this.#awake = awake;
    this.#sinceBoot = sinceBoot;
    this.#startedAt = sinceBoot() - awake();
    this.#ahead = wall() - awake();
  }

  now(): number {
    const awake = this.#awake();
    const ahead = this.#wall() - awake;
    if (Math.abs(ahead - this.#ahead) > JUMP_MS) {
      this.#ahead = ahead;
      this.#suspended = Math.max(this.#suspended, this.#sinceBoot() - awake - this.#startedAt);
    }
    return awake + this.#suspended;
  }
}

const clock = new ElapsedClock();

/** Milliseconds of this process's clock. For what is compared with other machines: how old an answer of the cluster is. */
export function elapsed(): number {
  return clock.now();
}
