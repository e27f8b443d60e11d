/**
 * What the parts of a group know of the project that their transaction has locked. Nobody else changes it until the transaction ends, so
 * what one part has read holds for the parts after it, except for what they write themselves. All parts have the same moment.
 *
 * A write that is not recognised makes everything forgotten: it is read again, which takes longer and changes no answer.
 */
import type { CompiledQuery } from 'kysely';
import { type Ask, askOf } from './asks.ts';
import type { Memory } from './database/database.ts';
import type { LeaseRow } from './database/schema.ts';
import type { Locked, Statements } from './statements.ts';

type Rows<Row> = readonly Row[];
type AskOf<Kind extends Ask['kind']> = Extract<Ask, { readonly kind: Kind }>['of'];
type RowOf<Kind extends keyof Statements> =
  NonNullable<Statements[Kind]> extends (of: never) => CompiledQuery<infer Row> ? Row : never;

interface Found<Of> {
  readonly of: Of;
  readonly rows: Rows<LeaseRow>;
}

/** What a lease becomes. */
type WrittenLease = Pick<LeaseRow, 'lease_id' | 'repetition_key' | 'state' | 'ends_at'> & {
  readonly id?: bigint;
};

/** Of the values of one query. */
const MOST_VALUES = 64;

export class GroupMemory implements Memory {
  readonly #statements: Statements;
  #project: string | undefined;
  #lock: Rows<Locked> | undefined;
  #overdue: { readonly until: bigint; readonly rows: Rows<RowOf<'overdueLeases'>> } | undefined;
  /** By user. */
  readonly #budgets = new Map<string, Rows<RowOf<'budgets'>>>();
  /** By account; `undefined` = it has none. */
  readonly #balances = new Map<string, RowOf<'balances'> | undefined>();
  readonly #byKey = new Map<string, Found<AskOf<'leasesByKey'>>>();
  readonly #byId = new Map<string, Found<AskOf<'leaseById'>>>();
  /** A sequence takes nothing back: they stay free when a part is rolled back. */
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
    this.#project = project_id;
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
          users.add(ask.of.user_id);
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
    const { overdueLeases, budgetsOfUsers, balances, nextLeaseIds } = this.#statements;
    return [
      lock.query,
      ...(until === undefined ? [] : [overdueLeases({ project_id, now: until })]),
      ...batches([...users].map((user_id) => ({ project_id, user_id }))).map(budgetsOfUsers),
      ...leases.values(),
      ...batches([...accounts].map((name) => ({ project_id, name }))).map(balances),
      ...(ids === 0 || nextLeaseIds === undefined ? [] : [nextLeaseIds({ count: ids })]),
    ];
  }

  recall(query: CompiledQuery): Rows<unknown> | undefined {
    const ask = askOf(query);
    switch (ask?.kind) {
      case 'lockProject':
        // By another clock than the database's, later entries must not be dated after what the project says is the latest.
        return this.#isOfProject(ask.of) &&
          this.#lock?.every(({ now, latest_at }) => now !== undefined || ask.of.at <= latest_at)
          ? this.#lock
          : undefined;
      case 'overdueLeases': {
        const { now } = ask.of;
        return this.#isOfProject(ask.of) && this.#overdue !== undefined && now <= this.#overdue.until
          ? this.#overdue.rows.filter(({ ends_at }) => ends_at <= now)
          : undefined;
      }
      case 'budgets':
        return this.#isOfProject(ask.of) ? this.#budgets.get(ask.of.user_id) : undefined;
      case 'balances':
        return ask.of.every((of) => this.#isOfProject(of) && this.#balances.has(of.name))
          ? ask.of.flatMap(({ name }) => this.#balances.get(name) ?? [])
          : undefined;
      case 'leasesByKey':
        return this.#isOfProject(ask.of) ? this.#byKey.get(keyOf(ask))?.rows : undefined;
      case 'leaseById':
        return this.#isOfProject(ask.of) ? this.#byId.get(keyOf(ask))?.rows : undefined;
      case 'nextLeaseIds':
        return this.#ids.length < ask.of.count ? undefined : this.#ids.splice(0, ask.of.count);
      default:
        return undefined;
    }
  }

  note(query: CompiledQuery, answer: Rows<unknown>): void {
    const ask = askOf(query);
    switch (ask?.kind) {
      case 'lockProject':
        this.#lock = answer as Rows<Locked>;
        break;
      case 'overdueLeases':
        this.#overdue = { until: ask.of.now, rows: answer as Rows<RowOf<'overdueLeases'>> };
        break;
      case 'budgets':
        this.#budgets.set(ask.of.user_id, answer as Rows<RowOf<'budgets'>>);
        break;
      case 'budgetsOfUsers':
        for (const { user_id: user } of ask.of) {
          const found = answer as Rows<RowOf<'budgets'>>;
          this.#budgets.set(
            user,
            found.filter(({ user_id }) => user_id === null || user_id === user),
          );
        }
        break;
      case 'balances':
        for (const { name } of ask.of) {
          this.#balances.set(name, undefined);
        }
        for (const row of answer as Rows<RowOf<'balances'>>) {
          this.#balances.set(row.name, row);
        }
        break;
      case 'setBalances':
        for (const { name, balance } of ask.of) {
          this.#balances.set(name, { name, balance });
        }
        break;
      case 'leasesByKey':
        this.#byKey.set(keyOf(ask), { of: ask.of, rows: answer as Rows<LeaseRow> });
        break;
      case 'leaseById':
        this.#byId.set(keyOf(ask), { of: ask.of, rows: answer as Rows<LeaseRow> });
        break;
      case 'addLease':
      case 'addLeaseAs':
      case 'setLease':
        this.#forgetLease(ask.of);
        break;
      case 'nextLeaseIds':
        this.#ids.push(...(answer as RowOf<'nextLeaseIds'>[]));
        break;
      case 'addEntries':
        break;
      default:
        if (query.query.kind !== 'SelectQueryNode') {
          this.forget();
        }
    }
  }

  forget(): void {
    this.#lock = undefined;
    this.#overdue = undefined;
    this.#budgets.clear();
    this.#balances.clear();
    this.#byKey.clear();
    this.#byId.clear();
  }

  #isOfProject({ project_id }: { readonly project_id: string }): boolean {
    return project_id === this.#project;
  }

  #forgetLease({ id, lease_id, repetition_key, state, ends_at }: WrittenLease): void {
    const isIn = (rows: Rows<{ readonly id: bigint }>) =>
      id !== undefined && rows.some((row) => row.id === id);
    const overdue = this.#overdue;
    if (overdue !== undefined && (isIn(overdue.rows) || (state === 'open' && ends_at <= overdue.until))) {
      this.#overdue = undefined;
    }
    for (const [key, { of, rows }] of this.#byKey) {
      if (of.repetition_key === repetition_key || isIn(rows)) {
        this.#byKey.delete(key);
      }
    }
    for (const [key, { of, rows }] of this.#byId) {
      if (of.lease_id === lease_id || isIn(rows)) {
        this.#byId.delete(key);
      }
    }
  }
}

function keyOf({ of }: { readonly of: object }): string {
  return JSON.stringify(Object.entries(of).sort());
}

/** Of few sizes, since each is a statement of its own: what is missing is said twice. */
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
