/**
 * Shared state of the parts of a group about the projects that their transaction has locked. No other
 * transaction changes these until the end, so a read of one part is valid for later parts, except for their
 * own writes. All parts have the same time.
 *
 * An unrecognized write clears everything: rows are read again, which takes longer and changes no result.
 */
import type { CompiledQuery } from 'kysely';
import type { Memory } from '../../storage/database.ts';
import { KEPT_ROWS } from '../../storage/prepared.ts';
import type { Locked, Statements } from '../statements.ts';
import { type Ask, askOf, keyOf, ProjectMemory, type RowOf, type Rows } from './project-memory.ts';

export class GroupMemory implements Memory {
  readonly #statements: Statements;
  readonly #projects = new Map<string, ProjectMemory>();
  /** Sequences are not rolled back: ids of a part that was rolled back stay free. */
  readonly #ids: RowOf<'nextLeaseIds'>[] = [];

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
      case 'addLeaseWithId':
      case 'setLease':
        for (const project of this.#projects.values()) {
          project.forgetLease(ask.of);
        }
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
  }

  #lock(projectId: string, lock: Rows<Locked>): void {
    const known = this.#projects.get(projectId);
    if (known === undefined) {
      this.#projects.set(projectId, new ProjectMemory(lock));
    } else {
      known.relock(lock);
    }
  }

  /** All rows of one query belong to one project. `undefined` = it is not locked, or the query is not about one. */
  #projectOf(ask: Ask): ProjectMemory | undefined {
    const [of] = [ask.of].flat();
    return of !== undefined && 'project_id' in of ? this.#projects.get(of.project_id) : undefined;
  }
}

/** In few sizes, since each is a separate statement: the last value is repeated to fill up. */
function batches<Value>(values: readonly Value[]): Value[][] {
  const all: Value[][] = [];
  for (let start = 0; start < values.length; start += KEPT_ROWS) {
    const batch = values.slice(start, start + KEPT_ROWS);
    const last = batch.at(-1);
    while (last !== undefined && !Number.isInteger(Math.log2(batch.length))) {
      batch.push(last);
    }
    all.push(batch);
  }
  return all;
}
