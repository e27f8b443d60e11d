/** The projects of the ledger, in pages. */
import { sql } from 'kysely';
import type { Wait } from '../../base/deadline.ts';
import type { Amount } from '../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import type { Ledger } from '../ledger.ts';
import { rows } from '../storage/database.ts';
import { containsText, isAmong, textsTable } from '../storage/query-parts.ts';
import { keyOf, type PageOf, type PageQuery, pageOf, reading } from './pages.ts';

interface ProjectsQuery extends PageQuery {
  /** Only these; `undefined` = all. */
  readonly projectIds: readonly string[] | undefined;
  /** Only ids that contain this text, ignoring the case of a to z; `undefined` = all. */
  readonly search: string | undefined;
}

export interface ProjectRow {
  readonly projectId: string;
  /** Pending and active leases, counted up to `COUNTED_OPEN`. */
  readonly openLeases: number;
  /** The project's own budget in force now; `null` = none. */
  readonly budget: {
    readonly amount: Amount;
    readonly taken: Amount;
    readonly left: Amount;
    /** Seconds of the epoch. */
    readonly validUntil: bigint;
  } | null;
}

/** Projects with more open leases show "1000 or more": a page of projects must not count millions. */
export const COUNTED_OPEN = 1000;
/** Projects whose leases are counted at once. */
const PIECE = 25;

/**
 * Projects with leases or budgets, by id in the database's order. @throws LedgerUnavailableError, CursorError
 */
export async function listProjects(
  ledger: Ledger,
  query: ProjectsQuery,
  wait: Wait,
): Promise<PageOf<ProjectRow>> {
  const read = reading(ledger, wait);
  const found = await read(() => rows(idsQuery(ledger, query)));
  const page = pageOf(found, query.limit, ({ project_id }) => [project_id]);
  const ids = page.items.map(({ project_id }) => project_id);
  const items: ProjectRow[] = [];
  for (let start = 0; start < ids.length; start += PIECE) {
    const some = ids.slice(start, start + PIECE);
    items.push(...(await read(() => projectRows(ledger, some))));
  }
  return { items, next: page.next };
}

function idsQuery({ database }: Ledger, { projectIds, search, limit, after }: ProjectsQuery) {
  const { queries, dialect } = database;
  let query = queries.selectFrom('projects').select('project_id');
  if (projectIds !== undefined) {
    query = query.where(isAmong(dialect, 'project_id', projectIds));
  }
  if (search !== undefined) {
    query = query.where(containsText(dialect, 'project_id', search));
  }
  if (after !== undefined) {
    const [last] = keyOf(after, ['text']);
    query = query.where('project_id', '>', String(last));
  }
  return query
    .orderBy('project_id')
    .limit(limit + 1)
    .compile();
}

function* projectRows(ledger: Ledger, ids: readonly string[]) {
  const { queries, dialect } = ledger.database;
  const now = ledger.now();
  const second = now / MICROSECONDS_PER_SECOND;
  const counts = yield* rows(
    sql<{ project_id: string; leases: bigint }>`
      select value as project_id, (select count(*) from (
        select 1 from leases where leases.project_id = value and state = 'open' and ends_at > ${now}
        limit ${sql.lit(COUNTED_OPEN)}) as counted) as leases
      from ${textsTable(dialect, ids)}`.compile(queries),
  );
  const budgets = yield* rows(
    queries
      .selectFrom('budgets')
      .leftJoin('accounts', (join) =>
        join
          .onRef('accounts.project_id', '=', 'budgets.project_id')
          .on('accounts.name', '=', sql<string>`'usage_budget/' || budgets.id`),
      )
      .select(['budgets.project_id', 'valid_until', 'amount', 'balance'])
      .where(isAmong(dialect, 'budgets.project_id', ids))
      .where('user_id', 'is', null)
      .where('removed_at', 'is', null)
      .where('valid_from', '<=', second)
      .where('valid_until', '>', second)
      .compile(),
  );
  const leasesOf = new Map(counts.map(({ project_id, leases }) => [project_id, Number(leases)]));
  const budgetOf = new Map(
    budgets.map(({ project_id, valid_until: validUntil, amount, balance }) => {
      const taken = balance ?? 0n;
      return [project_id, { amount, taken, left: amount - taken, validUntil }];
    }),
  );
  return ids.map((projectId) => ({
    projectId,
    openLeases: leasesOf.get(projectId) ?? 0,
    budget: budgetOf.get(projectId) ?? null,
  }));
}
