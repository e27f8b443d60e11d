/** The rows of a usage report, while leases are added. */
import { type Amount, ceil, floor, larger, smaller } from '../../../filter/claim.ts';
import { resourcePeriods } from '../../accounting/demand.ts';
import { charge, parseClaims } from '../../accounting/recorded-claim.ts';
import type { FoldedTotals } from '../../folding/totals.ts';
import { endedBefore, type Share, sharesOf, usedBefore } from '../charges.ts';
import { spanLease } from '../lease-span.ts';
import type { BudgetAccounts } from '../leases.ts';
import type { LeaseGroup, OtherLease, PieceQuery } from './pieces.ts';

export const USAGE_KEYS = ['project', 'user', 'month', 'resource_type'] as const;
export type UsageKey = (typeof USAGE_KEYS)[number];

export interface UsageReportQuery {
  /** `undefined` = all. */
  readonly projectIds: readonly string[] | undefined;
  /** Seconds of the epoch; at most `MAX_REPORT_DAYS` apart. */
  readonly from: bigint;
  readonly until: bigint;
  /** `user`: one row per user and project. Months are in UTC. */
  readonly by: UsageKey;
  /** Whether each row is for one project and one month, in addition to `by`. Default: no. */
  readonly isDetailed?: boolean;
  /** Throws a `TooManyRowsError` if there are more rows. Default: unlimited. */
  readonly most?: number;
  /** Whether totals of leases are cached for the next report of this process. Default: no. */
  readonly cachesTotals?: boolean;
}

/** Ten years. */
export const MAX_REPORT_DAYS = 3660;

export class TooManyRowsError extends Error {
  override readonly name = 'TooManyRowsError';
}

interface UsageSums {
  /** Taken from project budgets; 0 for resource types, which have no cost. */
  amount: Amount;
  /** Taken from user budgets. If a project and its user both have one, both pay for the same usage. */
  userAmount: Amount;
  /** Hosts, instances or addresses, times seconds. */
  resourceSeconds: bigint;
  /** Leases in this time; for a type, leases that reserve it. */
  leases: number;
  /** Leases that ended before their end date, and their unused reserved time. */
  endedEarly: number;
  unusedSeconds: bigint;
}

export interface UsageRow extends Readonly<UsageSums> {
  /** `null` = all projects, as for months and types. */
  readonly projectId: string | null;
  /** `null` also for folded leases, whose user is unknown. */
  readonly userId: string | null;
  readonly resourceType: string | null;
  /** Seconds of the epoch. */
  readonly from: bigint;
  readonly until: bigint;
}

/** Totals of leases in a report. */
export interface Totals {
  readonly rows: readonly UsageRow[];
  /** See `leasesOfUnknownResources`. */
  readonly unknown: number;
  /** The time in which some of the leases are charged, in seconds; `undefined` = only during their dates. */
  readonly first: bigint | undefined;
  readonly last: bigint | undefined;
}

export interface UsageReport {
  /** By time, then by usage, largest first. */
  readonly rows: readonly UsageRow[];
  /** Leases in this time with unknown resources: recorded by an older version. */
  readonly leasesOfUnknownResources: number;
  /** Folded leases that may lie in this time: they count only in amounts. `undefined` = none. */
  readonly folded: FoldedTotals | undefined;
  /** Taken by folded leases, perhaps outside this time: not counted in any row. */
  readonly undated: { readonly amount: Amount; readonly userAmount: Amount };
}

export type ReportBudget =
  BudgetAccounts extends ReadonlyMap<string, infer Of> ? Of & { readonly userId: string | null } : never;

interface Place {
  readonly project_id: string;
  readonly user_id: string | null;
  readonly part: bigint | number;
}

interface TypeSums {
  resourceSeconds: bigint;
  unusedSeconds: bigint;
}

type Added = Partial<Omit<UsageSums, keyof TypeSums>> & { readonly types?: ReadonlyMap<string, TypeSums> };

export class ReportSums {
  readonly query: UsageReportQuery;
  readonly budgets: ReadonlyMap<string, ReportBudget>;
  readonly pieces: Omit<PieceQuery, 'projectId'>;
  readonly #edges: readonly bigint[];
  readonly #rows = new Map<string, UsageRow & UsageSums>();
  readonly #undated = { amount: 0n, userAmount: 0n };
  #folded: FoldedTotals | undefined;
  #unknown = 0;
  /** First and last use by the leases that were read separately, in seconds. */
  #first: bigint | undefined;
  #last: bigint | undefined;

  constructor(query: UsageReportQuery, budgets: ReadonlyMap<string, ReportBudget>) {
    const { by, isDetailed } = query;
    this.query = query;
    this.#edges = by === 'month' || isDetailed === true ? monthsOf(query) : [query.from, query.until];
    this.budgets = budgets;
    const hasAmounts = by !== 'resource_type';
    const byProject = isDetailed === true || by === 'project' || by === 'user';
    this.pieces = { edges: this.#edges, byProject, byUser: by === 'user', hasAmounts };
  }

  addGroup(group: LeaseGroup): void {
    const leases = Number(group.leases);
    const types = new Map(
      [...(resourcePeriods(group.resources).at(-1)?.counts ?? [])].map(([type, count]) => [
        type,
        { resourceSeconds: BigInt(count) * group.run, unusedSeconds: BigInt(count) * group.unused },
      ]),
    );
    this.#add(group, { leases, endedEarly: Number(group.early), types });
    for (const claim of group.claims === '' ? [] : parseClaims(group.claims)) {
      const isWhole = claim.kind === 'usage' && claim.from === 0n && claim.until === 1n;
      this.addCharge(group, claim.account, charge(claim) * (isWhole ? group.run : group.leases));
    }
  }

  /** Ignores accounts other than budgets. */
  addCharge(place: Place, account: string, amount: Amount): void {
    const budget = this.budgets.get(account);
    if (budget !== undefined && amount !== 0n) {
      this.#add(place, { [budget.isOfUser ? 'userAmount' : 'amount']: amount });
    }
  }

  /**
   * Adds totals of leases whose whole use lies within this report and within the report that computed them.
   */
  addTotals({ rows, unknown }: Totals): void {
    for (const { projectId, userId, resourceType, from, until: _, ...sums } of rows) {
      const next = this.#edges.findIndex((edge, index) => index > 0 && edge > from);
      const place = { project_id: projectId ?? '', user_id: userId, part: next - 1 };
      increase(this.#row(place, resourceType), sums);
    }
    this.#unknown += unknown;
  }

  /** The totals so far, without folded leases. */
  totals(): Totals {
    return {
      rows: [...this.#rows.values()],
      unknown: this.#unknown,
      first: this.#first,
      last: this.#last,
    };
  }

  addLease(row: OtherLease, charged: ReadonlyMap<string, Amount> | undefined): void {
    const { project_id, user_id } = row;
    const lease = spanLease(row, sharesOf(row, charged, this.budgets), this.budgets);
    const unused = unusedTime(row);
    const counts = resourcePeriods(row.resources).at(-1)?.counts ?? new Map<string, number>();
    for (const { from, until } of lease.charges) {
      this.#first = smaller(this.#first ?? from, from);
      this.#last = larger(this.#last ?? until, until);
    }
    let isThere = false;
    for (const [part, from] of this.#edges.slice(0, -1).entries()) {
      const until = this.#edges[part + 1] ?? from;
      const place = { project_id, user_id, part };
      const used = (share: Share) => usedBefore(share, until) - usedBefore(share, from);
      for (const share of this.pieces.hasAmounts ? lease.charges : []) {
        this.addCharge(place, share.account, used(share));
      }
      if (row.undone === 1n) {
        continue;
      }
      const isIn = lease.from < until && (lease.until > from || lease.from >= from);
      const left = unused && larger(0n, smaller(unused.until, until) - larger(unused.from, from));
      if (!isIn && !left) {
        continue;
      }
      const types = new Map<string, TypeSums>();
      for (const [type, count] of left ? counts : []) {
        types.set(type, { resourceSeconds: 0n, unusedSeconds: BigInt(count) * (left ?? 0n) });
      }
      for (const share of lease.resources ?? []) {
        const sums = types.get(share.account) ?? { resourceSeconds: 0n, unusedSeconds: 0n };
        sums.resourceSeconds += used(share);
        types.set(share.account, sums);
      }
      isThere ||= isIn;
      const endsHere = unused !== undefined && unused.from >= from && unused.from < until;
      this.#add(place, { leases: isIn ? 1 : 0, endedEarly: endsHere ? 1 : 0, types });
    }
    this.#unknown += isThere && row.resources === null ? 1 : 0;
  }

  addFold({ leases, until }: FoldedTotals): void {
    const before = this.#folded;
    this.#folded =
      before === undefined
        ? { leases, until }
        : { leases: before.leases + leases, until: larger(before.until, until) };
  }

  /** `end`: they have used nothing from this second on. */
  addFoldedBalance(project_id: string, account: string, amount: Amount, end: bigint): void {
    const budget = this.budgets.get(account);
    const first = this.#edges[0] ?? 0n;
    const last = this.#edges.at(-1) ?? 0n;
    if (!this.pieces.hasAmounts || budget === undefined || end <= first || budget.from >= last) {
      return;
    }
    const part = this.#edges.findIndex(
      (edge, index) => edge <= budget.from && end <= (this.#edges[index + 1] ?? edge),
    );
    if (part >= 0) {
      this.addCharge({ project_id, user_id: budget.userId, part }, account, amount);
    } else {
      this.#undated[budget.isOfUser ? 'userAmount' : 'amount'] += amount;
    }
  }

  report(): UsageReport {
    const rows = [...this.#rows.values()].sort(
      (a, b) =>
        compared(a.from, b.from) ||
        compared(b.amount, a.amount) ||
        compared(b.userAmount, a.userAmount) ||
        compared(b.resourceSeconds, a.resourceSeconds) ||
        compared(nameOf(a), nameOf(b)),
    );
    return {
      rows,
      leasesOfUnknownResources: this.#unknown,
      folded: this.#folded,
      undated: this.#undated,
    };
  }

  #add(place: Place, { types = new Map(), ...sums }: Added): void {
    if (this.query.by === 'resource_type') {
      for (const [type, ofType] of types) {
        if (ofType.resourceSeconds > 0n || ofType.unusedSeconds > 0n) {
          increase(this.#row(place, type), { ...sums, ...ofType });
        }
      }
      return;
    }
    const row = this.#row(place, null);
    increase(row, sums);
    for (const ofType of types.values()) {
      increase(row, ofType);
    }
  }

  #row({ project_id, user_id, part }: Place, resourceType: string | null): UsageSums {
    const { by, isDetailed = false, most = Number.POSITIVE_INFINITY } = this.query;
    const projectId = isDetailed || by === 'project' || by === 'user' ? project_id : null;
    const userId = by === 'user' ? user_id : null;
    const key = JSON.stringify([projectId, userId, resourceType, Number(part)]);
    const known = this.#rows.get(key);
    if (known !== undefined) {
      return known;
    }
    if (this.#rows.size >= most) {
      throw new TooManyRowsError(`there are more than ${most} rows`);
    }
    const [from = 0n, until = 0n] = this.#edges.slice(Number(part));
    const row = {
      projectId,
      userId,
      resourceType,
      from,
      until,
      amount: 0n,
      userAmount: 0n,
      resourceSeconds: 0n,
      leases: 0,
      endedEarly: 0,
      unusedSeconds: 0n,
    };
    this.#rows.set(key, row);
    return row;
  }
}

function increase(row: UsageSums, by: Partial<UsageSums>): void {
  row.amount += by.amount ?? 0n;
  row.userAmount += by.userAmount ?? 0n;
  row.resourceSeconds += by.resourceSeconds ?? 0n;
  row.leases += by.leases ?? 0;
  row.endedEarly += by.endedEarly ?? 0;
  row.unusedSeconds += by.unusedSeconds ?? 0n;
}

/** The rest of its time when it ended; `undefined` = none. */
function unusedTime(row: OtherLease): { from: bigint; until: bigint } | undefined {
  const over = endedBefore(row);
  return over === undefined
    ? undefined
    : { from: larger(over, floor(row.starts_at)), until: ceil(row.ends_at) };
}

/** Starts of months in UTC, and the first and last second of the time. */
function monthsOf({ from, until }: UsageReportQuery): bigint[] {
  const edges = [from];
  for (let month = nextMonth(from); month < until; month = nextMonth(month)) {
    edges.push(month);
  }
  return [...edges, until];
}

/** The second in which the next month starts; `months` may be 0 or negative. */
export function nextMonth(second: bigint, months = 1): bigint {
  const date = new Date(Number(second) * 1000);
  return BigInt(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months)) / 1000n;
}

function nameOf({ projectId, userId, resourceType }: UsageRow): string {
  return JSON.stringify([projectId, userId, resourceType]);
}

export function compared<Some extends bigint | string>(a: Some, b: Some): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
