/** The contents of the outbox, for operators, with retry and discard. */
import { sql } from 'kysely';
import type { Wait } from '../../base/deadline.ts';
import type { Ledger } from '../ledger.ts';
import { rows, Undone, type Work } from '../storage/database.ts';
import type { OutboxState, OutboxTable } from '../storage/schema.ts';
import { UNCLAIMED } from './statements.ts';

/** Times in microseconds of the epoch. */
export type OutboxReport = Omit<
  OutboxTable,
  'id' | 'body' | 'key' | 'lease' | 'claim' | 'claimed_until' | 'expires_from'
> & { readonly id: bigint };

interface OutboxSelection {
  readonly state?: OutboxState | undefined;
  readonly projectId?: string | undefined;
  readonly limit: number;
}

const COLUMNS = [
  ...(['id', 'sender', 'state', 'project_id', 'lease_id', 'written_at', 'attempts', 'next_at'] as const),
  ...(['error', 'settled_at', 'who', 'reason'] as const),
] as const;

interface OutboxAuthor {
  readonly who: string;
  readonly reason: string | null;
}

/** Oldest first. Default state: waiting and dead. @throws LedgerUnavailableError */
export function listOutbox(
  ledger: Ledger,
  { state, projectId, limit }: OutboxSelection,
  wait: Wait,
): Promise<OutboxReport[]> {
  const states: OutboxState[] = state === undefined ? ['waiting', 'dead'] : [state];
  const all = ledger.database.queries
    .selectFrom('outbox')
    .select(COLUMNS)
    .where('state', 'in', states)
    .orderBy('id')
    .limit(limit);
  const query = projectId === undefined ? all : all.where('project_id', '=', projectId);
  return ledger.read('read', () => rows(query.compile()), wait);
}

/**
 * One message with its body; `undefined` = unknown id, or already delivered. @throws LedgerUnavailableError
 */
export async function outboxMessage(
  ledger: Ledger,
  id: bigint,
  wait: Wait,
): Promise<(OutboxReport & { readonly body: string }) | undefined> {
  const query = ledger.database.queries
    .selectFrom('outbox')
    .select([...COLUMNS, 'body'])
    .where('id', '=', id);
  const [found] = await ledger.read('read', () => rows(query.compile()), wait);
  return found;
}

/** The outcome of a retry or discard. `unknown`: these messages do not exist, and nothing was changed. */
export type Decided = { readonly changed: number } | { readonly unknown: readonly bigint[] };

/** Makes messages due now, with the full maximum age again. `all` = all waiting and dead messages. */
export function retryMessages(
  ledger: Ledger,
  which: readonly bigint[] | 'all',
  { who, reason }: OutboxAuthor,
  wait: Wait,
): Promise<Decided> {
  const change = {
    state: 'waiting' as const,
    next_at: 0n,
    expires_from: ledger.now(),
    settled_at: null,
    who,
    reason,
  };
  return decide(ledger, which, ['waiting', 'dead'], change, wait);
}

/** Never sends messages again; they stay in the list. `all` = all dead messages. */
export function discardMessages(
  ledger: Ledger,
  which: readonly bigint[] | 'all',
  { who, reason }: OutboxAuthor,
  wait: Wait,
): Promise<Decided> {
  const change = { ...UNCLAIMED, state: 'discarded' as const, settled_at: ledger.now(), who, reason };
  return decide(ledger, which, which === 'all' ? ['dead'] : ['waiting', 'dead'], change, wait);
}

function decide(
  ledger: Ledger,
  which: readonly bigint[] | 'all',
  states: readonly OutboxState[],
  change: Partial<OutboxTable> extends infer Change ? Omit<Change, 'id'> : never,
  wait: Wait,
): Promise<Decided> {
  const all = ledger.database.queries.updateTable('outbox').set(change).where('state', 'in', states);
  const query = (which === 'all' ? all : all.where('id', 'in', which)).returning('id').compile();
  return ledger.transact(
    'outbox',
    function* (): Work<Decided | Undone<Decided>> {
      const changed = new Set((yield* rows(query)).map(({ id }) => id));
      const unknown = which === 'all' ? [] : which.filter((id) => !changed.has(id));
      return unknown.length > 0 ? new Undone<Decided>({ unknown }) : { changed: changed.size };
    },
    wait,
  );
}

/** Number of waiting messages per sender. Reads only an index. @throws LedgerUnavailableError */
export async function waitingBySender(ledger: Ledger, wait: Wait): Promise<Map<string, number>> {
  const { queries } = ledger.database;
  const counts = sql<{ sender: string; messages: bigint }>`
    select sender, count(*) as messages from outbox where state = 'waiting' group by sender order by sender`;
  const found = await ledger.database.read(() => rows(counts.compile(queries)), wait);
  return new Map(found.map(({ sender, messages }) => [sender, Number(messages)]));
}

/** For metrics. */
export interface OutboxCounts {
  readonly waiting: number;
  readonly dead: number;
  /** Age of the oldest waiting message; 0 = no waiting messages. */
  readonly oldestSeconds: number;
}

/** Reads an index, and only the oldest message, since bodies may be long. @throws LedgerUnavailableError */
export async function countOutbox(ledger: Ledger, wait: Wait): Promise<OutboxCounts> {
  const { queries } = ledger.database;
  const counts = sql<{ state: OutboxState; messages: bigint; oldest: bigint }>`
    select state, count(*) as messages, min(id) as oldest from outbox group by state`;
  // Not `ledger.read`: reading metrics must not count as use of the ledger.
  return ledger.database.read(function* () {
    const found = yield* rows(counts.compile(queries));
    const waiting = found.find(({ state }) => state === 'waiting');
    const dead = found.find(({ state }) => state === 'dead');
    const query = queries
      .selectFrom('outbox')
      .select('written_at')
      .where('id', '=', waiting?.oldest ?? -1n);
    const [oldest] = yield* rows(query.compile());
    return {
      waiting: Number(waiting?.messages ?? 0),
      dead: Number(dead?.messages ?? 0),
      oldestSeconds: oldest === undefined ? 0 : Math.max(0, Number(ledger.now() - oldest.written_at) / 1e6),
    };
  }, wait);
}
