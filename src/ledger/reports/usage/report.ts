/** Usage in a time, of one project or of all: exact sums, whatever happened to the leases. */

import { hash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Semaphore } from '../../../base/concurrency-limiter.ts';
import type { Wait } from '../../../base/deadline.ts';
import { InvalidRequestError } from '../../../base/errors.ts';
import { budgetAccount, ceil, floor, larger, smaller } from '../../../filter/claim.ts';
import type { Ledger } from '../../ledger.ts';
import type { Snapshot, Work } from '../../storage/database.ts';
import { chargesOf } from '../leases.ts';
import { amountOf, type Block, otherLeases, type RowRange, usageBlock, usagePiece } from './pieces.ts';
import {
  MAX_REPORT_DAYS,
  nextMonth,
  type ReportBudget,
  ReportSums,
  type Totals,
  type UsageReport,
  type UsageReportQuery,
} from './sums.ts';

const DAY = 86_400n;

/**
 * The time of a report, in seconds of the epoch. Default: from the start of the month until now. `now`:
 * microseconds.
 * @throws InvalidRequestError with `from` or `until` as `field`
 */
export function reportSpan(
  asked: { readonly from: bigint | undefined; readonly until: bigint | undefined },
  now: bigint,
): { readonly from: bigint; readonly until: bigint } {
  const until = asked.until ?? floor(now);
  const from = asked.from ?? nextMonth(until - 1n, 0);
  if (until <= from) {
    const why = asked.until === undefined ? 'a time before now, or until' : 'a time after from';
    throw new InvalidRequestError(asked.until === undefined ? 'from' : 'until', `expected ${why}`);
  }
  if (until - from > BigInt(MAX_REPORT_DAYS) * DAY) {
    throw new InvalidRequestError('from', `expected at most ${MAX_REPORT_DAYS} days before until`);
  }
  return { from, until };
}

/** Single leases, and groups of leases, that are added before yielding to the event loop. */
const CHUNK = 250;
const GROUPS = 5000;
const states = new WeakMap<Ledger, { readonly semaphore: Semaphore; readonly kept: TotalsCache }>();

/**
 * Reads a snapshot while others write; one report at a time. A lease uses its charge evenly over its time:
 * see `sharesOf`. Use before a second is rounded down, so that parts add up to the whole.
 * @throws LedgerUnavailableError, TooManyRowsError
 */
export async function reportUsage(ledger: Ledger, query: UsageReportQuery, wait: Wait): Promise<UsageReport> {
  const state = states.get(ledger) ?? { semaphore: new Semaphore(1), kept: new TotalsCache() };
  states.set(ledger, state);
  const leave = await state.semaphore.enter(wait);
  try {
    return await ledger.database.snapshot(async (snapshot) => {
      const sums = new ReportSums(query, await budgetsOf(ledger, snapshot, query));
      const kept = query.cachesTotals === true ? state.kept.of(sums) : undefined;
      for (const projectId of query.projectIds ?? [undefined]) {
        if (kept === undefined) {
          await addLeases(ledger, snapshot, sums, projectId, { after: undefined, last: undefined });
        } else {
          await addTotals(ledger, snapshot, sums, projectId, kept);
        }
      }
      await addFolded(ledger, snapshot, sums);
      return sums.report();
    }, wait);
  } finally {
    leave();
  }
}

async function addTotals(
  ledger: Ledger,
  snapshot: Snapshot,
  sums: ReportSums,
  projectId: string | undefined,
  kept: ReturnType<TotalsCache['of']>,
): Promise<void> {
  let last: bigint | undefined;
  do {
    const block = await ran(snapshot, usageBlock(ledger, { ...sums.pieces, projectId }, last));
    let totals = kept.find(projectId, block);
    if (totals === undefined && block.mayCount) {
      const ofBlock = new ReportSums(sums.query, sums.budgets);
      await addLeases(ledger, snapshot, ofBlock, projectId, block.range);
      totals = ofBlock.totals();
      kept.keep(projectId, block, totals);
    }
    await nextTurn();
    if (totals !== undefined) {
      sums.addTotals(totals);
    }
    last = block.range.last;
  } while (last !== undefined);
}

async function addLeases(
  ledger: Ledger,
  snapshot: Snapshot,
  sums: ReportSums,
  projectId: string | undefined,
  range: RowRange,
): Promise<void> {
  let last = range.after;
  do {
    const rest = { ...range, after: last };
    const piece = await ran(snapshot, usagePiece(ledger, { ...sums.pieces, projectId }, rest));
    for (const groups of chunksOf(piece.groups, GROUPS)) {
      await nextTurn();
      for (const group of groups) {
        sums.addGroup(group);
      }
    }
    for (const group of piece.charges) {
      sums.addCharge(group, group.account, amountOf(group));
    }
    for (const numbers of chunksOf(piece.odd, CHUNK)) {
      const some = await ran(snapshot, otherLeases(ledger, numbers));
      const charges = await ran(snapshot, chargesOf(ledger, some));
      await nextTurn();
      for (const lease of some) {
        sums.addLease(lease, charges.get(lease.id));
      }
    }
    last = piece.last;
  } while (last !== undefined);
}

function* chunksOf<Item>(items: readonly Item[], length: number): Iterable<readonly Item[]> {
  for (let start = 0; start < items.length; start += length) {
    yield items.slice(start, start + length);
  }
}

/** The budgets of the projects, including removed ones, since their charges stay. */
async function budgetsOf(ledger: Ledger, snapshot: Snapshot, { projectIds }: UsageReportQuery) {
  const all = ledger.database.queries
    .selectFrom('budgets')
    .select(['id', 'user_id', 'valid_from', 'valid_until']);
  const budgets = new Map<string, ReportBudget>();
  for (const projectId of projectIds ?? [undefined]) {
    const query = projectId === undefined ? all : all.where('project_id', '=', projectId);
    for await (const budget of snapshot.stream(query.compile())) {
      const { user_id: userId, valid_from: from, valid_until: until } = budget;
      budgets.set(budgetAccount(budget), { userId, isOfUser: userId !== null, from, until });
    }
  }
  return budgets;
}

/**
 * Folded leases have only one sum per budget. It counts if the possible time of their use lies within one
 * part, or outside all.
 */
async function addFolded(ledger: Ledger, snapshot: Snapshot, sums: ReportSums): Promise<void> {
  const { queries } = ledger.database;
  const { projectIds, from } = sums.query;
  const isWanted = (projectId: string) => projectIds?.includes(projectId) ?? true;
  const ends = new Map<string, bigint>();
  for await (const { project_id, until, leases } of snapshot.stream(
    queries.selectFrom('folds').select(['project_id', 'until', 'leases']).compile(),
  )) {
    if (isWanted(project_id)) {
      ends.set(project_id, larger(ends.get(project_id) ?? until, until));
      if (ceil(until) > from) {
        sums.addFold({ leases, until });
      }
    }
  }
  if (ends.size === 0) {
    return;
  }
  // A budget may have been valid longer when they were charged.
  const longest = new Map<string, bigint>();
  for await (const { budget: id, valid_until } of snapshot.stream(
    queries.selectFrom('budget_changes').select(['budget', 'valid_until']).compile(),
  )) {
    const account = budgetAccount({ id });
    longest.set(account, larger(longest.get(account) ?? valid_until, valid_until));
  }
  for await (const { project_id, account, amount } of snapshot.stream(
    queries.selectFrom('folded_balances').selectAll().compile(),
  )) {
    const end = ends.get(project_id);
    if (end !== undefined) {
      sums.addFoldedBalance(
        project_id,
        account,
        amount,
        smaller(ceil(end), longest.get(account) ?? ceil(end)),
      );
    }
  }
}

async function ran<Result>(snapshot: Snapshot, work: Work<Result>): Promise<Result> {
  let step = work.next([]);
  while (!step.done) {
    const found: unknown[] = [];
    for await (const row of snapshot.stream(step.value)) {
      found.push(row);
    }
    step = work.next(found);
  }
  return step.value;
}

/** Limit for all totals, about twenty megabytes. The least recently used are dropped. */
const MOST_ROWS = 100_000;

interface Kept {
  readonly checksum: string;
  /** The time that contains the leases and all their use, in seconds. */
  readonly from: bigint;
  readonly until: bigint;
  readonly totals: Totals;
}

/**
 * Leases whose whole use lies within the time of a report have the same totals in every report that contains
 * that time.
 */
export class TotalsCache {
  readonly #kept = new Map<string, Kept>();
  readonly #most: number;
  #rows = 0;

  constructor(most = MOST_ROWS) {
    this.#most = most;
  }

  /** For one report. The name has a digest of the budgets, since the time of use depends on them. */
  of({ query, budgets }: Pick<ReportSums, 'query' | 'budgets'>) {
    const texts = [...budgets].map(([account, budget]) => JSON.stringify([account, ...textsOf(budget)]));
    const digest = hash('sha256', texts.sort().join('\n'), 'base64url');
    const nameOf = (projectId: string | undefined, { range: { after } }: Block) =>
      JSON.stringify([projectId, query.by, query.isDetailed === true, String(after), digest]);
    const checksumOf = ({ range, checksum }: Block) => `${range.last} ${checksum}`;
    const isIn = ({ from, until }: Kept) => from >= query.from && until <= query.until;
    return {
      find: (projectId: string | undefined, block: Block): Totals | undefined => {
        const name = nameOf(projectId, block);
        const kept = this.#kept.get(name);
        if (kept === undefined || kept.checksum !== checksumOf(block) || !isIn(kept)) {
          return undefined;
        }
        this.#keep(name, kept);
        return kept.totals;
      },
      keep: (projectId: string | undefined, block: Block, totals: Totals): void => {
        const from = smaller(totals.first ?? block.from, block.from);
        const until = larger(totals.last ?? block.until, block.until);
        const kept = { from, until, checksum: checksumOf(block), totals };
        if (isIn(kept)) {
          this.#keep(nameOf(projectId, block), kept);
        }
      },
    };
  }

  /** Stores it as the most recently used. */
  #keep(name: string, kept: Kept): void {
    this.#forget(name);
    this.#kept.set(name, kept);
    this.#rows += sizeOf(kept);
    for (const oldest of this.#kept.keys()) {
      if (this.#rows <= this.#most) {
        break;
      }
      this.#forget(oldest);
    }
  }

  #forget(name: string): void {
    const kept = this.#kept.get(name);
    this.#rows -= kept === undefined ? 0 : sizeOf(kept);
    this.#kept.delete(name);
  }
}

/** In rows. */
function sizeOf({ totals }: Kept): number {
  return totals.rows.length + 1;
}

function textsOf(budget: object): string[] {
  return Object.values(budget).map(String);
}
