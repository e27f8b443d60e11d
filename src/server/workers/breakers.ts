/** Circuit breakers of all workers count failures of the same service together. */
import type { CallEvent, FailedCalls, JoinedBreaker, SharedBreakers } from '../../http/contract.ts';
import { FailuresInARow } from '../../http/failures-in-a-row.ts';

export class WorkerBreakers implements SharedBreakers {
  readonly #heardBy = new Map<string, Set<(event: CallEvent) => void>>();
  readonly #tell: (key: string, event: CallEvent) => void;
  /** What no breaker of this worker has heard, since it has made no call yet. */
  readonly #unheard: FailuresInARow;

  /** `tell`: tells the other workers. `before`: what they have seen before this one was started. */
  constructor(
    tell: (key: string, event: CallEvent) => void,
    before: readonly (readonly [string, FailedCalls])[] = [],
  ) {
    this.#tell = tell;
    this.#unheard = new FailuresInARow(before);
  }

  join(key: string, heard: (event: CallEvent) => void): JoinedBreaker {
    const all = this.#heardBy.get(key) ?? new Set();
    this.#heardBy.set(key, all);
    all.add(heard);
    return {
      before: this.#unheard.take(key),
      tell: (event) => {
        this.heard(key, event, heard);
        this.#tell(key, event);
      },
      leave: () => {
        all.delete(heard);
        if (all.size === 0 && this.#heardBy.get(key) === all) {
          this.#heardBy.delete(key);
        }
      },
    };
  }

  /** What a breaker of another worker, or `by` of this one, has seen. */
  heard(key: string, event: CallEvent, by?: (event: CallEvent) => void): void {
    const all = this.#heardBy.get(key);
    if (all === undefined) {
      this.#unheard.seen(key, event);
      return;
    }
    for (const hear of all) {
      if (hear !== by) {
        hear(event);
      }
    }
  }
}
