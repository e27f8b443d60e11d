/** Budgets over time: past and planned use of each. */

import type { Wait } from '../../base/deadline.ts';
import { timedYield } from '../../base/yield-to-event-loop.ts';
import { type Amount, type Budget, budgetAccount, larger, smaller } from '../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import { budgetOf } from '../budgets/rows.ts';
import type { Ledger } from '../ledger.ts';
import { rows, type Work } from '../storage/database.ts';
import { isAmong } from '../storage/query-parts.ts';
import { Cumulative, type Share } from './charges.ts';
import { leaseSpan } from './lease-span.ts';
import { reading } from './pages.ts';

export interface BudgetOverTime {
  readonly budget: bigint;
  readonly amount: Amount;
  /** Seconds of the epoch, like all times here. */
  readonly validFrom: bigint;
  readonly validUntil: bigint;
  readonly now: bigint;
  /**
   * Sorted by time. `used`: use of the budget up to then; planned for times after `now`. At the end of the
   * validity it equals what is taken.
   */
  readonly points: readonly { readonly at: bigint; readonly used: Amount }[];
  /** Whether points are missing at the start: too many leases, or folded ones. Existing points are exact. */
  readonly isPartial: boolean;
}

interface BudgetsOverTimeQuery {
  readonly projectId: string;
  /** Seconds of the epoch; at most `MAX_DAYS` days. */
  readonly from: bigint;
  readonly until: bigint;
  /** Per budget, at most `MAX_POINTS`; its first and last moment and `now` are added. */
  readonly points: number;
}

const MAX_POINTS = 1000;
/** A year of weekly budgets. */
const MAX_BUDGETS = 60;
const PIECE = 100;

/**
 * The use over time of each of the project's own budgets in force at some time between `from` and `until`;
 * only the latest 60. Computed backwards from what is taken, so earlier leases are not read.
 * @throws LedgerUnavailableError
 */
export async function budgetsOverTime(
  ledger: Ledger,
  query: BudgetsOverTimeQuery,
  wait: Wait,
): Promise<readonly BudgetOverTime[]> {
  const read = reading(ledger, wait);
  const budgets = await read(() => budgetsBetween(ledger, query));
  const { projectId } = query;
  const from = budgets.reduce(
    (time, { validFrom }) => smaller(time, larger(validFrom, query.from)),
    query.until,
  );
  const until = budgets.reduce((time, { validUntil }) => larger(time, validUntil), from);
  if (from >= until) {
    return [];
  }
  const { leases, completeFrom } = await leaseSpan(ledger, { projectId, from, until }, wait);
  const taken = await read(() => balances(ledger, projectId, budgets));
  const now = ledger.now() / MICROSECONDS_PER_SECOND;
  const overTime = new Map(
    budgets.map((budget) => {
      const start = larger(larger(budget.validFrom, query.from), completeFrom);
      const end = smaller(budget.validUntil, query.until);
      const times = start < end ? timesBetween(start, end, query.points, now) : [];
      // The last time collects everything that is charged.
      const used = new Cumulative([...times, END_OF_TIME]);
      return [
        budgetAccount(budget),
        { budget, times, used, isPartial: start > larger(budget.validFrom, query.from) },
      ];
    }),
  );
  const yieldIfDue = timedYield();
  for (const [index, { shares }] of leases.entries()) {
    if (index % PIECE === 0) {
      await yieldIfDue();
    }
    for (const share of shares as readonly Share[]) {
      overTime.get(share.account)?.used.add(share);
    }
  }
  return [...overTime].map(([account, { budget, times, used, isPartial }]) => {
    const totals = used.totals();
    // Leases that were not read were used before all of these times.
    const before = (taken.get(account) ?? 0n) - (totals.at(-1) ?? 0n);
    const { id, amount, validFrom, validUntil } = budget;
    const points = times.map((at, index) => ({ at, used: before + (totals[index] ?? 0n) }));
    return { budget: id, amount, validFrom, validUntil, now, points, isPartial };
  });
}

const END_OF_TIME = 2n ** 62n;

/** Sorted; includes `now` if it lies between. */
function timesBetween(start: bigint, end: bigint, points: number, now: bigint): bigint[] {
  const steps = BigInt(Math.max(1, Math.min(points, MAX_POINTS)));
  const times = new Set([start, end]);
  for (let step = 1n; step < steps; step += 1n) {
    times.add(start + ((end - start) * step) / steps);
  }
  if (start < now && now < end) {
    times.add(now);
  }
  return [...times].sort((a, b) => (a < b ? -1 : 1));
}

function* budgetsBetween(
  { database }: Ledger,
  { projectId, from, until }: BudgetsOverTimeQuery,
): Work<Budget[]> {
  const query = database.queries
    .selectFrom('budgets')
    .selectAll()
    .where('project_id', '=', projectId)
    .where('user_id', 'is', null)
    .where('removed_at', 'is', null)
    .where('valid_until', '>', from)
    .where('valid_from', '<', until)
    .orderBy('valid_until', 'desc')
    .limit(MAX_BUDGETS);
  return (yield* rows(query.compile())).reverse().map(budgetOf);
}

function* balances(
  { database }: Ledger,
  projectId: string,
  budgets: readonly Budget[],
): Work<Map<string, Amount>> {
  const query = database.queries
    .selectFrom('accounts')
    .select(['name', 'balance'])
    .where('project_id', '=', projectId)
    .where(isAmong(database.dialect, 'name', budgets.map(budgetAccount)));
  return new Map((yield* rows(query.compile())).map(({ name, balance }) => [name, balance]));
}
