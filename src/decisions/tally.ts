/** This many names are counted one by one: a log of many years may have more users than memory holds. */
const MAX_NAMES = 10_000;
/** This many users are counted for each name. */
const MAX_USERS = 10;

export interface Count {
  readonly decisions: number;
  /** How many of them were rejected, or failed. */
  readonly refused: number;
}

export interface UserCount {
  readonly user_id: string;
  readonly decisions: number;
}

export interface TallyRow<Name> extends Count {
  readonly name: Name;
  /** Whose decisions they were, the most frequent first: the first ten users that were seen. Empty where `add` was given none. */
  readonly users: readonly UserCount[];
}

interface Row<Name> {
  readonly name: Name;
  decisions: number;
  refused: number;
  readonly users: Map<string, number>;
}

/** Counts decisions by name. After 10,000 different names, new ones are counted together. */
export class Tally<Name extends string | readonly (string | null)[]> {
  readonly #rows = new Map<string, Row<Name>>();
  #unnamed: Count = { decisions: 0, refused: 0 };

  /** Whether there were more names than are counted. */
  get isCut(): boolean {
    return this.#unnamed.decisions > 0;
  }

  add(name: Name, isRefused: boolean, user: string | null = null): void {
    const key = typeof name === 'string' ? name : JSON.stringify(name);
    let row = this.#rows.get(key);
    if (row === undefined) {
      if (this.#rows.size >= MAX_NAMES) {
        this.#unnamed = sum([this.#unnamed, { decisions: 1, refused: isRefused ? 1 : 0 }]);
        return;
      }
      row = { name, decisions: 0, refused: 0, users: new Map() };
      this.#rows.set(key, row);
    }
    row.decisions += 1;
    row.refused += isRefused ? 1 : 0;
    if (user !== null && (row.users.has(user) || row.users.size < MAX_USERS)) {
      row.users.set(user, (row.users.get(user) ?? 0) + 1);
    }
  }

  /** The first `count` rows, by refused decisions, then by decisions; the others are added up. */
  top(count: number): { rows: TallyRow<Name>[]; others: Count } {
    const sorted = [...this.#rows.values()].sort(
      (one, other) => other.refused - one.refused || other.decisions - one.decisions,
    );
    return {
      rows: sorted.slice(0, count).map((row) => ({ ...row, users: usersOf(row) })),
      others: sum([this.#unnamed, ...sorted.slice(count)]),
    };
  }
}

function usersOf({ users }: Row<unknown>): UserCount[] {
  return [...users]
    .map(([user_id, decisions]) => ({ user_id, decisions }))
    .sort((one, other) => other.decisions - one.decisions);
}

function sum(counts: readonly Count[]): Count {
  return {
    decisions: counts.reduce((total, { decisions }) => total + decisions, 0),
    refused: counts.reduce((total, { refused }) => total + refused, 0),
  };
}
