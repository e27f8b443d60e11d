/**
 * What checks that belong together have read: the same rows, at the same time, for all of them. Each row is read once, so that many leases
 * can be tried at the cost of one check. Nothing is recorded by what was remembered: a commit reads again.
 */
import type { CompiledQuery } from 'kysely';
import { budgetAccount } from '../../../filter/claim.ts';
import type { Work } from '../../storage/database.ts';
import type { Statements } from '../statements.ts';
import { askOf } from './project-memory.ts';

/** More budgets are read when they are needed. */
const MOST_BUDGETS = 100;

type Row = Readonly<Record<string, unknown>>;

export class CheckMemory {
  readonly #answers = new Map<string, readonly unknown[]>();
  readonly #balances = new Map<string, Row | undefined>();
  /** The accounts of the budgets that were read: where a lease may be moved to. */
  #expected: readonly string[] = [];
  #now: bigint | undefined;

  /** When the first of the checks was made. */
  now(read: () => bigint): bigint {
    this.#now ??= read();
    return this.#now;
  }

  get isEmpty(): boolean {
    return this.#now === undefined;
  }

  /** Runs some work that only reads, from memory where it can; else with `read`, which is called once. */
  run<Result>(
    statements: Statements,
    work: () => Work<Result>,
    read: (work: () => Work<Result>) => Promise<Result>,
  ): Result | Promise<Result> {
    const remembered = this.#remembered(statements, work());
    const step = remembered.next([]);
    // Nothing was missing.
    return step.done ? step.value : read(() => this.#remembered(statements, work()));
  }

  *#remembered<Result>(statements: Statements, work: Work<Result>): Work<Result> {
    let step = work.next([]);
    while (!step.done) {
      const ask = askOf(step.value);
      step = work.next(
        ask?.kind === 'balances'
          ? yield* this.#balancesOf(statements, ask.of)
          : yield* this.#answer(step.value, ask?.kind === 'budgets'),
      );
    }
    return step.value;
  }

  *#answer(query: CompiledQuery, isAboutBudgets: boolean): Work<readonly unknown[]> {
    const key = `${query.sql}\0${query.parameters.map(String).join('\0')}`;
    let answer = this.#answers.get(key);
    if (answer === undefined) {
      answer = yield query;
      this.#answers.set(key, answer);
      if (isAboutBudgets) {
        const budgets = answer as readonly { readonly id: bigint }[];
        this.#expected = budgets.slice(0, MOST_BUDGETS).map(budgetAccount);
      }
    }
    return answer;
  }

  /** Reads the accounts of all budgets together with the first that are asked for. */
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
