/** Requests for more budget: authorization, validation, messages. */
import { hash } from 'node:crypto';
import { budgetUnit } from '../../enforcement/configuration.ts';
import { type Amount, formatUnitHours, MAX_AMOUNT } from '../../filter/claim.ts';
import {
  askForBudget,
  pageOfRequests,
  REQUESTS,
  type RequestsQuery,
  requestById,
  stepRequest,
} from '../../ledger/budgets/requests/requests.ts';
import { type BudgetRequest, isOpen } from '../../ledger/budgets/requests/rows.ts';
import type { RequestEdit, RequestRefusal, RequestStep } from '../../ledger/budgets/requests/steps.ts';
import { amountOf, idOf, newIdOf, secondOf } from '../../ledger/budgets/terms.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { PageOf } from '../../ledger/reports/pages.ts';
import { ApiError } from '../api/route.ts';
import { rowNumber } from '../api/shown.ts';
import { type Caller, may, visibleProjects } from '../users/caller.ts';
import { type Filters, narrowed } from './budget-lists.ts';
import { inApi, mayChange, reasonOf, refusalError } from './change-budgets.ts';
import type { RequestInput, StepInput } from './inputs.ts';
import { accountId, ledgerWith, notAllowed, ownProject, ownUser, type Requester } from './named-accounts.ts';

/**
 * Members may request for their project or for themselves, managers and operators for every user.
 *
 * @throws ApiError 403, 409, 422, 503, LedgerUnavailableError
 */
export async function askForBudgetFor(requester: Requester, input: RequestInput): Promise<BudgetRequest> {
  const { caller, deadline } = requester;
  const ledger = await requestsLedger(requester);
  const project = inApi(() => idOf('projectId', input.project_id));
  const own = caller.kind === 'member' ? ownProject(caller, project) : undefined;
  if (!may(caller, 'request-budget', own ?? project)) {
    throw notAllowed();
  }
  const userId = input.user_id ?? null;
  const self = userId === null ? undefined : ownUser(caller, userId);
  if (userId !== null && self === undefined && !may(caller, 'set-user-budget', own ?? project)) {
    throw notAllowed();
  }
  const reason = reasonOf(input.reason);
  const terms = { amount: amountIn(requester, input.amount), validUntil: untilIn(input.valid_until) };
  const user = userId === null ? null : inApi(() => newIdOf('userId', userId));
  const newId = () => inApi(() => newIdOf('projectId', project));
  const wanted = {
    projectId: own ?? (await accountId(requester, 'project', newId(), 'project_id')),
    userId: self ?? (user === null ? null : await accountId(requester, 'user', user, 'user_id')),
    ...terms,
  };
  const asker = { who: caller.who, reason, identity: requesterOf(caller) };
  return done(requester, await askForBudget(ledger, wanted, asker, deadline));
}

/** @throws ApiError 403, 404, 409, 422, 503, LedgerUnavailableError */
export async function stepRequestFor(
  requester: Requester,
  id: string,
  kind: RequestStep['kind'],
  { amount, valid_until: until, reason: why = '' }: StepInput,
): Promise<BudgetRequest> {
  const { caller, deadline } = requester;
  const request = await requestFor(requester, id);
  if (!mayTake(caller, request, kind)) {
    throw notAllowed();
  }
  const reason = kind === 'grant' || kind === 'refuse' || why.trim() !== '' ? reasonOf(why) : null;
  const step: RequestStep =
    kind === 'grant'
      ? {
          kind,
          isBounded: caller.kind !== 'operator',
          amount: amount === undefined ? undefined : amountIn(requester, amount),
          validUntil: until === undefined ? undefined : untilIn(until),
        }
      : { kind };
  const ledger = await requestsLedger(requester);
  return done(requester, await stepRequest(ledger, request, step, { who: caller.who, reason }, deadline));
}

/** A request that the caller may see. @throws ApiError 404, 503, LedgerUnavailableError */
export async function requestFor(requester: Requester, id: string): Promise<BudgetRequest> {
  const ledger = await requestsLedger(requester);
  const request = await requestById(ledger, rowNumber(id), requester.deadline);
  if (request === undefined || visibleProjects(requester.caller)?.includes(request.projectId) === false) {
    throw noRequest();
  }
  return request;
}

/** @throws ApiError 422 for a name that Keystone does not have, 503, LedgerUnavailableError, CursorError */
export async function requestsFor(
  requester: Requester,
  query: Filters & Pick<RequestsQuery, 'states'>,
): Promise<PageOf<BudgetRequest>> {
  await requestsLedger(requester);
  return narrowed(requester, query, pageOfRequests);
}

/** Whether the caller has the right to a step. The console shows its form only then, for open requests. */
export function mayTake(caller: Caller, request: BudgetRequest, kind: RequestStep['kind']): boolean {
  switch (kind) {
    case 'endorse':
    case 'refuse':
      return may(caller, 'endorse-budget-request', request.projectId);
    case 'withdraw':
      return may(caller, 'request-budget', request.projectId) && request.asker === requesterOf(caller);
    case 'grant':
      return mayChange(caller, request);
  }
}

export function requestPath({ id }: Pick<BudgetRequest, 'id'>): string {
  return `/v1/budget-requests/${id}`;
}

/** A hash of the identity: for tokens it is a digest of the token, which a database must not hold. */
export function requesterOf({ identity }: Pick<Caller, 'identity'>): string {
  return hash('sha256', identity, 'base64url');
}

/** @throws ApiError 404 if nothing uses the ledger; 503 if it lacks the table; LedgerUnavailableError */
function requestsLedger(requester: Requester): Promise<Ledger> {
  return ledgerWith(requester, REQUESTS, 'requests for budgets');
}

/** @throws ApiError */
function amountIn({ generation }: Requester, text: string | number): Amount {
  const unit = budgetUnit(generation.configuration);
  const amount = inApi(() => amountOf(text, unit));
  return moreThanNothing(amount, unit);
}

/** @throws ApiError */
export function moreThanNothing(amount: Amount, unit: string): Amount {
  if (amount === 0n) {
    throw new ApiError(422, `expected more than 0 ${unit}`, { field: 'amount' });
  }
  return amount;
}

/** @throws ApiError */
const untilIn = (text: string) => inApi(() => secondOf('until', text));

function done({ generation }: Requester, edit: RequestEdit): BudgetRequest {
  if (edit.kind === 'refused') {
    throw requestError(edit.refusal, budgetUnit(generation.configuration));
  }
  return edit.request;
}

function noRequest(): ApiError {
  return new ApiError(404, 'there is no such request');
}

const STATES: Readonly<Record<BudgetRequest['state'], string>> = {
  requested: 'is not endorsed',
  endorsed: 'is endorsed',
  granted: 'was granted',
  changed: 'was granted with other terms',
  refused: 'was refused',
  withdrawn: 'was withdrawn',
};

export function requestError(refusal: RequestRefusal, unit: string): ApiError {
  switch (refusal.kind) {
    case 'gone':
      return noRequest();
    case 'too-many':
      return new ApiError(
        409,
        refusal.open
          ? `the project has ${refusal.most} open requests: wait until some are decided, or withdraw them`
          : `the project has made ${refusal.most} requests within 24 hours: wait until tomorrow`,
      );
    case 'over':
      return new ApiError(422, 'expected a time in the future', { field: 'valid_until' });
    case 'no-budget':
      return new ApiError(
        422,
        'the user has no budget of their own at that time: request it for the project, whose budget limits them',
        { field: 'user_id' },
      );
    case 'too-large':
      return new ApiError(
        422,
        `the budget would be larger than ${formatUnitHours(MAX_AMOUNT, 'down')} ${unit}`,
        { field: 'amount' },
      );
    case 'settled': {
      const { current } = refusal;
      const by = (isOpen(current) ? current.endorsed : current.settled)?.who;
      return new ApiError(
        409,
        `the request ${STATES[current.state]} already${by === undefined ? '' : `, by ${by}`}`,
      );
    }
    case 'budget':
      return refusalError(refusal.refusal, unit);
  }
}
