/** A clock that a test moves. */
import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../../../../src/kubernetes/cluster/api/timing.ts';

interface Sleeper {
  readonly until: number;
  readonly wake: () => void;
}

export class MovedClock implements Clock {
  #now = 0;
  #sleepers: Sleeper[] = [];

  now(): number {
    return this.#now;
  }

  sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) {
        resolve();
        return;
      }
      const end = () => {
        this.#sleepers = this.#sleepers.filter((one) => one !== sleeper);
        signal.removeEventListener('abort', end);
        resolve();
      };
      const sleeper = { until: this.#now + milliseconds, wake: end };
      this.#sleepers.push(sleeper);
      signal.addEventListener('abort', end, { once: true });
    });
  }

  /** As a process that is frozen: time passes, and nothing runs. */
  freeze(milliseconds: number): void {
    this.#now += milliseconds;
  }

  /** Time passes, and everybody wakes when it is their time. */
  async pass(milliseconds: number): Promise<void> {
    const end = this.#now + milliseconds;
    await settled();
    for (let next = this.#due(end); next !== undefined; next = this.#due(end)) {
      this.#now = Math.max(this.#now, next.until);
      next.wake();
      await settled();
    }
    this.#now = Math.max(this.#now, end);
  }

  #due(end: number): Sleeper | undefined {
    return this.#sleepers.filter(({ until }) => until <= end).sort((a, b) => a.until - b.until)[0];
  }
}

/** Calls of the double are answered within a few turns. */
export async function settled(): Promise<void> {
  for (let turns = 0; turns < 6; turns += 1) {
    await turn();
  }
}
