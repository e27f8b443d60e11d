/** Single queries on a connection to PostgreSQL, and the classification of errors. */
import type { CompiledQuery } from 'kysely';
import pg from 'pg';
import type { Wait } from '../../../base/deadline.ts';
import { codeOf, errorText, LedgerContentError, LedgerUnavailableError } from '../../../base/errors.ts';

/** Rows of a long result that are fetched at once. */
const BATCH = 1000;
/** The longest timeout of a timer, in milliseconds. */
const UNBOUNDED = 2 ** 31 - 1;

/**
 * The rows of one query through a cursor: only one batch is in memory. `whileAlive`: bounds the wait for a
 * batch, which may be sums over whole tables.
 */
export async function* fetched<Row>(
  client: pg.PoolClient,
  { sql, parameters }: CompiledQuery<Row>,
  wait: Wait,
  whileAlive: <Answer>(answer: Promise<Answer>) => Promise<Answer>,
): AsyncIterable<Row> {
  // A cursor stays open if its reader stops early.
  await query(client, 'CLOSE ALL');
  await query(client, `DECLARE answer CURSOR FOR ${sql}`, parameters);
  for (let length = BATCH; length === BATCH; ) {
    wait.throwIfOver();
    const batch = query(client, { text: `FETCH ${BATCH} FROM answer`, query_timeout: UNBOUNDED });
    const rows = await whileAlive(batch);
    yield* rows as Row[];
    length = rows.length;
  }
}

/** A NUL, a number out of range, or a text too long for an index. Source: PostgreSQL docs, "Error Codes". */
const CONTENT = /^(22|54)/;

/** @throws LedgerContentError for values that the database cannot store, LedgerUnavailableError for everything else */
export async function query(
  client: pg.PoolClient,
  sql: string | (pg.QueryConfig & { readonly query_timeout: number }),
  parameters: readonly unknown[] = [],
): Promise<unknown[]> {
  const { rows } = await asUnavailable(client.query(sql, [...parameters]));
  return rows;
}

export async function asUnavailable<Result>(answer: Promise<Result>): Promise<Result> {
  try {
    return await answer;
  } catch (thrown) {
    throw unavailable(thrown);
  }
}

/** A `LedgerContentError` for values that the database cannot store, a `LedgerUnavailableError` for everything else. */
export function unavailable(thrown: unknown): LedgerContentError | LedgerUnavailableError {
  const isContent = thrown instanceof pg.DatabaseError && CONTENT.test(thrown.code ?? '');
  return new (isContent ? LedgerContentError : LedgerUnavailableError)(errorText(thrown), { cause: thrown });
}

/** With these codes only the statement has failed: rolling back to a savepoint is enough. */
const OWN = /^(22|23|54)/;

/**
 * Whether only this statement failed, because of its values: the connection, and the transaction at a
 * savepoint, can continue.
 */
export function isOwn(thrown: unknown): boolean {
  const cause = causeOf(thrown);
  return cause instanceof pg.DatabaseError && OWN.test(cause.code ?? '');
}

/**
 * A statement that was prepared before an upgrade by another process. Its code is ambiguous and its message
 * is translated, so the reporting function identifies it.
 */
export function isStalePlan(thrown: unknown): boolean {
  const cause = causeOf(thrown);
  return (
    cause instanceof pg.DatabaseError && cause.code === '0A000' && cause.routine === 'RevalidateCachedQuery'
  );
}

/**
 * A deadlock or a conflict with others, or a connection that the server, a pooler or the network has closed, such as
 * after `idle_session_timeout` (57P05).
 */
const VICTIM = /^(40P01|40001|57P0[15]|08P01|ECONNRESET|EPIPE)/;
/** What the driver says of a connection that is closed without a reason, or closed before it is used. */
const CLOSED =
  /^(Connection terminated unexpectedly|Client has encountered a connection error and is not queryable)$/;

/** Unless its commit is in doubt, the transaction has left nothing: a retry may succeed. */
export function isVictim(thrown: unknown): boolean {
  const cause = causeOf(thrown);
  return VICTIM.test(codeOf(cause)) || (cause instanceof Error && CLOSED.test(cause.message));
}

/**
 * The server requires TLS, or does not support it. Source: PostgreSQL docs, "Error Codes"; the driver gives
 * only a message.
 */
export function isTlsRefusal(thrown: unknown): boolean {
  const cause = causeOf(thrown);
  return (
    /^(28|ERR_SSL|ERR_TLS)/.test(codeOf(causeOf(thrown))) ||
    (cause instanceof Error && cause.message === 'The server does not support SSL connections')
  );
}

/** The server has no free connection: overall, for this role or for this database. */
export function isFull(thrown: unknown): boolean {
  return codeOf(causeOf(thrown)) === '53300';
}

function causeOf(thrown: unknown): unknown {
  return thrown instanceof Error ? thrown.cause : undefined;
}
