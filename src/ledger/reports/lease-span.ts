/** The leases of a project in a time span, and their use over time: read in batches, up to a limit. */

import { sql } from 'kysely';
import type { Wait } from '../../base/deadline.ts';
import { type Amount, ceil, larger, smaller } from '../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import { resourcePeriods } from '../accounting/demand.ts';
import { type FoldedTotals, foldedOf } from '../folding/totals.ts';
import type { Ledger } from '../ledger.ts';
import { rows, type Work } from '../storage/database.ts';
import type { LeaseRow, LeaseState } from '../storage/schema.ts';
import { type ChargedRow, endedBefore, type Share, sharesOf, usedBefore } from './charges.ts';
import { type BudgetAccounts, budgetAccounts, CHARGED, chargesOf, projectShares } from './leases.ts';
import { type ReadPiece, reading } from './pages.ts';

export interface SpanLease {
  readonly userId: string;
  /** The part that counts for the project: see `projectShares`; not cut to the span. */
  readonly shares: readonly Share[];
  /** What it takes from all budgets. */
  readonly charges: readonly Share[];
  /**
   * Reserved resources, in seconds per resource type. `undefined` = unknown: recorded by an older version.
   */
  readonly resources: readonly Share[] | undefined;
  /** Seconds of the epoch. */
  readonly from: bigint;
  readonly until: bigint;
}

export interface LeaseSpan {
  readonly leases: readonly SpanLease[];
  /** Complete from this second on: the start of the span, or later with too many or folded leases. */
  readonly completeFrom: bigint;
  /** Folded leases of the project; `undefined` = none. */
  readonly folded: FoldedTotals | undefined;
}

/** Maximum number of leases that are read. */
const MAX_READ = 3000;
/** Leases in one batch: their claims are read and parsed at once. */
const PIECE = 100;
/** Index entries skipped in one step. */
const PASSED = 10_000;

/**
 * `from`, `until`: seconds of the epoch. Leases with the latest end are read first. Leases that ended while
 * it was uncertain whether they had been moved to a time after the span are missing.
 * @throws LedgerUnavailableError
 */
export async function leaseSpan(
  ledger: Ledger,
  { projectId, from, until }: { readonly projectId: string; readonly from: bigint; readonly until: bigint },
  wait: Wait,
): Promise<LeaseSpan> {
  const read = reading(ledger, wait);
  const budgets = await read(() => budgetAccounts(ledger, projectId));
  const leases: SpanLease[] = [];
  let completeFrom = from;
  for (const state of ['open', 'ended'] as const) {
    const of = { ledger, projectId, state, budgets, from, until };
    const lowest = await readLeases(of, read, leases);
    if (lowest !== undefined) {
      completeFrom = larger(completeFrom, ceil(lowest));
    }
  }
  // The use of folded leases over time is unknown. Read last, so that leases folded in the meantime are
  // included.
  const folded = await read(() => foldedOf(ledger.database, projectId));
  completeFrom = larger(completeFrom, ceil(folded?.until ?? 0n));
  return { leases, completeFrom: smaller(completeFrom, until), folded };
}

interface Of {
  readonly ledger: Ledger;
  readonly projectId: string;
  readonly state: LeaseState;
  readonly budgets: BudgetAccounts;
  /** Seconds of the epoch. */
  readonly from: bigint;
  readonly until: bigint;
}

type Row = ChargedRow & Pick<LeaseRow, 'id' | 'user_id'>;

/**
 * For a span long ago, the index has many leases that start after it: these are skipped without reading them.
 * Resolves to the lowest end that was read, in microseconds of the epoch; `undefined` = no more leases.
 */
async function readLeases(of: Of, read: ReadPiece, leases: SpanLease[]): Promise<bigint | undefined> {
  let high: bigint | undefined;
  do {
    const [above, low]: [bigint | undefined, bigint] = [high, await read(() => edge(of, high))];
    let last: Row | undefined;
    do {
      const after = last;
      const found = await read(() => piece(of, { low, high: above, after }));
      leases.push(...found.leases);
      last = found.last;
      if (leases.length >= MAX_READ && (last !== undefined || low > of.from * MICROSECONDS_PER_SECOND)) {
        return last?.ends_at ?? low;
      }
    } while (last !== undefined);
    high = low;
  } while (high > of.from * MICROSECONDS_PER_SECOND);
  return undefined;
}

/** The end of the lease `PASSED` entries further down in the index; if none, the start of the span. */
function* edge({ ledger, projectId, state, from }: Of, high: bigint | undefined): Work<bigint> {
  const lowest = from * MICROSECONDS_PER_SECOND;
  let query = ledger.database.queries
    .selectFrom('leases')
    .select('ends_at')
    .where('project_id', '=', projectId)
    .where('state', '=', state)
    .where('ends_at', '>', lowest);
  if (high !== undefined) {
    query = query.where('ends_at', '<', high);
  }
  const found = yield* rows(query.orderBy('ends_at', 'desc').offset(PASSED).limit(1).compile());
  return found[0]?.ends_at ?? lowest;
}

/**
 * Leases that end after `low` and at the latest at `high`, latest first. `last`: there may be more after it.
 */
function* piece(
  { ledger, projectId, state, budgets, until }: Of,
  { low, high, after }: { low: bigint; high: bigint | undefined; after: Row | undefined },
): Work<{ leases: SpanLease[]; last: Row | undefined }> {
  let query = ledger.database.queries
    .selectFrom('leases')
    .select(CHARGED)
    .where('project_id', '=', projectId)
    .where('state', '=', state)
    .where('ends_at', '>', low);
  if (after !== undefined) {
    query = query.where(
      sql<boolean>`(ends_at, starts_at, id) < (${after.ends_at}, ${after.starts_at}, ${after.id})`,
    );
  }
  if (high !== undefined) {
    query = query.where('ends_at', '<=', high);
  }
  const begins = until * MICROSECONDS_PER_SECOND;
  query =
    state === 'open'
      ? // Leases that may have been moved may start earlier than the row says; there are few of them.
        query.where((row) => row.or([row('starts_at', '<', begins), row('alternatives', 'is not', null)]))
      : query.where('starts_at', '<', begins);
  const found = yield* rows(
    query
      .orderBy('ends_at', 'desc')
      .orderBy('starts_at', 'desc')
      .orderBy('id', 'desc')
      .limit(PIECE)
      .compile(),
  );
  const charges = yield* chargesOf(ledger, found);
  return {
    leases: found.map((row) => spanLease(row, sharesOf(row, charges.get(row.id), budgets), budgets)),
    last: found.length < PIECE ? undefined : found.at(-1),
  };
}

export function spanLease(row: Row, charges: readonly Share[], budgets: BudgetAccounts): SpanLease {
  const shares = projectShares(charges, budgets);
  const from = row.starts_at / MICROSECONDS_PER_SECOND;
  const over = endedBefore(row);
  const end = over ?? ceil(row.ends_at);
  const until = larger(from, end);
  const resources = row.resources === null ? undefined : resourceShares(row.resources, from, until);
  const { user_id: userId } = row;
  // The most expensive of its alternatives may be at another time.
  return {
    userId,
    shares,
    charges,
    resources,
    from: shares.reduce((time, share) => smaller(time, share.from), from),
    until: shares.reduce((time, share) => larger(time, share.until), until),
  };
}

function resourceShares(recorded: string, start: bigint, end: bigint): Share[] {
  const shares: Share[] = [];
  let from = start;
  for (const { until: change = end, counts } of resourcePeriods(recorded)) {
    const until = smaller(change, end);
    if (from < until) {
      for (const [account, count] of counts) {
        shares.push({ account, amount: BigInt(count) * (until - from), from, until });
      }
      from = until;
    }
  }
  return shares;
}

/** After every lease, in seconds of the epoch. */
const NEVER = 2n ** 43n;

/**
 * Account → the part of its balance that is not used yet. `undefined` = too many pending and active leases to
 * compute.
 * @throws LedgerUnavailableError
 */
export async function plannedUse(
  ledger: Ledger,
  projectId: string,
  wait: Wait,
): Promise<ReadonlyMap<string, Amount> | undefined> {
  const now = ledger.now() / MICROSECONDS_PER_SECOND;
  const { leases, completeFrom } = await leaseSpan(ledger, { projectId, from: now, until: NEVER }, wait);
  if (completeFrom > now) {
    return undefined;
  }
  const planned = new Map<string, Amount>();
  for (const share of leases.flatMap(({ charges }) => charges)) {
    const rest = share.amount - usedBefore(share, now);
    planned.set(share.account, (planned.get(share.account) ?? 0n) + rest);
  }
  return planned;
}
