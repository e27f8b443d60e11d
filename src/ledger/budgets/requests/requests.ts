/**
 * Requests for more budget: a member requests, a manager endorses, an operator grants. Each step locks the
 * project and reads the state again, so of several concurrent decisions one succeeds. A grant changes the
 * budget and the request in one transaction.
 */
import { randomUUID } from 'node:crypto';
import type { Wait } from '../../../base/deadline.ts';
import { type Budget, MAX_AMOUNT } from '../../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import type { Ledger } from '../../ledger.ts';
import { requireTables } from '../../open.ts';
import { messagesOf } from '../../outbox/messages.ts';
import { addMessages } from '../../outbox/statements.ts';
import { numberIn, type PageOf, type PageQuery, pageOf, reading } from '../../reports/pages.ts';
import { rows, Undone, type Work } from '../../storage/database.ts';
import { isAmong } from '../../storage/query-parts.ts';
import { NEEDED_FOR_REQUESTS } from '../../storage/rights.ts';
import { type BudgetRequestState, OPEN_STATES } from '../../storage/service-tables.ts';
import type { BudgetAuthor } from '../budgets.ts';
import { edited, written } from '../edits.ts';
import { budgetsOfOwner } from '../rows.ts';
import { type BudgetRequest, isOpen, requestIn, requestOf } from './rows.ts';
import {
  isDone,
  isPossible,
  type RequestEdit,
  type Requester,
  type RequestRefusal,
  type RequestStep,
  termsOf,
  type WantedMore,
} from './steps.ts';

/** Limit of open requests per project: nobody would read more. */
export const MOST_OPEN = 20;
/** Per project in 24 hours: repeated withdrawals must not fill the database. */
export const MOST_A_DAY = 100;
const DAY = 86_400_000_000n;

/**
 * Idempotent: repeating an open request by the same user with the same terms returns that request.
 * @throws LedgerUnavailableError, ConfigurationError
 */
export async function askForBudget(
  ledger: Ledger,
  wanted: WantedMore,
  { who, reason, identity }: Requester,
  wait: Wait,
): Promise<RequestEdit> {
  await requireRequests(ledger, wait);
  return edited(ledger, wanted, wait, function* (): Work<RequestEdit | Undone<RequestEdit>> {
    const { queries } = ledger.database;
    const { projectId, userId, amount, validUntil } = wanted;
    const now = ledger.now();
    const ofProject = queries
      .selectFrom('budget_requests')
      .selectAll()
      .where('project_id', '=', projectId)
      .where((where) => where.or([where('state', 'in', OPEN_STATES), where('asked_at', '>', now - DAY)]))
      .orderBy('id')
      .limit(MOST_OPEN + MOST_A_DAY);
    const known = (yield* rows(ofProject.compile())).map(requestOf);
    const open = known.filter(isOpen);
    const same = open.find(
      (one) =>
        one.userId === userId &&
        one.amount === amount &&
        one.validUntil === validUntil &&
        one.reason === reason &&
        one.asker === identity,
    );
    if (same !== undefined) {
      return new Undone<RequestEdit>({ kind: 'done', request: same });
    }
    if (open.length >= MOST_OPEN) {
      return refused({ kind: 'too-many', open: true, most: MOST_OPEN });
    }
    if (known.filter(({ asked }) => asked.at > now - DAY).length >= MOST_A_DAY) {
      return refused({ kind: 'too-many', open: false, most: MOST_A_DAY });
    }
    const place = yield* placeOf(ledger, wanted, validUntil);
    if (place.refusal !== undefined) {
      return refused(place.refusal);
    }
    const values = {
      project_id: projectId,
      user_id: userId,
      amount,
      valid_until: validUntil,
      reason,
      asked_at: now,
      asked_by: who,
      asker: identity,
      state: 'requested' as const,
    };
    const [added] = yield* rows(
      queries.insertInto('budget_requests').values(values).returningAll().compile(),
    );
    if (added === undefined) {
      throw new Error('expected the request that was written');
    }
    return yield* announced(ledger, requestOf(added));
  });
}

/**
 * Idempotent: a step that was done before in the same way changes nothing and resolves to the current
 * request. A grant also endorses a request that is not endorsed, since authors who may grant may endorse.
 * @throws LedgerUnavailableError, ConfigurationError
 */
export async function stepRequest(
  ledger: Ledger,
  which: Pick<BudgetRequest, 'id' | 'projectId'>,
  step: RequestStep,
  author: BudgetAuthor,
  wait: Wait,
): Promise<RequestEdit> {
  await requireRequests(ledger, wait);
  return edited(ledger, which, wait, function* (): Work<RequestEdit | Undone<RequestEdit>> {
    const current = yield* requestIn(ledger.database.queries, which.id);
    if (current === undefined || current.projectId !== which.projectId) {
      return refused({ kind: 'gone' });
    }
    if (isDone(current, step)) {
      return new Undone<RequestEdit>({ kind: 'done', request: current });
    }
    if (!isPossible(current, step)) {
      return refused({ kind: 'settled', current });
    }
    const at = ledger.now();
    const { who, reason } = author;
    const endorsed = { endorsed_at: at, endorsed_by: who };
    const settled = { settled_at: at, settled_by: who, settled_reason: reason };
    switch (step.kind) {
      case 'endorse':
        return yield* put(ledger, current, { state: 'endorsed', ...endorsed, endorsed_reason: reason });
      case 'refuse':
        return yield* put(ledger, current, { state: 'refused', ...settled });
      case 'withdraw':
        return yield* put(ledger, current, { state: 'withdrawn', ...settled });
      case 'grant': {
        const granted = yield* grant(ledger, current, step, author);
        return granted instanceof Undone
          ? granted
          : yield* put(ledger, current, {
              ...(current.endorsed === null ? endorsed : {}),
              ...settled,
              ...granted,
            });
      }
    }
  });
}

/**
 * Adds to the owner's last budget that is in force at some time until then, and extends it if it ends
 * earlier. If there is none, the project gets a new budget that starts now.
 */
function* grant(
  ledger: Ledger,
  request: BudgetRequest,
  step: Extract<RequestStep, { kind: 'grant' }>,
  { who, reason }: BudgetAuthor,
) {
  const { id, projectId, userId, asked } = request;
  const { amount, validUntil } = termsOf(request, step);
  const { refusal, budget, ofOwner, second } = yield* placeOf(ledger, request, validUntil);
  if (refusal !== undefined) {
    return refused(refusal);
  }
  const wanted = {
    projectId,
    userId,
    validFrom: budget?.validFrom ?? second,
    validUntil: budget !== undefined && budget.validUntil > validUntil ? budget.validUntil : validUntil,
    amount: (budget?.amount ?? 0n) + amount,
  };
  if (wanted.amount > MAX_AMOUNT) {
    return refused({ kind: 'too-large' });
  }
  const why = `request ${id} by ${asked.who}${reason === null ? '' : `: ${reason}`}`;
  const edit = yield* written(ledger, wanted, ofOwner, { who, reason: why, isBounded: step.isBounded });
  const result = edit instanceof Undone ? edit.result : edit;
  if (result.kind === 'refused') {
    return refused({ kind: 'budget', refusal: result.refusal });
  }
  const isAsAsked = amount === request.amount && validUntil === request.validUntil;
  return {
    state: isAsAsked ? ('granted' as const) : ('changed' as const),
    granted_amount: amount,
    granted_until: validUntil,
    budget: result.budget.id,
  };
}

/** The budget that would grow; `undefined` = a new one. */
function* placeOf(
  ledger: Ledger,
  owner: Pick<Budget, 'projectId' | 'userId'>,
  until: bigint,
): Work<{
  readonly refusal?: RequestRefusal;
  readonly budget: Budget | undefined;
  readonly ofOwner: readonly Budget[];
  readonly second: bigint;
}> {
  const second = ledger.now() / MICROSECONDS_PER_SECOND;
  const ofOwner = yield* budgetsOfOwner(ledger.database.queries, owner);
  const budget = ofOwner
    .filter(({ validFrom, validUntil }) => validFrom < until && second < validUntil)
    .reduce<Budget | undefined>(
      (last, one) => (last === undefined || one.validFrom > last.validFrom ? one : last),
      undefined,
    );
  const found = { budget, ofOwner, second };
  if (until <= second) {
    return { ...found, refusal: { kind: 'over' } };
  }
  return budget === undefined && owner.userId !== null ? { ...found, refusal: { kind: 'no-budget' } } : found;
}

function* put(
  ledger: Ledger,
  { id }: BudgetRequest,
  values: Partial<Omit<Parameters<typeof requestOf>[0], 'id'>>,
): Work<RequestEdit> {
  const query = ledger.database.queries
    .updateTable('budget_requests')
    .set(values)
    .where('id', '=', id)
    .returningAll();
  const [row] = yield* rows(query.compile());
  if (row === undefined) {
    throw new Error('expected the request that was changed');
  }
  return yield* announced(ledger, requestOf(row));
}

/** The step and its notices are written together, or neither is. */
function* announced(ledger: Ledger, request: BudgetRequest): Work<RequestEdit> {
  const { watch, database } = ledger;
  if (watch?.requestBody !== undefined) {
    const about = ['budget request', String(request.id)];
    const key = randomUUID();
    const notice = { about, projectId: request.projectId, key, body: watch.requestBody(request, key) };
    yield* addMessages(database.queries, messagesOf(notice, watch.senders), ledger.now());
  }
  return { kind: 'done', request };
}

function refused(refusal: RequestRefusal): Undone<RequestEdit> {
  return new Undone<RequestEdit>({ kind: 'refused', refusal });
}

/** `undefined` = unknown id. @throws LedgerUnavailableError, ConfigurationError */
export async function requestById(
  ledger: Ledger,
  id: bigint,
  wait: Wait,
): Promise<BudgetRequest | undefined> {
  await requireRequests(ledger, wait);
  return ledger.read('read', () => requestIn(ledger.database.queries, id), wait);
}

export interface RequestsQuery extends PageQuery {
  /** Only these projects; `undefined` = all. */
  readonly projectIds?: readonly string[] | undefined;
  readonly userId?: string | undefined;
  /** Only these states; `undefined` = all. */
  readonly states?: readonly BudgetRequestState[] | undefined;
}

/** Newest first. @throws LedgerUnavailableError, ConfigurationError, CursorError */
export async function pageOfRequests(
  ledger: Ledger,
  { limit, after, projectIds, userId, states }: RequestsQuery,
  wait: Wait,
): Promise<PageOf<BudgetRequest>> {
  const last = numberIn(after);
  if (projectIds?.length === 0) {
    return { items: [], next: undefined };
  }
  await requireRequests(ledger, wait);
  let query = ledger.database.queries.selectFrom('budget_requests').selectAll();
  if (projectIds !== undefined) {
    query = query.where(isAmong(ledger.database.dialect, 'project_id', projectIds));
  }
  if (userId !== undefined) {
    query = query.where('user_id', '=', userId);
  }
  if (states !== undefined) {
    query = query.where('state', 'in', states);
  }
  if (last !== undefined) {
    query = query.where('id', '<', last);
  }
  const page = query.orderBy('id', 'desc').limit(limit + 1);
  const found = await reading(ledger, wait)(() => rows(page.compile()));
  return pageOf(found.map(requestOf), limit, ({ id }) => [id]);
}

export const REQUESTS = { migration: '0012-budget-requests', needed: NEEDED_FOR_REQUESTS };

/**
 * Leases do not need the table: it may be missing, or the role may have no access to it.
 * @throws LedgerUnavailableError, ConfigurationError
 */
function requireRequests(ledger: Ledger, wait: Wait): Promise<void> {
  return requireTables(ledger, REQUESTS, wait);
}
