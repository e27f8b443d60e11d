/**
 * Writes a notice when the use of a budget crosses a threshold, in the transaction that changes the balance:
 * both are committed, or neither. Since the project is locked, exactly one replica sees the balance on both
 * sides of the threshold, and no state is needed.
 */
import { hash, randomUUID } from 'node:crypto';
import type { Kysely } from 'kysely';
import { type Amount, type Budget, budgetAccount, budgetIdOf } from '../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import type { BudgetRequest } from '../budgets/requests/rows.ts';
import { budgetOf } from '../budgets/rows.ts';
import type { Author, JournalEntry, RecordingId } from '../ledger-request.ts';
import { rows, type Work } from '../storage/database.ts';
import type { Tables } from '../storage/schema.ts';
import { messageKey, messagesOf, type Notice, orderOf } from './messages.ts';
import { addMessages } from './statements.ts';

/** A budget whose use has just reached a threshold. */
export interface Crossing {
  readonly budget: Budget;
  /** In percent of the budget. */
  readonly threshold: number;
  readonly before: Amount;
  readonly taken: Amount;
  /** Microseconds of the epoch. */
  readonly at: bigint;
  /** `budget`: the budget was set or reduced. */
  readonly cause: Author['operation'] | 'budget';
  readonly who: string;
  readonly requestId: string | null;
}

/** The settings of notices about budgets. */
export interface BudgetWatch {
  /** In percent, without duplicates; empty = no notices about crossings. */
  readonly thresholds: readonly number[];
  /** The outbox senders; each gets every notice. */
  readonly senders: readonly string[];
  /** `key`: the unique id of the crossing. */
  body(crossing: Crossing, key: string): string;
  /**
   * The body of a notice about a step of a budget request. `undefined` = no such notices. `key`: the unique
   * id of the step.
   */
  readonly requestBody?: ((request: BudgetRequest, key: string) => string) | undefined;
}

/** The amount and use of a budget before a change; `undefined` = not in force. */
type Share = { readonly amount: Amount; readonly taken: Amount } | undefined;

/**
 * Delay of a notice, in microseconds: a lease that a later filter refuses is taken back within this time,
 * with its notice.
 */
const HELD_BACK = 2_000_000n;
const PERCENT = 100n;

export class Crossings {
  readonly #queries: Kysely<Tables>;
  readonly #watch: BudgetWatch;
  readonly #now: () => bigint;

  constructor(queries: Kysely<Tables>, watch: BudgetWatch, now: () => bigint) {
    this.#queries = queries;
    this.#watch = watch;
    this.#now = now;
  }

  /**
   * To be called after each change of balances. `changes`: account → change. Writes only if a threshold is
   * crossed; reads only budgets that are missing from the entry.
   */
  *note(
    { balances, author, budgets = [], recording, at }: JournalEntry,
    changes: ReadonlyMap<string, Amount>,
  ): Work<void> {
    const grown = new Map<bigint, string>();
    for (const [account, delta] of changes) {
      const id = delta > 0n ? budgetIdOf(account) : undefined;
      if (id !== undefined) {
        grown.set(id, account);
      }
    }
    if (grown.size === 0) {
      return;
    }
    const { operation: cause, who, requestId } = author;
    const crossings: Crossing[] = [];
    for (const budget of yield* this.#budgets(grown, budgets)) {
      const account = budgetAccount(budget);
      const before = balances.get(account) ?? 0n;
      const taken = before + (changes.get(account) ?? 0n);
      for (const threshold of this.#passed(budget, { amount: budget.amount, taken: before }, taken, at)) {
        crossings.push({ budget, threshold, before, taken, at, cause, who, requestId });
      }
    }
    yield* this.#write(crossings, recording);
  }

  /** The amount of a budget in force; `undefined` = not in force. */
  *amountOf(budget: bigint): Work<Amount | undefined> {
    const query = this.#queries
      .selectFrom('budgets')
      .select('amount')
      .where('id', '=', budget)
      .where('removed_at', 'is', null);
    const [row] = yield* rows(query.compile());
    return row?.amount;
  }

  /**
   * To be called after a budget was set. `before`: its previous amount; `undefined` = it was not in force.
   * `known`: its use. Default: read from the database.
   */
  *budgetSet(budget: Budget, before: Amount | undefined, who: string, known?: Amount): Work<void> {
    const taken = known ?? (yield* this.#takenOf(budget));
    const at = this.#now();
    const share = before === undefined ? undefined : { amount: before, taken };
    const crossings = this.#passed(budget, share, taken, at).map((threshold) => ({
      budget,
      threshold,
      before: taken,
      taken,
      at,
      who,
      cause: 'budget' as const,
      requestId: null,
    }));
    yield* this.#write(crossings, undefined);
  }

  *#takenOf(budget: Budget): Work<Amount> {
    const query = this.#queries
      .selectFrom('accounts')
      .select('balance')
      .where('project_id', '=', budget.projectId)
      .where('name', '=', budgetAccount(budget));
    const [row] = yield* rows(query.compile());
    return row?.balance ?? 0n;
  }

  /** Removes the notices of a recording that is taken back, unless their delivery has begun. */
  *withdraw(recording: RecordingId, deltas: ReadonlyMap<string, Amount>): Work<void> {
    const grown = [...deltas].flatMap(([account, delta]) => (delta > 0n ? (budgetIdOf(account) ?? []) : []));
    if (grown.length === 0) {
      return;
    }
    const { thresholds, senders } = this.#watch;
    const keys = grown.flatMap((id) => thresholds.map((one) => keyOf(id, one, recording)));
    const orders = grown.map(aboutOf);
    yield* rows(
      this.#queries
        .deleteFrom('outbox')
        .where(
          'lease',
          'in',
          senders.flatMap((sender) => orders.map((about) => orderOf(about, sender))),
        )
        .where('state', '=', 'waiting')
        .where(
          'key',
          'in',
          senders.flatMap((sender) => keys.map((key) => messageKey(key, sender))),
        )
        .where('attempts', '=', 0n)
        .where('claimed_until', '<=', this.#now())
        .compile(),
    );
  }

  /** The thresholds that the use has crossed upwards. Empty for expired budgets and budgets of 0. */
  #passed({ amount, validUntil }: Budget, before: Share, taken: Amount, at: bigint): number[] {
    if (amount <= 0n || validUntil * MICROSECONDS_PER_SECOND <= at) {
      return [];
    }
    const isAt = (share: { amount: Amount; taken: Amount }, threshold: number) =>
      share.taken * PERCENT >= share.amount * BigInt(threshold) && share.amount > 0n;
    return this.#watch.thresholds.filter(
      (threshold) => isAt({ amount, taken }, threshold) && !(before !== undefined && isAt(before, threshold)),
    );
  }

  /** The budgets in force. Those that were charged are usually in `known`. */
  *#budgets(wanted: ReadonlyMap<bigint, string>, known: readonly Budget[]): Work<Budget[]> {
    const found = known.filter(({ id }) => wanted.has(id));
    const missing = [...wanted.keys()].filter((id) => !found.some((one) => one.id === id));
    if (missing.length === 0) {
      return found;
    }
    const query = this.#queries
      .selectFrom('budgets')
      .selectAll()
      .where('id', 'in', missing)
      .where('removed_at', 'is', null);
    return [...found, ...(yield* rows(query.compile())).map(budgetOf)];
  }

  *#write(crossings: readonly Crossing[], recording: RecordingId | undefined): Work<void> {
    if (crossings.length === 0) {
      return;
    }
    const now = this.#now();
    const notices = crossings.map((crossing): Notice => {
      const { budget, threshold } = crossing;
      const key = keyOf(budget.id, threshold, recording);
      const { projectId } = budget;
      return { about: aboutOf(budget.id), projectId, key, body: this.#watch.body(crossing, key) };
    });
    const nextAt = recording === undefined ? 0n : now + HELD_BACK;
    const messages = notices.flatMap((notice) => messagesOf(notice, this.#watch.senders));
    yield* addMessages(this.#queries, messages, now, nextAt);
  }
}

function aboutOf(budget: bigint): string[] {
  return ['budget', String(budget)];
}

/**
 * The revision of a recording is unique, so the key can be computed again when the recording is taken back.
 */
function keyOf(budget: bigint, threshold: number, recording: RecordingId | undefined): string {
  const { lease, revision } = recording ?? { lease: 0n, revision: randomUUID() };
  return hash('sha256', JSON.stringify([String(budget), threshold, String(lease), String(revision)]), 'hex');
}
