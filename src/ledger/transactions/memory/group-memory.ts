/**
 * Shared state of the parts of a group about the projects that their transaction has locked. No other
 * transaction changes these until the end, so a read of one part is valid for later parts, except for their
 * own writes. All parts have the same time.
 *
 * An unrecognized write clears everything: rows are read again, which takes longer and changes no result.
 *
 * On SQLite, the writes of a new lease are postponed to the end of the group. The ids of leases are known in
 * advance: they are counted from the last id of the database, since there is no other writer.
 */
import type { CompiledQuery } from 'kysely';
import type { Memory } from '../../storage/database.ts';
import type { Locked, Statements } from '../statements.ts';
import { type Postponed, PostponedWrites } from './postponed-writes.ts';
import { type Ask, askOf, keyOf, ProjectMemory, type RowOf, type Rows } from './project-memory.ts';

/** Limit of values in one query. */
const MOST_VALUES = 64;

export class GroupMemory implements Memory {
  readonly #statements: Statements;
  readonly #projects = new Map<string, ProjectMemory>();
  /** Sequences are not rolled back: ids of a part that was rolled back stay free. */
  readonly #ids: RowOf<'nextLeaseIds'>[] = [];
  readonly #due = new PostponedWrites();
  #own: Postponed[] = [];
  /** The id of the next lease, if counted here; `undefined` = unknown, so nothing is postponed. */
  #nextId: bigint | undefined;

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  gather(queries: readonly CompiledQuery[]): CompiledQuery[] {
    const asked = queries.flatMap((query) => {
      const ask = askOf(query);
      return ask === undefined ? [] : [{ query, ask }];
    });
    const lock = asked.find(({ ask }) => ask.kind === 'lockProject');
    if (lock?.ask.kind !== 'lockProject') {
      return [];
    }
    const { project_id } = lock.ask.of;
    let until: bigint | undefined;
    let ids = 0;
    const users = new Set<string>();
    const accounts = new Set<string>();
    const leases = new Map<string, CompiledQuery>();
    for (const { query, ask } of asked) {
      switch (ask.kind) {
        case 'overdueLeases':
          until = until === undefined || ask.of.now > until ? ask.of.now : until;
          break;
        case 'budgets':
          for (const { user_id } of ask.of) {
            users.add(user_id);
          }
          break;
        case 'balances':
          for (const { name } of ask.of) {
            accounts.add(name);
          }
          break;
        case 'leasesByKey':
        case 'leaseById':
          leases.set(keyOf(ask), query);
          break;
        case 'nextLeaseIds':
          ids += ask.of.count;
      }
    }
    const { overdueLeases, budgets, balances, nextLeaseIds } = this.#statements;
    return [
      lock.query,
      ...(until === undefined ? [] : [overdueLeases({ project_id, now: until })]),
      ...batches([...users].map((user_id) => ({ project_id, user_id }))).map(budgets),
      ...leases.values(),
      ...batches([...accounts].map((name) => ({ project_id, name }))).map(balances),
      ...(ids === 0 || nextLeaseIds === undefined ? [] : [nextLeaseIds({ count: ids })]),
    ];
  }

  recall(query: CompiledQuery): Rows<unknown> | undefined {
    const ask = askOf(query);
    if (ask === undefined) {
      return undefined;
    }
    if (ask.kind === 'nextLeaseIds') {
      return this.#ids.length < ask.of.count ? undefined : this.#ids.splice(0, ask.of.count);
    }
    return this.#projectOf(ask)?.recall(ask);
  }

  missing(query: CompiledQuery): CompiledQuery {
    const ask = askOf(query);
    const unknown = ask?.kind === 'balances' ? this.#projectOf(ask)?.unknownOf(ask.of) : undefined;
    return unknown === undefined ? query : this.#statements.balances(unknown);
  }

  note(query: CompiledQuery, answer: Rows<unknown>): void {
    const ask = askOf(query);
    if (ask === undefined) {
      if (query.query.kind !== 'SelectQueryNode') {
        this.forget();
      }
      return;
    }
    switch (ask.kind) {
      case 'lockProject':
        this.#lock(ask.of.project_id, answer as Rows<Locked>);
        break;
      case 'addLease':
        this.#nextId = this.#idAfter(answer as Rows<RowOf<'addLease'>>);
        this.#forgetLease(ask.of);
        break;
      case 'addLeases':
        for (const lease of ask.of) {
          this.#forgetLease(lease);
        }
        break;
      case 'setLease':
        this.#forgetLease(ask.of);
        break;
      case 'nextLeaseIds':
        this.#ids.push(...(answer as RowOf<'nextLeaseIds'>[]));
        break;
      default:
        this.#projectOf(ask)?.note(ask, answer);
    }
  }

  forget(): void {
    this.#projects.clear();
    this.#nextId = undefined;
  }

  postpone(query: CompiledQuery): Rows<unknown> | undefined {
    const ask = askOf(query);
    if (ask === undefined || this.#nextId === undefined) {
      return undefined;
    }
    switch (ask.kind) {
      case 'lockProject': {
        const { project_id, at } = ask.of;
        const locked = this.#projectOf(ask)?.lockAgain(at);
        if (locked !== undefined) {
          // Even if the part is rolled back: the project was locked.
          this.#due.lockAgain(project_id, at);
        }
        return locked;
      }
      case 'addLease': {
        const id = this.#nextId;
        this.#nextId += 1n;
        this.#own.push({ kind: 'addLease', of: { id, ...ask.of } });
        return [{ id }];
      }
      case 'setBalances':
      case 'addEntries':
        this.#own.push(ask);
        return [];
      default:
        return undefined;
    }
  }

  get isPostponing(): boolean {
    return this.#own.length > 0;
  }

  takeOwn(): CompiledQuery[] {
    const own = new PostponedWrites();
    this.#moveOwn(own);
    return own.take(this.#statements);
  }

  takeDue(query?: CompiledQuery): CompiledQuery[] {
    return query === undefined || this.#due.concerns(askOf(query)) ? this.#due.take(this.#statements) : [];
  }

  endPart(isWritten: boolean): void {
    if (isWritten) {
      this.#moveOwn(this.#due);
      return;
    }
    const added = this.#own.filter(({ kind }) => kind === 'addLease').length;
    if (this.#nextId !== undefined) {
      this.#nextId -= BigInt(added);
    }
    this.#own = [];
  }

  /** Makes the writes of the running part visible to later parts. */
  #moveOwn(writes: PostponedWrites): void {
    for (const write of this.#own) {
      writes.add(write);
      if (write.kind === 'addLease') {
        this.#forgetLease(write.of);
      } else {
        this.#projectOf(write)?.note(write, []);
      }
    }
    this.#own = [];
  }

  #forgetLease(lease: Parameters<ProjectMemory['forgetLease']>[0]): void {
    for (const project of this.#projects.values()) {
      project.forgetLease(lease);
    }
  }

  /** On PostgreSQL other transactions use the same sequence. */
  #idAfter([added]: Rows<RowOf<'addLease'>>): bigint | undefined {
    return added === undefined || this.#statements.nextLeaseIds !== undefined ? undefined : added.id + 1n;
  }

  #lock(projectId: string, lock: Rows<Locked>): void {
    const known = this.#projects.get(projectId);
    if (known === undefined) {
      this.#projects.set(projectId, new ProjectMemory(lock));
    } else {
      known.relock(lock);
    }
  }

  /** `undefined` = the project is not locked, or the query is not about one project. */
  #projectOf(ask: Ask): ProjectMemory | undefined {
    const projectId = projectIdOf(ask);
    return projectId === undefined ? undefined : this.#projects.get(projectId);
  }
}

/** All rows of one query belong to one project. */
function projectIdOf(ask: Ask): string | undefined {
  switch (ask.kind) {
    case 'lockProject':
    case 'overdueLeases':
    case 'leasesByKey':
    case 'leaseById':
      return ask.of.project_id;
    case 'budgets':
    case 'balances':
    case 'setBalances':
      return ask.of[0]?.project_id;
    default:
      return undefined;
  }
}

/** In few sizes, since each is a separate statement: the last value is repeated to fill up. */
function batches<Value>(values: readonly Value[]): Value[][] {
  const all: Value[][] = [];
  for (let start = 0; start < values.length; start += MOST_VALUES) {
    const batch = values.slice(start, start + MOST_VALUES);
    const last = batch.at(-1);
    while (last !== undefined && !Number.isInteger(Math.log2(batch.length))) {
      batch.push(last);
    }
    all.push(batch);
  }
  return all;
}
