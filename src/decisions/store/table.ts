/** The decisions in a database: written in batches, searched in pages, removed in small parts. */
import { sql } from 'kysely';
import { Semaphore } from '../../base/concurrency-limiter.ts';
import { type Wait, withinDeadline } from '../../base/deadline.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import { CursorError, cursorOf, keyOf, type PageOf } from '../../ledger/reports/pages.ts';
import { type Database, rows } from '../../ledger/storage/database.ts';
import { databaseTime } from '../../ledger/transactions/transaction.ts';
import { isSelected } from '../selection.ts';
import {
  type DecisionsQuery,
  type DecisionTarget,
  type PresentReplica,
  REPLICA_LISTED,
  type ReplicaFacts,
  type Retention,
  type StoreChanges,
  type StoredDecision,
} from './contract.ts';
import { memberQuery, memberView } from './member-view.ts';
import { type NewRow, removeOld, storedDecision, writeToPostgres, writeToSqlite } from './rows.ts';
import { type Place, rowsOf, Search } from './search.ts';

/** Candidates per query; each query has more than the previous one. */
const FIRST_WINDOW = 1000;
const LARGEST_WINDOW = 32_000;
/** Time limit of a page, in milliseconds: the client continues with the next page. */
const PATIENCE = 60;
const MOST_CHANGES = 500;
const MOST_PROJECTS = 1000;
const MOST_REPLICAS = 100;
const LISTED = BigInt(REPLICA_LISTED) * MICROSECONDS_PER_SECOND;
/** Time limit for a stopping replica to remove itself from the list, in seconds. */
const REMOVAL_TIMEOUT = 1;

export class DecisionTable implements DecisionTarget {
  readonly #database: Database;
  readonly #replica: string;
  #isListed = false;
  /** One reader at a time: writers have a separate connection. */
  readonly #readers = new Semaphore(1);

  /** `replica`: the name of the writing replica. `close` also closes the database. */
  constructor(database: Database, replica: string) {
    this.#database = database;
    this.#replica = replica;
  }

  async write(newRows: readonly string[], wait: Wait): Promise<void> {
    if (newRows.length === 0) {
      return;
    }
    const json = `[${newRows.join(',')}]`;
    const { dialect, queries } = this.#database;
    const write = dialect === 'sqlite' ? writeToSqlite : writeToPostgres;
    await this.#database.transact(() => write(queries, json, this.#replica), wait);
  }

  async has(row: string, wait: Wait): Promise<boolean> {
    const { at, request_id, operation } = JSON.parse(row) as NewRow;
    const query = this.#database.queries
      .selectFrom('decisions')
      .select('id')
      .where('request_id', '=', request_id)
      .where('at', '=', BigInt(at))
      .where('operation', '=', operation)
      .where('replica', '=', this.#replica)
      .limit(1)
      .compile();
    return (await this.#database.read(() => rows(query), wait)).length > 0;
  }

  async search(query: DecisionsQuery, wait: Wait): Promise<PageOf<StoredDecision>> {
    const place = query.after === undefined ? undefined : placeOf(query.after);
    const leave = await this.#readers.enter(wait);
    try {
      return query.visible === undefined
        ? await this.#search(query, place, wait)
        : await this.#searchForMember(query, place, wait);
    } finally {
      leave();
    }
  }

  async newest(wait: Wait): Promise<bigint> {
    const { queries } = this.#database;
    const query = queries.selectFrom('decisions').select('id').orderBy('id', 'desc').limit(1).compile();
    const [row] = await this.#database.read(() => rows(query), wait);
    return row?.id ?? 0n;
  }

  changesSince(after: bigint, wait: Wait): Promise<StoreChanges> {
    const { queries } = this.#database;
    const newest = queries.selectFrom('decisions').select('id').orderBy('id', 'desc').limit(1).compile();
    const others = queries
      .selectFrom('decisions')
      .select(['operation', 'project_id'])
      .where('id', '>', after)
      .where('replica', '<>', this.#replica)
      .orderBy('id', 'desc')
      .limit(MOST_CHANGES)
      .compile();
    return this.#database.read(function* () {
      const [row] = yield* rows(newest);
      const id = row?.id ?? 0n;
      return { newest: id, decided: id > after ? yield* rows(others) : [] };
    }, wait);
  }

  async revisions(wait: Wait): Promise<ReadonlyMap<string, bigint>> {
    const query = this.#database.queries
      .selectFrom('projects')
      .select(['project_id', 'revision'])
      .orderBy('latest_at', 'desc')
      .limit(MOST_PROJECTS)
      .compile();
    const found = await this.#database.read(() => rows(query), wait);
    return new Map(found.map(({ project_id, revision }) => [project_id, revision]));
  }

  trim(retention: Retention, wait: Wait): Promise<number> {
    const { dialect, queries } = this.#database;
    return this.#database.transact(() => removeOld(queries, retention, dialect === 'sqlite'), wait);
  }

  async present({ version, generation, digest }: ReplicaFacts, wait: Wait): Promise<void> {
    const { queries, dialect } = this.#database;
    const seen_at = databaseTime(dialect);
    const facts = { seen_at, version, generation: BigInt(generation), digest };
    const own = queries
      .insertInto('replicas')
      .values({ name: this.#replica, ...facts })
      .onConflict((conflict) => conflict.column('name').doUpdateSet(facts));
    const gone = queries.deleteFrom('replicas').where('seen_at', '<', sql<bigint>`${seen_at} - ${LISTED}`);
    // In separate transactions: replicas that return at the same time must not deadlock on each other's rows.
    await this.#database.transact(() => rows(own.compile()), wait);
    this.#isListed = true;
    await this.#database.transact(() => rows(gone.compile()), wait);
  }

  async replicas(wait: Wait): Promise<readonly PresentReplica[]> {
    const { queries, dialect } = this.#database;
    const query = queries
      .selectFrom('replicas')
      .selectAll()
      .where('seen_at', '>=', sql<bigint>`${databaseTime(dialect)} - ${LISTED}`)
      .orderBy('name')
      .limit(MOST_REPLICAS)
      .compile();
    const found = await this.#database.read(() => rows(query), wait);
    return found.map(({ name, version, generation, digest }) => ({
      name,
      version,
      digest,
      generation: Number(generation),
      isSelf: name === this.#replica,
    }));
  }

  async close(): Promise<void> {
    if (this.#isListed) {
      const own = this.#database.queries.deleteFrom('replicas').where('name', '=', this.#replica).compile();
      // If this fails, it stays listed for a while.
      await withinDeadline(REMOVAL_TIMEOUT, (wait) => this.#database.transact(() => rows(own), wait)).catch(
        () => {},
      );
    }
    await this.#database.close();
  }

  /** Hidden decisions leave gaps, which the next decisions fill. */
  async #searchForMember(
    query: DecisionsQuery,
    place: Place | undefined,
    wait: Wait,
  ): Promise<PageOf<StoredDecision>> {
    const until = performance.now() + PATIENCE;
    const found: StoredDecision[] = [];
    for (let from = place; ; ) {
      const page = await this.#search(memberQuery(query), from, wait);
      for (const stored of page.items) {
        const record = memberView(stored.record);
        if (isSelected(record, query)) {
          found.push({ ...stored, record });
        }
      }
      const last = found[query.limit - 1];
      if (last !== undefined && (found.length > query.limit || page.next !== undefined)) {
        const at = BigInt(Date.parse(last.record.time)) * 1000n;
        return { items: found.slice(0, query.limit), next: cursorOf([at, last.id]) };
      }
      if (page.next === undefined || performance.now() > until) {
        return { items: found, next: page.next };
      }
      from = placeOf(page.next);
    }
  }

  async #search(
    query: DecisionsQuery,
    place: Place | undefined,
    wait: Wait,
  ): Promise<PageOf<StoredDecision>> {
    const { queries } = this.#database;
    const search = new Search(queries, query);
    if (search.isEmpty) {
      return { items: [], next: undefined };
    }
    const until = performance.now() + PATIENCE;
    const found: Place[] = [];
    let after = place;
    let isLast = false;
    const most = query.limit + 1;
    for (let window = search.isExact ? most : Math.max(most, FIRST_WINDOW); !isLast; window = grown(window)) {
      const from = after;
      const [more, edge] = await this.#database.read(function* () {
        const matching = yield* rows(search.found(from, window, most - found.length));
        const isFull = found.length + matching.length >= most;
        return [matching, isFull ? [] : yield* rows(search.edge(from, window))] as const;
      }, wait);
      found.push(...more);
      isLast = found.length >= most || edge[0] === undefined;
      after = edge[0] ?? after;
      if (!isLast && performance.now() > until) {
        break;
      }
    }
    const shown = found.slice(0, query.limit);
    const next = found.length > query.limit ? shown.at(-1) : isLast ? undefined : after;
    return { items: await this.#read(shown, wait), next: next && cursorOf([next.at, next.id]) };
  }

  async #read(places: readonly Place[], wait: Wait): Promise<StoredDecision[]> {
    const ids = [...new Set(places.map(({ id }) => id))];
    if (ids.length === 0) {
      return [];
    }
    const query = rowsOf(this.#database.queries, ids);
    const read = await this.#database.read(() => rows(query), wait);
    const byId = new Map(read.map((row) => [row.id, row]));
    return ids.flatMap((id) => {
      const row = byId.get(id);
      return row === undefined ? [] : storedDecision(row);
    });
  }
}

function grown(window: number): number {
  return Math.min(window * 4, LARGEST_WINDOW);
}

function placeOf(cursor: string): Place {
  const [at, id] = keyOf(cursor, ['number', 'number']);
  if (!isStored(at) || !isStored(id)) {
    throw new CursorError();
  }
  return { at, id };
}

/** Within 64 bits. */
function isStored(part: string | bigint | null | undefined): part is bigint {
  return typeof part === 'bigint' && BigInt.asIntN(64, part) === part;
}
