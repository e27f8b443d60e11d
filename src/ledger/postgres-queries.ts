/** One query after another on one connection to PostgreSQL, and what each failure means. */
import type { CompiledQuery } from 'kysely';
import pg from 'pg';
import type { Wait } from '../deadline.ts';
import { errorText, LedgerContentError, LedgerUnavailableError } from '../errors.ts';
import type { Work } from './database.ts';

/** How many rows of a long result are fetched at once. */
const BATCH = 1000;
/** The longest timeout that a timer accepts, in milliseconds: the first rows may be sums over whole tables. */
const UNBOUNDED = 2 ** 31 - 1;

/** Runs each query of a unit of work on one connection. */
export async function run<Result>(client: pg.PoolClient, work: Work<Result>, wait: Wait): Promise<Result> {
  let step = work.next([]);
  while (!step.done) {
    wait.throwIfOver();
    const { sql, parameters } = step.value;
    step = work.next(await query(client, sql, parameters));
  }
  return step.value;
}

/** The rows of one query through a cursor: only a batch is in memory. */
export async function* fetched<Row>(
  client: pg.PoolClient,
  { sql, parameters }: CompiledQuery<Row>,
  wait: Wait,
): AsyncIterable<Row> {
  // A cursor stays open when its reader stops early.
  await query(client, 'CLOSE ALL');
  await query(client, `DECLARE answer CURSOR FOR ${sql}`, parameters);
  for (let length = BATCH; length === BATCH; ) {
    wait.throwIfOver();
    const rows = await query(client, { text: `FETCH ${BATCH} FROM answer`, query_timeout: UNBOUNDED });
    yield* rows as Row[];
    length = rows.length;
  }
}

/**
 * Throws unless the commit is known to be durable. A server that stops waiting for its standby, because it shuts down or times
 * out, has committed and reports that with a warning: a lease that the standby lacks is lost when the standby takes over.
 */
export async function commit(client: pg.PoolClient): Promise<void> {
  let warning: string | undefined;
  const listen = ({ code, message }: { code?: string | undefined; message?: string | undefined }) => {
    if (code !== '00000') {
      warning = message ?? 'a warning';
    }
  };
  client.on('notice', listen);
  try {
    const { command } = await asUnavailable(client.query('COMMIT'));
    if (command !== 'COMMIT' || warning !== undefined) {
      throw new LedgerUnavailableError(warning ?? `the server answered ${command} to COMMIT`);
    }
  } finally {
    client.off('notice', listen);
  }
}

/** A NUL in a text, a number out of range, a text too long for an index. Source: PostgreSQL docs, "Error Codes". */
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
    const isContent = thrown instanceof pg.DatabaseError && CONTENT.test(thrown.code ?? '');
    throw new (isContent ? LedgerContentError : LedgerUnavailableError)(errorText(thrown), { cause: thrown });
  }
}

/** The server insists on TLS, or has none. Source: PostgreSQL docs, "Error Codes"; from the driver there is only a message. */
export function isTlsRefusal(thrown: unknown): boolean {
  const { cause } = thrown instanceof LedgerUnavailableError ? thrown : { cause: undefined };
  return (
    /^28/.test(codeOf(thrown)) ||
    /^(ERR_SSL|ERR_TLS)/.test(codeOf(thrown)) ||
    (cause instanceof Error && cause.message === 'The server does not support SSL connections')
  );
}

/** The server has no connection left: for anyone, for this role or for this database. */
export function isFull(thrown: unknown): boolean {
  return codeOf(thrown) === '53300';
}

function codeOf(thrown: unknown): string {
  const { cause } = thrown instanceof Error ? thrown : { cause: undefined };
  return cause instanceof Error && 'code' in cause ? String(cause.code) : '';
}
