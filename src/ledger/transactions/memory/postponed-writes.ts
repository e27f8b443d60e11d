/**
 * The postponed writes of a group: rows of many leases in few statements, and each balance once, however many
 * leases change it.
 */
import type { CompiledQuery } from 'kysely';
import type { AccountsTable, EntriesTable, LeaseRow } from '../../storage/schema.ts';
import type { Statements } from '../statements.ts';
import type { Ask } from './project-memory.ts';

/** Limit of rows in one statement. */
const MOST_ROWS = 64;

export type Postponed =
  | { readonly kind: 'addLease'; readonly of: LeaseRow }
  | Extract<Ask, { readonly kind: 'setBalances' | 'addEntries' }>;

export class PostponedWrites {
  #leases: LeaseRow[] = [];
  #entries: Omit<EntriesTable, 'id'>[] = [];
  /** By project and name. */
  readonly #balances = new Map<string, Map<string, AccountsTable>>();
  /** Project → time of its last lock. */
  readonly #locks = new Map<string, bigint>();

  get isEmpty(): boolean {
    return this.#leases.length + this.#entries.length + this.#balances.size + this.#locks.size === 0;
  }

  add(write: Postponed): void {
    switch (write.kind) {
      case 'addLease':
        this.#leases.push(write.of);
        break;
      case 'addEntries':
        this.#entries.push(...write.of);
        break;
      case 'setBalances':
        for (const account of write.of) {
          const { project_id, name } = account;
          const ofProject = this.#balances.get(project_id) ?? new Map<string, AccountsTable>();
          this.#balances.set(project_id, ofProject.set(name, account));
        }
    }
  }

  /** For a project that is already locked. */
  lockAgain(projectId: string, at: bigint): void {
    this.#locks.set(projectId, at);
  }

  /**
   * Whether the result of a query may depend on postponed writes. `ask`: `undefined` = an unrecognised query.
   */
  concerns(ask: Ask | undefined): boolean {
    if (this.isEmpty) {
      return false;
    }
    switch (ask?.kind) {
      case 'lockProject':
        return this.#locks.has(ask.of.project_id);
      case 'budgets':
      case 'nextLeaseIds':
        return false;
      case 'balances':
        return ask.of.some(({ project_id, name }) => this.#balances.get(project_id)?.has(name));
      case 'overdueLeases':
        return this.#leases.some(
          ({ project_id, ends_at }) => project_id === ask.of.project_id && ends_at <= ask.of.now,
        );
      case 'leaseById':
        return this.#leases.some(({ lease_id }) => lease_id === ask.of.lease_id);
      case 'leasesByKey':
        return this.#leases.some(({ repetition_key }) => repetition_key === ask.of.repetition_key);
      default:
        return true;
    }
  }

  /** Returns and clears all writes as statements, in an order that satisfies their dependencies. */
  take({ lockProject, addLeases, setBalances, addEntries }: Statements): CompiledQuery[] {
    if (this.isEmpty) {
      return [];
    }
    const accounts = [...this.#balances.values()].flatMap((ofProject) => [...ofProject.values()]);
    const queries = [
      ...[...this.#locks].map(([project_id, at]) => lockProject({ project_id, at })),
      ...inFewSizes(this.#leases).map(addLeases),
      ...inFewSizes(accounts).map(setBalances),
      ...inFewSizes(this.#entries).map(addEntries),
    ];
    this.#leases = [];
    this.#entries = [];
    this.#balances.clear();
    this.#locks.clear();
    return queries;
  }
}

/** Each size is a separate statement: powers of two keep their number small. */
export function inFewSizes<Row>(rows: readonly Row[]): Row[][] {
  const all: Row[][] = [];
  for (let start = 0, size = MOST_ROWS; start < rows.length; start += size) {
    while (size > rows.length - start) {
      size /= 2;
    }
    all.push(rows.slice(start, start + size));
  }
  return all;
}
