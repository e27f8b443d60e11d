/** The queries of the outbox, for both databases. */
import { type CompiledQuery, type Insertable, type Kysely, sql } from 'kysely';
import { rows, type Work } from '../storage/database.ts';
import { preparedRows } from '../storage/prepared.ts';
import type { OutboxTable, Tables } from '../storage/schema.ts';
import { BACKOFF } from './backoff.ts';

export interface ClaimedMessage {
  readonly id: bigint;
  readonly lease: string;
  readonly lease_id: string | null;
  readonly key: string;
  /** `null` = a long body, read right before delivery: see `bodyOf`. */
  readonly body: string | null;
  readonly attempts: bigint;
  readonly expires_from: bigint;
}

/** Longer bodies are not kept in memory while their messages wait, in bytes. */
export const LONG_BODY = 65_536;

export type NewMessage = Pick<
  OutboxTable,
  'sender' | 'lease' | 'project_id' | 'lease_id' | 'key' | 'body' | 'claim' | 'claimed_until'
>;

/** A written message; with a claim, its worker delivers it. */
export type AddedMessage = ClaimedMessage & Pick<NewMessage, 'claim'>;

export type Settlement =
  | { readonly kind: 'delivered' | 'released'; readonly id: bigint }
  | {
      readonly kind: 'failed' | 'dead';
      readonly id: bigint;
      readonly at: bigint;
      readonly nextAt: bigint;
      readonly error: string;
      /** As it was when the message was claimed: if it is another one now, an operator has had it retried meanwhile. */
      readonly expiresFrom: bigint;
      /** The body from now on; `undefined` = as before. */
      readonly rest: string | undefined;
    };

/** A worker, with times in microseconds. */
interface Claimant {
  readonly sender: string;
  readonly worker: string;
  readonly now: bigint;
  readonly until: bigint;
}

/**
 * Times further in the future, in microseconds, were written before the clock was set back. The limit of
 * claims is much longer than any claim: a message delivered twice at once is worse than a delayed one.
 */
const FURTHEST_PAUSE = BigInt(2 * BACKOFF.longestPause * 1000);
const FURTHEST_CLAIM = 7_200_000_000n;

/** A message without attempts. */
const UNTRIED = { state: 'waiting', attempts: 0n } as const;
/** Columns of an unclaimed message. */
export const UNCLAIMED = { claim: null, claimed_until: 0n } as const;

type Queries = Kysely<Tables>;

/** Returns the written messages in the order of `messages`. `next_at`: time of the first attempt. */
export function* addMessages(
  queries: Queries,
  messages: readonly NewMessage[],
  now: bigint,
  next_at = 0n,
): Work<AddedMessage[]> {
  const times = { written_at: now, expires_from: now, next_at };
  const values = messages.map((message) => ({ ...message, ...UNTRIED, ...times }));
  const added = yield* rows(addRows(queries)(values));
  const ids = new Map(added.map(({ id, key }) => [key, id]));
  return values.map((value) => ({ ...value, id: ids.get(value.key) ?? 0n }));
}

/**
 * Like `addMessages`, for claimed messages that their worker delivers at once. The claim is dropped if an
 * earlier message about the same lease is waiting.
 */
export function* addClaimed(
  queries: Queries,
  messages: readonly NewMessage[],
  now: bigint,
): Work<AddedMessage[]> {
  const leases = [...new Set(messages.flatMap(({ lease, claim }) => (claim === null ? [] : [lease])))];
  const earlier = new Set<string>();
  if (leases.length > 0) {
    const waiting = queries
      .selectFrom('outbox')
      .select('lease')
      .where('lease', 'in', leases)
      .where('state', '=', 'waiting');
    for (const { lease } of yield* rows(waiting.compile())) {
      earlier.add(lease);
    }
  }
  const alone = messages.map((message) => {
    const isLater = earlier.has(message.lease);
    earlier.add(message.lease);
    return isLater ? { ...message, ...UNCLAIMED } : message;
  });
  return yield* addMessages(queries, alone, now);
}

type Row = Omit<Insertable<OutboxTable>, 'id' | 'error' | 'settled_at' | 'who' | 'reason'>;

/** Built once per number of rows: building takes longer than inserting. */
const builders = new WeakMap<
  Queries,
  (values: readonly Row[]) => CompiledQuery<{ id: bigint; key: string }>
>();

function addRows(queries: Queries) {
  let builder = builders.get(queries);
  if (builder === undefined) {
    builder = preparedRows<Row, { id: bigint; key: string }>((values) =>
      queries
        .insertInto('outbox')
        .values(
          values.map((row) => ({
            sender: row.sender,
            lease: row.lease,
            project_id: row.project_id,
            lease_id: row.lease_id,
            key: row.key,
            body: row.body,
            state: row.state,
            written_at: row.written_at,
            expires_from: row.expires_from,
            attempts: row.attempts,
            next_at: row.next_at,
            claim: row.claim,
            claimed_until: row.claimed_until,
          })),
        )
        .returning(['id', 'key']),
    );
    builders.set(queries, builder);
  }
  return builder;
}

export interface Wanted {
  readonly count: number;
  /**
   * `oldest`: in the order of writing. `longest-due`: never refused messages first. Otherwise a few that are
   * always refused would block all others while a failing service is tried with one message at a time.
   */
  readonly first: 'oldest' | 'longest-due';
}

/** Records the outcomes of attempts, renews `kept` claims, and claims due messages. */
export function* nextRound(
  queries: Queries,
  { sender, worker, now, until }: Claimant,
  settled: readonly Settlement[],
  kept: readonly bigint[],
  { count, first }: Wanted,
  skipsLocked: boolean,
): Work<ClaimedMessage[]> {
  yield* settle(queries, worker, settled);
  yield* keepClaims(queries, worker, kept, until);
  if (count === 0) {
    return [];
  }
  // In a separate expression: otherwise PostgreSQL could lock more rows than it returns.
  const due = sql`
    select id from outbox as message
    where sender = ${sender} and state = 'waiting'
      and (next_at <= ${now} or next_at > ${now + FURTHEST_PAUSE})
      and (claimed_until <= ${now} or claimed_until > ${now + FURTHEST_CLAIM})
      and not exists (
        select 1 from outbox as earlier
        where earlier.lease = message.lease and earlier.state = 'waiting' and earlier.id < message.id)
    order by ${first === 'oldest' ? sql`id` : sql`next_at, id`} limit ${count}
    ${skipsLocked ? sql`for update of message skip locked` : sql``}`;
  const claimed = yield* rows(
    sql<ClaimedMessage>`
      with due as ${skipsLocked ? sql`materialized` : sql``} (${due})
      update outbox set claim = ${worker}, claimed_until = ${until} where id in (select id from due)
      returning id, lease, lease_id, key, attempts, expires_from,
        case when octet_length(body) <= ${LONG_BODY} then body end as body`.compile(queries),
  );
  return claimed.sort((one, other) => (one.id < other.id ? -1 : 1));
}

/** Extends the claims of a worker. */
export function* keepClaims(
  queries: Queries,
  worker: string,
  kept: readonly bigint[],
  claimed_until: bigint,
): Work<void> {
  if (kept.length > 0) {
    yield* rows(claimedBy(queries, worker, kept).set({ claimed_until }).compile());
  }
}

/** Updates the messages that the worker still holds. */
export function claimedBy(queries: Queries, worker: string, ids: readonly bigint[]) {
  return queries.updateTable('outbox').where('id', 'in', ids).where('claim', '=', worker);
}

export function* settle(queries: Queries, worker: string, settled: readonly Settlement[]): Work<void> {
  const idsOf = (kind: Settlement['kind']) => settled.flatMap((one) => (one.kind === kind ? [one.id] : []));
  const delivered = idsOf('delivered');
  if (delivered.length > 0) {
    // Deletes delivered messages whoever holds the claim now. Discarded messages stay in the list.
    yield* rows(
      queries.deleteFrom('outbox').where('id', 'in', delivered).where('state', '<>', 'discarded').compile(),
    );
  }
  const released = idsOf('released');
  if (released.length > 0) {
    yield* rows(claimedBy(queries, worker, released).set(UNCLAIMED).compile());
  }
  for (const one of settled) {
    if (one.kind === 'failed' || one.kind === 'dead') {
      const { kind, id, at, nextAt: next_at, error, expiresFrom, rest } = one;
      const state =
        kind === 'dead' ? ({ state: 'dead', settled_at: at } as const) : ({ state: 'waiting' } as const);
      const record = (change: Partial<Pick<OutboxTable, 'state' | 'settled_at' | 'next_at'>>) =>
        claimedBy(queries, worker, [id])
          .set((row) => ({
            ...UNCLAIMED,
            ...change,
            error,
            attempts: row('attempts', '+', 1n),
            ...(rest !== undefined && { body: rest }),
          }))
          .where('state', '=', 'waiting');
      yield* rows(
        record({ ...state, next_at })
          .where('expires_from', '=', expiresFrom)
          .compile(),
      );
      yield* rows(record({ next_at: 0n }).compile());
    }
  }
}

/** Marks too old messages as dead without an attempt: earlier ones have failed. Returns their number. */
export function* expire(
  queries: Queries,
  { sender, now }: Pick<Claimant, 'sender' | 'now'>,
  olderThan: bigint,
  error: string,
): Work<number> {
  const dead = yield* rows(
    queries
      .updateTable('outbox')
      .set((row) => ({
        state: 'dead' as const,
        settled_at: now,
        error: row.fn.coalesce('error', row.val(error)),
      }))
      .where('sender', '=', sender)
      .where('state', '=', 'waiting')
      .where('expires_from', '<', olderThan)
      .where('claimed_until', '<=', now)
      .where('next_at', '<=', now)
      .returning('id')
      .compile(),
  );
  return dead.length;
}
