/** Writes decisions and removes old ones, in the words of both databases. */
import { type Kysely, sql } from 'kysely';
import { rows, type Work } from '../../ledger/storage/database.ts';
import { prepared } from '../../ledger/storage/prepared.ts';
import type { DecisionFiltersTable, DecisionsTable, Tables } from '../../ledger/storage/schema.ts';
import type { Retention } from './contract.ts';
import type { NewRow } from './rows.ts';

type Queries = Kysely<Tables>;

/** One at a time, so that ids become visible in their order: whoever asks for what is newer misses nothing. */
const ORDER = 7_042_615_338_120_944n;
/** The same for those who remove: replicas do not wait for each other. */
const REMOVAL = 7_042_615_338_120_945n;
/** Few: leases wait for each removal from a file. */
const REMOVED = 50;

/** The rows are a list in JSON. */
export function* writeToPostgres(queries: Queries, json: string, replica: string): Work<void> {
  yield* rows(sql`select pg_advisory_xact_lock(${ORDER})`.compile(queries));
  yield* rows(
    sql`
      with added as (
        insert into decisions (at, request_id, operation, outcome, project_id, user_id, lease_id,
          project_label, user_label, asked_start, asked_end, concerns, replica, record)
        select at, request_id, operation, outcome, project_id, user_id, lease_id,
          project_label, user_label, asked_start, asked_end, concerns, ${replica}, record
        from jsonb_to_recordset(${json}::jsonb) as given (at bigint, request_id text, operation text, outcome text,
          project_id text, user_id text, lease_id text, project_label text, user_label text,
          asked_start bigint, asked_end bigint, concerns text, record text)
        returning id, at, project_id, concerns
      )
      insert into decision_filters (decision, filter, project_id, at)
      select id, filter, project_id, at from added, jsonb_array_elements_text(concerns::jsonb) as filter
      where concerns is not null`.compile(queries),
  );
}

/** A file has one writer: one row after the other costs least. */
export class SqliteWriting {
  readonly #addDecision;
  readonly #addFilter;

  constructor(queries: Queries) {
    this.#addDecision = prepared((row: Omit<DecisionsTable, 'id'>) =>
      queries
        .insertInto('decisions')
        .values({ ...columns(row) })
        .returning('id'),
    );
    this.#addFilter = prepared((row: DecisionFiltersTable) =>
      queries.insertInto('decision_filters').values({
        decision: row.decision,
        filter: row.filter,
        project_id: row.project_id,
        at: row.at,
      }),
    );
  }

  *write(json: string, replica: string): Work<void> {
    const given = JSON.parse(json) as readonly NewRow[];
    for (const row of given) {
      const at = BigInt(row.at);
      const [added] = yield* rows(
        this.#addDecision({
          ...row,
          at,
          asked_start: bigint(row.asked_start),
          asked_end: bigint(row.asked_end),
          replica,
        }),
      );
      const names = row.concerns === null ? [] : (JSON.parse(row.concerns) as readonly string[]);
      for (const filter of names) {
        yield* rows(this.#addFilter({ decision: added?.id ?? 0n, filter, project_id: row.project_id, at }));
      }
    }
  }
}

function bigint(text: string | null): bigint | null {
  return text === null ? null : BigInt(text);
}

/** Each by its name: a placeholder stands for the value. */
function columns(row: Omit<DecisionsTable, 'id'>): Omit<DecisionsTable, 'id'> {
  return {
    at: row.at,
    request_id: row.request_id,
    operation: row.operation,
    outcome: row.outcome,
    project_id: row.project_id,
    user_id: row.user_id,
    lease_id: row.lease_id,
    project_label: row.project_label,
    user_label: row.user_label,
    asked_start: row.asked_start,
    asked_end: row.asked_end,
    concerns: row.concerns,
    replica: row.replica,
    record: row.record,
  };
}

/** Removes some of the oldest, if there are too old or too many ones; resolves to how many. By the clock of the database. */
export function* removeOld(queries: Queries, { days, most }: Retention, isSqlite: boolean): Work<number> {
  if (!isSqlite) {
    const [turn] = yield* rows(
      sql<{ mine: boolean }>`select pg_try_advisory_xact_lock(${REMOVAL}) as mine`.compile(queries),
    );
    if (turn?.mine !== true) {
      return 0;
    }
  }
  const now = isSqlite
    ? sql<bigint>`cast((julianday('now') - 2440587.5) * 86400000000 as integer)`
    : sql<bigint>`cast(extract(epoch from clock_timestamp()) * 1000000 as bigint)`;
  const oldest = BigInt(days) * 86_400_000_000n;
  const found = yield* rows(
    sql<{ id: bigint }>`
      select id from (select id from decisions where at < ${now} - cast(${oldest} as bigint) order by at, id limit ${REMOVED}) as old
      union
      select id from (select id from decisions
        where id <= (select max(id) from decisions) - cast(${BigInt(most)} as bigint) order by id limit ${REMOVED}) as many`.compile(
      queries,
    ),
  );
  const ids = found.map(({ id }) => id);
  if (ids.length > 0) {
    yield* rows(queries.deleteFrom('decision_filters').where('decision', 'in', ids).compile());
    yield* rows(queries.deleteFrom('decisions').where('id', 'in', ids).compile());
  }
  return ids.length;
}
