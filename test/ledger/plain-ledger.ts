/**
 * The ledger as anybody would write it first: all leases in a list, and sums over all of them at every question. No kept
 * balances, no overdue rows, no transactions. What it says, the real one must say.
 */

export interface PlainLease {
  readonly user: string;
  readonly name: string;
  readonly hosts: number;
  /** In seconds of the epoch, as everything here. */
  readonly start: number;
  readonly end: number;
  readonly id?: string;
}

export interface PlainBudget {
  readonly id: string;
  readonly user: string | null;
  readonly from: number;
  readonly until: number;
  hostSeconds: number;
}

/** `undefined` = it fits. */
export type PlainRefusal =
  | { readonly limit: 'leases' }
  | { readonly limit: 'budget'; readonly asked: number; readonly left: number }
  | { readonly limit: 'no budget' }
  | undefined;

/** What a budget, or nobody, pays for a lease. */
interface Part {
  readonly account: string;
  readonly limit: number;
  readonly hosts: number;
  readonly from: number;
  readonly until: number;
}

interface Known {
  lease: PlainLease;
  id: string | undefined;
  isEnded: boolean;
  /** As last granted; a part that time has passed stays used. */
  parts: readonly Part[];
  used: readonly Part[];
}

export class PlainLedger {
  readonly most: number;
  now: number;
  budgets: PlainBudget[] = [];
  #known: Known[] = [];

  constructor(most: number, now: number) {
    this.most = most;
    this.now = now;
  }

  /** The same, to be asked something else. */
  copy(): PlainLedger {
    const other = new PlainLedger(this.most, this.now);
    other.budgets = this.budgets.map((budget) => ({ ...budget }));
    other.#known = this.#known.map((known) => ({ ...known }));
    return other;
  }

  create(lease: PlainLease): PlainRefusal {
    const parts = this.#partsOf(lease);
    const found = this.#find(lease);
    const repeated = found.find((known) => this.#isRepeated(known, lease, parts));
    if (repeated !== undefined) {
      repeated.id ??= lease.id;
      return undefined;
    }
    const refusal = this.#judge(parts, undefined, undefined);
    if (refusal === undefined) {
      for (const known of found.filter(({ id }) => id !== undefined)) {
        // It was taken back, or has ended: its id is another lease's now.
        known.id = undefined;
      }
      this.#known.push({ lease, id: lease.id, isEnded: false, parts, used: [] });
    }
    return refusal;
  }

  update(current: PlainLease, lease: PlainLease): PlainRefusal {
    const known = this.#nearest(current);
    const asked = this.#partsOf(lease);
    const parts = current.start < this.now ? after(asked, this.now) : asked;
    const isThere = known !== undefined && this.#isOpen(known);
    const isOver = current.end <= this.now || (known !== undefined && !isThere);
    const refusal = this.#judge(
      parts,
      isThere ? known : undefined,
      isOver ? undefined : this.#partsOf(current),
    );
    if (refusal !== undefined) {
      return refusal;
    }
    if (known === undefined) {
      this.#known.push({ lease, id: current.id, isEnded: false, parts, used: [] });
    } else {
      const used = [...known.used, ...before(known.parts, this.now)];
      Object.assign(known, { lease, id: known.id ?? current.id, isEnded: false, parts, used });
    }
    return undefined;
  }

  end(lease: PlainLease): void {
    const known = this.#nearest(lease);
    if (known === undefined || known.isEnded) {
      return;
    }
    known.id ??= lease.id;
    known.isEnded = true;
    known.used = [...known.used, ...before(known.parts, this.now)];
    known.parts = [];
  }

  /** How many leases there are now. */
  count(): number {
    return this.#known.filter((known) => this.#isOpen(known)).length;
  }

  /** What is used of a budget, and what will be. */
  taken(account: string): number {
    return sum(
      this.#known.flatMap(({ parts, used }) => [...parts, ...used]),
      account,
    );
  }

  #isOpen({ isEnded, lease }: Known): boolean {
    return !isEnded && lease.end > this.now;
  }

  #find({ id, user, name, start }: PlainLease): Known[] {
    const byId = this.#known.filter((known) => id !== undefined && known.id === id);
    return byId.length > 0
      ? byId
      : this.#known.filter(
          (known) =>
            known.id === undefined &&
            this.#isOpen(known) &&
            known.lease.user === user &&
            known.lease.name === name &&
            known.lease.start === start,
        );
  }

  #nearest(lease: PlainLease): Known | undefined {
    const found = this.#find(lease);
    return found.find((known) => known.lease.end === lease.end) ?? found[0];
  }

  #isRepeated(known: Known, lease: PlainLease, parts: readonly Part[]): boolean {
    if (known.id !== undefined) {
      return this.#isOpen(known);
    }
    const isAlike = known.lease.end === lease.end && known.lease.hosts === lease.hosts;
    return isAlike && (lease.id !== undefined || isDeep(known.parts, parts));
  }

  /** Only what it takes more is held against a lease: more than we know of it, or else than it is said to have. */
  #judge(parts: readonly Part[], known: Known | undefined, said: readonly Part[] | undefined): PlainRefusal {
    const isNew = known === undefined && said === undefined;
    const others = this.count() - (known === undefined ? 0 : 1);
    if (isNew && others + 1 > this.most) {
      return { limit: 'leases' };
    }
    for (const { account, limit } of parts) {
      const asked = sum(parts, account);
      const isKnown = known?.parts.some((part) => part.account === account) === true;
      const had = sum(after(isKnown ? known.parts : (said ?? []), this.now), account);
      const taken = this.taken(account) - sum(after(known?.parts ?? [], this.now), account);
      if (asked > had && taken + asked > limit) {
        return account.startsWith('nobody')
          ? { limit: 'no budget' }
          : { limit: 'budget', asked: asked - had, left: Math.max(0, limit - taken - had) };
      }
    }
    return undefined;
  }

  /** Who pays: the budgets of the project, and those of the user, where there are any. */
  #partsOf({ user, hosts, start, end }: PlainLease): Part[] {
    return [null, user].flatMap((owner) => {
      const own = this.budgets.filter((budget) => budget.user === owner).sort((a, b) => a.from - b.from);
      if (owner !== null && own.length === 0) {
        return [];
      }
      const parts: Part[] = [];
      let from = start;
      for (const { id, hostSeconds: limit, ...budget } of own) {
        const [first, until] = [Math.max(from, budget.from), Math.min(end, budget.until)];
        if (first < until) {
          if (from < first) {
            parts.push({ account: `nobody ${owner}`, limit: 0, hosts, from, until: first });
          }
          parts.push({ account: id, limit, hosts, from: first, until });
          from = until;
        }
      }
      if (from < end) {
        parts.push({ account: `nobody ${owner}`, limit: 0, hosts, from, until: end });
      }
      return parts;
    });
  }
}

function sum(parts: readonly Part[], account: string): number {
  return parts
    .filter((part) => part.account === account)
    .reduce((total, { hosts, from, until }) => total + hosts * (until - from), 0);
}

/** What of it lies before a second. */
function before(parts: readonly Part[], second: number): Part[] {
  return parts.map((part) => ({
    ...part,
    from: Math.min(part.from, second),
    until: Math.min(part.until, second),
  }));
}

/** What of it lies behind it. */
function after(parts: readonly Part[], second: number): Part[] {
  return parts.map((part) => ({
    ...part,
    from: Math.max(part.from, second),
    until: Math.max(part.until, second),
  }));
}

function isDeep(one: readonly Part[], other: readonly Part[]): boolean {
  const text = (parts: readonly Part[]) =>
    JSON.stringify(parts.map(({ account, hosts, from, until }) => [account, hosts, from, until]));
  return text(one) === text(other);
}
