/** Calls to services that have failed in a row, for circuit breakers that did not hear of them when it happened. */
import type { CallEvent, FailedCalls } from './contract.ts';

export class FailuresInARow {
  readonly #failed: Map<string, FailedCalls>;

  constructor(failed: Iterable<readonly [string, FailedCalls]> = []) {
    this.#failed = new Map(failed);
  }

  /** By key. */
  get all(): [string, FailedCalls][] {
    return [...this.#failed];
  }

  seen(key: string, event: CallEvent): void {
    if (event === 'succeeded') {
      this.#failed.delete(key);
    } else {
      this.#failed.set(key, { count: (this.#failed.get(key)?.count ?? 0) + 1, lastAt: Date.now() });
    }
  }

  /** Forgets them. `undefined` = there are none. */
  take(key: string): FailedCalls | undefined {
    const failed = this.#failed.get(key);
    this.#failed.delete(key);
    return failed;
  }
}
