/** Circuit breakers of all workers count failures of the same service together. */
import type { CallEvent, JoinedBreaker, SharedBreakers } from '../../http/contract.ts';

export class WorkerBreakers implements SharedBreakers {
  readonly #heardBy = new Map<string, Set<(event: CallEvent) => void>>();
  readonly #tell: (key: string, event: CallEvent) => void;

  /** `tell`: tells the other workers. */
  constructor(tell: (key: string, event: CallEvent) => void) {
    this.#tell = tell;
  }

  join(key: string, heard: (event: CallEvent) => void): JoinedBreaker {
    const all = this.#heardBy.get(key) ?? new Set();
    this.#heardBy.set(key, all);
    all.add(heard);
    return {
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
    for (const hear of this.#heardBy.get(key) ?? []) {
      if (hear !== by) {
        hear(event);
      }
    }
  }
}
