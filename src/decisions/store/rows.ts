/** Converts a decision to a row of the table `decisions`, and back. */

import { type Kysely, sql } from 'kysely';
import { z } from 'zod';
import { rows, type Work } from '../../ledger/storage/database.ts';
import { inFewSizes } from '../../ledger/storage/prepared.ts';
import type { DecisionFiltersTable, Tables } from '../../ledger/storage/schema.ts';
import type { RequestedLease } from '../lease-record.ts';
import { type DecisionRecord, decisionRecordSchema, parsedRecord } from '../record.ts';
import type { Retention, StoredDecision } from './contract.ts';

/** A row to write. Numbers of 64 bits are texts, since rows pass through JSON. */
export interface NewRow {
  /** Microseconds of the epoch; a record has milliseconds. */
  readonly at: number;
  readonly request_id: string;
  readonly operation: string;
  readonly outcome: string;
  readonly project_id: string | null;
  readonly user_id: string | null;
  readonly lease_id: string | null;
  readonly project_label: string | null;
  readonly user_label: string | null;
  readonly asked_start: string | null;
  readonly asked_end: string | null;
  readonly concerns: string | null;
  readonly record: string;
}

export interface ReadRow {
  readonly id: bigint;
  readonly at: bigint;
  readonly asked_start: bigint | null;
  readonly asked_end: bigint | null;
  readonly replica: string;
  readonly record: string;
}

/** Ids are shorter; an index entry of PostgreSQL has at most about 2,700 bytes. */
const LONGEST = 255;
/** Characters that PostgreSQL does not store (NUL), or no database (surrogates). */
export const UNKEPT = /\0|\p{Surrogate}/u;
const EVERY_UNKEPT = /\0|\p{Surrogate}/gu;
/** NUL or an unpaired surrogate in JSON. May have false positives. */
const UNKEPT_IN_JSON = /\\u(?:0000|d[89a-f])/;

/** A record with the request of a refused lease: older versions drop unknown fields. */
const storedRecord = decisionRecordSchema.extend({
  asked_reservations: z.array(z.record(z.string(), z.unknown())).optional(),
});
type StoredRecord = DecisionRecord & { readonly asked_reservations?: RequestedLease['reservations'] };

/**
 * A row in JSON. Characters that cannot be stored are replaced in the record; such texts are not searchable,
 * since different texts must not become equal.
 */
export function rowJson(record: DecisionRecord, asked: RequestedLease | undefined): string {
  const stored: StoredRecord =
    asked === undefined ? record : { ...record, asked_reservations: asked.reservations };
  const json = JSON.stringify(stored);
  const row: NewRow = {
    at: Date.parse(record.time) * 1000,
    request_id: replaced(record.request_id),
    operation: record.operation,
    outcome: record.outcome,
    project_id: keyOf(record.project_id),
    user_id: keyOf(record.user_id),
    lease_id: keyOf(record.lease_id),
    project_label: labelOf(record.project_name, record.project_domain),
    user_label: labelOf(record.user_name, record.user_domain),
    asked_start: asked === undefined ? null : String(asked.start),
    asked_end: asked === undefined ? null : String(asked.end),
    concerns: concernsOf(record),
    record: UNKEPT_IN_JSON.test(json) ? JSON.stringify(storable(stored)) : json,
  };
  return JSON.stringify(row);
}

/** Empty = a record that a later version wrote, and this one cannot read. */
export function storedDecision({ id, asked_start, asked_end, replica, record }: ReadRow): StoredDecision[] {
  const parsed = parsedRecord(record, storedRecord);
  if (parsed === undefined) {
    return [];
  }
  const { asked_reservations: reservations, ...decided } = parsed;
  const asked =
    asked_start === null || asked_end === null
      ? undefined
      : { start: asked_start, end: asked_end, reservations };
  return [{ id, record: decided, asked, replica }];
}

/** `null` = not searchable: a record has at most `LONGEST` characters of a text, and "…". */
function keyOf(text: string | null): string | null {
  return text === null || text.length > LONGEST || UNKEPT.test(text) ? null : text;
}

function labelOf(name: string | null | undefined, domain: string | null | undefined): string | null {
  return name && domain ? keyOf(`${name}@${domain}`) : null;
}

/** As `--filter` selects: filters that decided, or had a result other than allowed. */
function concernsOf({ filter, filters }: DecisionRecord): string | null {
  let names: Set<string> | undefined;
  if (filter !== null) {
    names = new Set([shortened(filter)]);
  }
  for (const one of filters) {
    if (one.outcome !== 'allowed') {
      names ??= new Set();
      names.add(shortened(one.filter));
    }
  }
  return names === undefined ? null : JSON.stringify([...names]);
}

function shortened(name: string): string {
  return replaced(name.slice(0, LONGEST));
}

function storable(value: unknown): unknown {
  if (typeof value === 'string') {
    return replaced(value);
  }
  if (Array.isArray(value)) {
    return value.map(storable);
  }
  return typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, storable(item)]))
    : value;
}

function replaced(text: string): string {
  return UNKEPT.test(text) ? text.replace(EVERY_UNKEPT, '\ufffd') : text;
}

type Queries = Kysely<Tables>;

/**
 * A lock for one writer at a time, so that ids become visible in order: readers of newer rows miss nothing.
 */
const ORDER = 7_042_615_338_120_944n;
/** A lock for removing: replicas do not wait for each other. */
const REMOVAL = 7_042_615_338_120_945n;
/** Rows per removal. Few: leases wait for each removal from a file. */
const REMOVED = 50;

/** `json`: a list of rows. */
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

/** `json`: a list of rows. */
export function* writeToSqlite(queries: Queries, json: string, replica: string): Work<void> {
  const given = JSON.parse(json) as readonly NewRow[];
  const values = given.map((row) => ({
    ...row,
    replica,
    at: BigInt(row.at),
    asked_start: bigint(row.asked_start),
    asked_end: bigint(row.asked_end),
  }));
  const filters: DecisionFiltersTable[] = [];
  for (const some of inFewSizes(values)) {
    const adding = queries
      .insertInto('decisions')
      .values(some)
      .returning(['id', 'project_id', 'at', 'concerns']);
    for (const { id, concerns, project_id, at } of yield* rows(adding.compile())) {
      const names = concerns === null ? [] : (JSON.parse(concerns) as readonly string[]);
      filters.push(...names.map((filter) => ({ decision: id, filter, project_id, at })));
    }
  }
  for (const some of inFewSizes(filters)) {
    yield* rows(queries.insertInto('decision_filters').values(some).compile());
  }
}

function bigint(text: string | null): bigint | null {
  return text === null ? null : BigInt(text);
}

/**
 * Removes some of the oldest decisions if they are expired or too many; resolves to their number. By the
 * database's clock.
 */
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
