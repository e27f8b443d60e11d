/** Shared state of the parts of a group about a locked project. */
import type { CompiledQuery } from 'kysely';
import type { LeaseRow } from '../../storage/schema.ts';
import type { Locked, Statements } from '../statements.ts';

export type Rows<Row> = readonly Row[];
export type RowOf<Kind extends keyof Statements> =
  NonNullable<Statements[Kind]> extends (of: never) => CompiledQuery<infer Row> ? Row : never;
type AskOf<Kind extends Ask['kind']> = Extract<Ask, { readonly kind: Kind }>['of'];

interface Found {
  readonly of: AskOf<'leasesByKey'> | AskOf<'leaseById'>;
  readonly rows: Rows<LeaseRow>;
}

type WrittenLease = Pick<LeaseRow, 'lease_id' | 'repetition_key' | 'state' | 'ends_at'> & {
  readonly id?: bigint;
};

export class ProjectMemory {
  #lock: Rows<Locked>;
  #overdue: { readonly until: bigint; readonly rows: Rows<RowOf<'overdueLeases'>> } | undefined;
  /** By user. */
  readonly #budgets = new Map<string, Rows<RowOf<'budgets'>>>();
  /** By account; `undefined` = no balance. */
  readonly #balances = new Map<string, RowOf<'balances'> | undefined>();
  /** By query: leases with a key or an id. */
  readonly #leases = new Map<string, Found>();

  constructor(lock: Rows<Locked>) {
    this.#lock = lock;
  }

  relock(lock: Rows<Locked>): void {
    this.#lock = lock;
  }

  /**
   * With a clock other than the database's, entries must not be dated after the `latest_at` of their project.
   */
  #isLockedAt(at: bigint): boolean {
    return this.#lock.every(({ now, latest_at }) => now !== undefined || at <= latest_at);
  }

  /** `ask`: about this project. */
  recall(ask: Ask): Rows<unknown> | undefined {
    switch (ask.kind) {
      case 'lockProject':
        return this.#isLockedAt(ask.of.at) ? this.#lock : undefined;
      case 'overdueLeases': {
        const { now } = ask.of;
        return this.#overdue !== undefined && now <= this.#overdue.until
          ? this.#overdue.rows.filter(({ ends_at }) => ends_at <= now)
          : undefined;
      }
      case 'budgets':
        return ask.of.length === 1 ? this.#budgets.get(ask.of[0]?.user_id ?? '') : undefined;
      case 'balances':
        return ask.of.every(({ name }) => this.#balances.has(name))
          ? ask.of.flatMap(({ name }) => this.#balances.get(name) ?? [])
          : undefined;
      case 'leasesByKey':
      case 'leaseById':
        return this.#leases.get(keyOf(ask))?.rows;
      default:
        return undefined;
    }
  }

  /** `ask`: about this project. */
  note(ask: Ask, answer: Rows<unknown>): void {
    switch (ask.kind) {
      case 'overdueLeases':
        this.#overdue = { until: ask.of.now, rows: answer as Rows<RowOf<'overdueLeases'>> };
        break;
      case 'budgets':
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
      case 'leaseById':
        this.#leases.set(keyOf(ask), { of: ask.of, rows: answer as Rows<LeaseRow> });
    }
  }

  forgetLease({ id, lease_id, repetition_key, state, ends_at }: WrittenLease): void {
    const isIn = (rows: Rows<{ readonly id: bigint }>) =>
      id !== undefined && rows.some((row) => row.id === id);
    const overdue = this.#overdue;
    if (overdue !== undefined && (isIn(overdue.rows) || (state === 'open' && ends_at <= overdue.until))) {
      this.#overdue = undefined;
    }
    for (const [key, { of, rows }] of this.#leases) {
      const isAskedFor = 'lease_id' in of ? of.lease_id === lease_id : of.repetition_key === repetition_key;
      if (isAskedFor || isIn(rows)) {
        this.#leases.delete(key);
      }
    }
  }
}

/** Equal for equal queries. */
export function keyOf({ of }: { readonly of: object }): string {
  return JSON.stringify(Object.entries(of).sort());
}

const RECOGNISED = [
  'lockProject',
  'overdueLeases',
  'budgets',
  'balances',
  'setBalances',
  'addEntries',
  'leasesByKey',
  'leaseById',
  'addLease',
  'addLeaseWithId',
  'setLease',
  'nextLeaseIds',
] as const satisfies readonly (keyof Statements)[];

type Kind = (typeof RECOGNISED)[number];

/** A statement with its values. */
export type Ask = {
  [Name in Kind]: { readonly kind: Name; readonly of: Parameters<NonNullable<Statements[Name]>>[0] };
}[Kind];

/** On the query itself: keys of a WeakMap, about ten per lease, would burden the garbage collector. */
const ASK = Symbol('ask');
type Recognised = CompiledQuery & { [ASK]?: Ask };

/** `undefined` = not a recognized query. */
export function askOf(query: Recognised): Ask | undefined {
  return query[ASK];
}

/** The same statements, with queries that `askOf` recognises. */
export function recognisable(statements: Statements): Statements {
  const known: Record<string, unknown> = { ...statements };
  for (const kind of RECOGNISED) {
    const build = statements[kind] as ((of: never) => CompiledQuery) | undefined;
    if (build !== undefined) {
      known[kind] = (of: never) => {
        const query: Recognised = build(of);
        query[ASK] = { kind, of } as Ask;
        return query;
      };
    }
  }
  return known as Statements;
}
