/**
 * Shared reads of related checks: the same rows, as of the same time. Each row is read once, so many leases
 * can be tried at the cost of one check. Nothing is recorded from this memory: a commit reads again.
 */

import type { CompiledQuery } from 'kysely';
import { budgetAccount } from '../../../filter/claim.ts';
import { addTo } from '../../add-to.ts';
import type { Work } from '../../storage/database.ts';
import type { Statements } from '../statements.ts';
import { askOf } from './project-memory.ts';

/** Further budgets are read when needed. */
const MOST_BUDGETS = 100;

type Row = Readonly<Record<string, unknown>>;

interface Answer {
  readonly parameters: readonly unknown[];
  readonly rows: readonly unknown[];
}

export class CheckMemory {
  /** By statement: a check has few texts, and the same each time. */
  readonly #answers = new Map<string, Answer[]>();
  readonly #balances = new Map<string, Row | undefined>();
  /** The accounts of the budgets that were read, which other proposals of the lease may use. */
  #expected: readonly string[] = [];
  #now: bigint | undefined;

  /** The time of the first check. */
  now(read: () => bigint): bigint {
    this.#now ??= read();
    return this.#now;
  }

  get isEmpty(): boolean {
    return this.#now === undefined;
  }

  /** Runs work that only reads, from memory if possible; otherwise calls `read` once. */
  run<Result>(
    statements: Statements,
    work: () => Work<Result>,
    read: (work: () => Work<Result>) => Promise<Result>,
  ): Result | Promise<Result> {
    if (this.#answers.size > 0) {
      const step = this.#remembered(statements, work()).next([]);
      // No reads were missing.
      if (step.done) {
        return step.value;
      }
    }
    return read(() => this.#remembered(statements, work()));
  }

  *#remembered<Result>(statements: Statements, work: Work<Result>): Work<Result> {
    let step = work.next([]);
    while (!step.done) {
      const query = step.value;
      const ask = askOf(query);
      step = work.next(
        ask?.kind === 'balances'
          ? yield* this.#balancesOf(statements, ask.of)
          : (this.#recall(query) ?? this.#note(query, yield query, ask?.kind === 'budgets')),
      );
    }
    return step.value;
  }

  #recall({ sql, parameters }: CompiledQuery): readonly unknown[] | undefined {
    return this.#answers.get(sql)?.find((known) => isEqual(known.parameters, parameters))?.rows;
  }

  #note(
    { sql, parameters }: CompiledQuery,
    rows: readonly unknown[],
    isAboutBudgets: boolean,
  ): readonly unknown[] {
    addTo(this.#answers, sql, { parameters, rows });
    if (isAboutBudgets) {
      const budgets = rows as readonly { readonly id: bigint }[];
      this.#expected = budgets.slice(0, MOST_BUDGETS).map(budgetAccount);
    }
    return rows;
  }

  /** Reads the accounts of all budgets together with the first requested ones. */
  *#balancesOf(
    statements: Statements,
    accounts: Parameters<Statements['balances']>[0],
  ): Work<readonly unknown[]> {
    const project_id = accounts[0]?.project_id ?? '';
    const wanted = accounts.map(({ name }) => name);
    if (wanted.some((name) => !this.#balances.has(name))) {
      const unknown = [...new Set([...wanted, ...this.#expected])].filter(
        (name) => !this.#balances.has(name),
      );
      const rows = (yield statements.balances(
        unknown.map((name) => ({ project_id, name })),
      )) as readonly Row[];
      for (const name of unknown) {
        this.#balances.set(name, undefined);
      }
      for (const row of rows) {
        this.#balances.set(String(row.name), row);
      }
    }
    return wanted.flatMap((name) => this.#balances.get(name) ?? []);
  }
}

function isEqual(some: readonly unknown[], others: readonly unknown[]): boolean {
  return some.length === others.length && some.every((value, index) => value === others[index]);
}
