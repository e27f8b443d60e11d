/** Concurrent changes of budgets: a change applies only to the version that its author has seen. */
import type { Wait } from '../../base/deadline.ts';
import type { Amount, Budget } from '../../filter/claim.ts';
import type { Ledger } from '../ledger.ts';
import { Undone, type Work } from '../storage/database.ts';
import {
  type BudgetAuthor,
  eraseBudget,
  otherOverlapping,
  type WantedBudget,
  writeBudget,
} from './budgets.ts';
import { budgetsOfOwner } from './rows.ts';
import { type BudgetView, viewOf } from './view.ts';

export interface BudgetEditor extends BudgetAuthor {
  /** Whether a user's budget must lie within the project's: see `beyondProject`. */
  readonly isBounded: boolean;
}

interface SeenBudget {
  readonly id: bigint;
  readonly projectId: string;
  /** `BudgetView.version` */
  readonly version: string;
}

/** Omitted fields stay. */
interface BudgetAmendment {
  readonly amount?: Amount | undefined;
  /** In seconds of the epoch. */
  readonly validUntil?: bigint | undefined;
}

export type BudgetRefusal =
  /** Another budget of the owner is in force at that time; on creation, it may have the same start. */
  | { readonly kind: 'overlaps'; readonly other: Budget }
  /** It was removed. */
  | { readonly kind: 'gone' }
  /** It was changed in the meantime. */
  | { readonly kind: 'changed'; readonly current: BudgetView }
  /** It would end before it starts. */
  | { readonly kind: 'empty'; readonly validFrom: bigint }
  | { readonly kind: 'beyond-project'; readonly beyond: BeyondProject };

export type BudgetEdit =
  | { readonly kind: 'done'; readonly budget: BudgetView }
  | { readonly kind: 'refused'; readonly refusal: BudgetRefusal };

/** Never replaces a budget in force. @throws LedgerUnavailableError */
export function createBudget(
  ledger: Ledger,
  wanted: WantedBudget,
  editor: BudgetEditor,
  wait: Wait,
): Promise<BudgetEdit> {
  return edited(ledger, wanted, wait, function* () {
    const ofOwner = yield* budgetsOfOwner(ledger.database.queries, wanted);
    const same = ofOwner.find(({ validFrom }) => validFrom === wanted.validFrom);
    return (
      (same && refused({ kind: 'overlaps', other: same })) ??
      (yield* written(ledger, wanted, ofOwner, editor))
    );
  });
}

/** @throws LedgerUnavailableError */
export function amendBudget(
  ledger: Ledger,
  seen: SeenBudget,
  { amount, validUntil }: BudgetAmendment,
  editor: BudgetEditor,
  wait: Wait,
): Promise<BudgetEdit> {
  return editedAsSeen(ledger, seen, wait, function* (current) {
    const { id: _, projectId, userId, validFrom } = current;
    const wanted = {
      projectId,
      userId,
      validFrom,
      validUntil: validUntil ?? current.validUntil,
      amount: amount ?? current.amount,
    };
    const ofOwner = yield* budgetsOfOwner(ledger.database.queries, wanted);
    return yield* written(ledger, wanted, ofOwner, editor);
  });
}

/** Resolves to the removed budget. Past charges stay. @throws LedgerUnavailableError */
export function withdrawBudget(
  ledger: Ledger,
  seen: SeenBudget,
  author: BudgetAuthor,
  wait: Wait,
): Promise<BudgetEdit> {
  return editedAsSeen(ledger, seen, wait, function* (current) {
    yield* eraseBudget(ledger, current, author);
    return { kind: 'done', budget: current };
  });
}

/** `work` runs after the project is locked. */
export function edited<Edit extends { readonly kind: 'done' | 'refused' }>(
  ledger: Ledger,
  { projectId: project }: { readonly projectId: string },
  wait: Wait,
  work: () => Work<Edit | Undone<Edit>>,
): Promise<Edit> {
  return ledger.transact(
    'budget',
    function* (transaction) {
      yield* transaction.lock(project);
      return yield* work();
    },
    wait,
    { project, isRefused: ({ kind }) => kind === 'refused' },
  );
}

/** `work` gets the budget as read after the project is locked, with all concurrent changes. */
function editedAsSeen(
  ledger: Ledger,
  seen: SeenBudget,
  wait: Wait,
  work: (current: BudgetView) => Work<BudgetEdit | Undone<BudgetEdit>>,
): Promise<BudgetEdit> {
  return edited(ledger, seen, wait, function* () {
    const current = yield* viewOf(ledger, seen.id);
    if (current === undefined || current.projectId !== seen.projectId) {
      return refused({ kind: 'gone' });
    }
    return current.version === seen.version ? yield* work(current) : refused({ kind: 'changed', current });
  });
}

/** Sets a budget in a transaction that has locked its project. `ofOwner`: the owner's budgets in force. */
export function* written(
  ledger: Ledger,
  wanted: WantedBudget,
  ofOwner: readonly Budget[],
  { isBounded, ...author }: BudgetEditor,
): Work<BudgetEdit | Undone<BudgetEdit>> {
  if (wanted.validUntil <= wanted.validFrom) {
    return refused({ kind: 'empty', validFrom: wanted.validFrom });
  }
  const other = otherOverlapping(wanted, ofOwner);
  if (other !== undefined) {
    return refused({ kind: 'overlaps', other });
  }
  if (isBounded) {
    if (wanted.userId === null) {
      throw new Error('expected the budget of a user: nothing bounds that of a project');
    }
    const project = { projectId: wanted.projectId, userId: null };
    const beyond = beyondProject(wanted, yield* budgetsOfOwner(ledger.database.queries, project));
    if (beyond !== undefined) {
      return refused({ kind: 'beyond-project', beyond });
    }
  }
  const { id } = yield* writeBudget(ledger, wanted, author);
  const budget = yield* viewOf(ledger, id);
  if (budget === undefined) {
    throw new Error('expected the budget that was written');
  }
  return { kind: 'done', budget };
}

function refused(refusal: BudgetRefusal): Undone<BudgetEdit> {
  return new Undone<BudgetEdit>({ kind: 'refused', refusal });
}

type Terms = Pick<Budget, 'validFrom' | 'validUntil' | 'amount'>;

/** Why a budget exceeds the project's budgets. Times in seconds of the epoch. */
export type BeyondProject =
  | { readonly kind: 'uncovered'; readonly from: bigint; readonly until: bigint }
  | { readonly kind: 'too-much'; readonly most: Amount };

/**
 * The limit of a manager: a user's budget must lie within the project's budgets. The project's budgets must
 * cover all its seconds, and it is at most the sum of those that it overlaps with. Budgets of several users
 * may add up to more, since every lease is charged to the project too. If the project's budget is reduced
 * later, nothing is changed: the smaller one limits.
 *
 * `undefined` = it is within them. `ofProject`: the project's budgets in force; they never overlap.
 */
function beyondProject(wanted: Terms, ofProject: readonly Terms[]): BeyondProject | undefined {
  const overlapping = [...ofProject]
    .filter(({ validFrom, validUntil }) => validFrom < wanted.validUntil && wanted.validFrom < validUntil)
    .sort((a, b) => (a.validFrom < b.validFrom ? -1 : 1));
  let covered = wanted.validFrom;
  for (const { validFrom, validUntil } of overlapping) {
    if (validFrom > covered) {
      return { kind: 'uncovered', from: covered, until: validFrom };
    }
    covered = validUntil;
  }
  if (covered < wanted.validUntil) {
    return { kind: 'uncovered', from: covered, until: wanted.validUntil };
  }
  const most = overlapping.reduce((sum, { amount }) => sum + amount, 0n);
  return wanted.amount > most ? { kind: 'too-much', most } : undefined;
}
