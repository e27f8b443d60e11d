/** The page's view of a project: its leases around now, and how much they are still to use. */

import type { Wait } from '../../base/deadline.ts';
import type { Amount } from '../../filter/amount.ts';
import { type Instant, MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import { alternativesOf, heldBy, refundOf } from '../accounting/alternatives.ts';
import type { Ledger } from '../ledger.ts';
import { rows, type Work } from '../storage/database.ts';
import type { LeaseRow } from '../storage/schema.ts';

export interface TimelineLease {
  readonly leaseId: string | null;
  readonly name: string;
  readonly userId: string;
  readonly start: Instant;
  /** The real end, if it ended before its end date. */
  readonly end: Instant;
  readonly state: 'pending' | 'active' | 'ended';
}

export interface ProjectTimeline {
  readonly now: Instant;
  /** The leases nearest to now, sorted by start. Leases that ended before they started are left out. */
  readonly leases: readonly TimelineLease[];
  /** How many leases the project ever had; at most `COUNTED` are counted. */
  readonly recorded: number;
  /**
   * Account → what pending and active leases are still to use. `undefined` = there are too many of them to compute it quickly.
   */
  readonly planned: ReadonlyMap<string, Amount> | undefined;
}

/** More leases are shown as "more than": the cost of a page must not grow with the age of a project. */
export const COUNTED = 10_000;
/** Maximum number of pending and active leases that are read. */
const OPEN_LIMIT = 5000;
/** Maximum number of ended leases that are read. */
const ENDED_LIMIT = 500;

/** At most `limit` leases. @throws LedgerUnavailableError */
export function projectTimeline(
  ledger: Ledger,
  projectId: string,
  limit: number,
  wait: Wait,
): Promise<ProjectTimeline> {
  return ledger.read('read', () => timeline(ledger, projectId, limit), wait);
}

/** At most `limit` projects with leases or budgets, most recently active first. @throws LedgerUnavailableError */
export function activeProjects(ledger: Ledger, limit: number, wait: Wait): Promise<string[]> {
  return ledger.read('read', () => active(ledger, limit), wait);
}

function* timeline(ledger: Ledger, project_id: string, limit: number): Work<ProjectTimeline> {
  const now = ledger.now();
  const ofProject = ledger.database.queries.selectFrom('leases').where('project_id', '=', project_id);
  const ofState = (state: LeaseRow['state']) => ofProject.selectAll().where('state', '=', state);
  const open = yield* rows(
    ofState('open').where('ends_at', '>', now).orderBy('ends_at').limit(OPEN_LIMIT).compile(),
  );
  // Past their end, which was not noticed yet.
  const overdue = yield* rows(
    ofState('open').where('ends_at', '<=', now).orderBy('ends_at', 'desc').limit(limit).compile(),
  );
  const ended = yield* rows(ofState('ended').orderBy('ends_at', 'desc').limit(ENDED_LIMIT).compile());
  const counted = ofProject.select('id').limit(COUNTED).as('counted');
  const count = ledger.database.queries
    .selectFrom(counted)
    .select((lease) => lease.fn.count<bigint>('id').as('leases'));
  const [total] = yield* rows(count.compile());
  const known = [...open, ...overdue, ...ended].map((row) => leaseOf(row, now));
  return {
    now,
    leases: nearest(
      known.filter(({ start, end }) => start < end),
      now,
      limit,
    ),
    recorded: Number(total?.leases ?? 0n),
    planned: open.length < OPEN_LIMIT ? plannedBy(open, now / MICROSECONDS_PER_SECOND) : undefined,
  };
}

function leaseOf(row: LeaseRow, now: bigint): TimelineLease {
  const end = row.ended_at ?? row.ends_at;
  const isOver = row.state === 'ended' || end <= now;
  return {
    leaseId: row.lease_id,
    name: row.name,
    userId: row.user_id,
    start: row.starts_at,
    end,
    state: isOver ? 'ended' : row.starts_at > now ? 'pending' : 'active',
  };
}

function nearest(leases: readonly TimelineLease[], now: bigint, limit: number): TimelineLease[] {
  const distance = ({ start, end, state }: TimelineLease) =>
    state === 'active' ? 0n : state === 'pending' ? start - now : now - end;
  return [...leases]
    .sort((a, b) => compared(distance(a), distance(b)))
    .slice(0, limit)
    .sort((a, b) => compared(a.start, b.start) || compared(a.end, b.end));
}

function plannedBy(open: readonly LeaseRow[], second: bigint): Map<string, Amount> {
  const planned = new Map<string, Amount>();
  for (const row of open) {
    const alternatives = alternativesOf(row);
    const held = heldBy(alternatives);
    for (const [account, amount] of refundOf(alternatives, second)) {
      if (!held.has(account)) {
        planned.set(account, (planned.get(account) ?? 0n) + amount);
      }
    }
  }
  return planned;
}

/** How many of the latest leases and budget changes are read: the ledger may hold millions. */
const LATEST = 1000;

function* active(ledger: Ledger, limit: number): Work<string[]> {
  const { queries } = ledger.database;
  const leases = queries.selectFrom('leases').select(['project_id', 'recorded_at as at']);
  const changes = queries.selectFrom('budget_changes').select(['project_id', 'at']);
  const latest = [
    ...(yield* rows(leases.orderBy('id', 'desc').limit(LATEST).compile())),
    ...(yield* rows(changes.orderBy('id', 'desc').limit(LATEST).compile())),
  ].sort((a, b) => compared(b.at, a.at));
  // A few projects may have made all of these: fill up with others.
  const others = queries.selectFrom('projects').select('project_id').orderBy('project_id').limit(limit);
  const projects = [...latest, ...(yield* rows(others.compile()))].map(({ project_id }) => project_id);
  return [...new Set(projects)].slice(0, limit);
}

function compared(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
