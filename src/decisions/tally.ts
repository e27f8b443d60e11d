/** So many names are counted each by its own: a log of many years may have more users than memory holds. */
const MAX_NAMES = 10_000;

export interface Count {
  readonly decisions: number;
  /** Of these: rejected, or failed. */
  readonly refused: number;
}

/** Of what there were how many decisions. */
export interface TallyRow<Name> extends Count {
  readonly name: Name;
}

/** Counts decisions by name. After 10,000 different names those that are new are counted together. */
export class Tally<Name extends string | readonly (string | null)[]> {
  readonly #rows = new Map<string, { name: Name; decisions: number; refused: number }>();
  #unnamed: Count = { decisions: 0, refused: 0 };

  /** Whether there were more names than are counted. */
  get isCut(): boolean {
    return this.#unnamed.decisions > 0;
  }

  add(name: Name, isRefused: boolean): void {
    const key = typeof name === 'string' ? name : JSON.stringify(name);
    let row = this.#rows.get(key);
    if (row === undefined) {
      if (this.#rows.size >= MAX_NAMES) {
        this.#unnamed = sum([this.#unnamed, { decisions: 1, refused: isRefused ? 1 : 0 }]);
        return;
      }
      row = { name, decisions: 0, refused: 0 };
      this.#rows.set(key, row);
    }
    row.decisions += 1;
    row.refused += isRefused ? 1 : 0;
  }

  /** The first so many, by decisions refused, then by decisions; and all others together. */
  top(count: number): { rows: TallyRow<Name>[]; others: Count } {
    const sorted = [...this.#rows.values()].sort(
      (one, other) => other.refused - one.refused || other.decisions - one.decisions,
    );
    return { rows: sorted.slice(0, count), others: sum([this.#unnamed, ...sorted.slice(count)]) };
  }
}

function sum(counts: readonly Count[]): Count {
  return {
    decisions: counts.reduce((total, { decisions }) => total + decisions, 0),
    refused: counts.reduce((total, { refused }) => total + refused, 0),
  };
}
