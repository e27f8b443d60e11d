/** The steps of a request for more budget: requested terms, possible refusals, and allowed transitions. */
import type { Amount, Budget } from '../../../filter/claim.ts';
import type { BudgetRequestState } from '../../storage/service-tables.ts';
import type { BudgetRefusal } from '../edits.ts';
import { type BudgetRequest, isOpen } from './rows.ts';

/** The requested terms. */
export interface WantedMore extends Pick<Budget, 'projectId' | 'userId'> {
  /** Requested increase of the budget; more than 0. */
  readonly amount: Amount;
  /** End of the need, in seconds of the epoch. */
  readonly validUntil: bigint;
}

export interface Asker {
  readonly who: string;
  readonly reason: string;
  /** `Caller.identity` */
  readonly identity: string;
}

export type RequestStep =
  | { readonly kind: 'endorse' }
  | { readonly kind: 'refuse' }
  | { readonly kind: 'withdraw' }
  | {
      readonly kind: 'grant';
      /** Default: the requested terms. */
      readonly amount?: Amount | undefined;
      readonly validUntil?: bigint | undefined;
      /** See `BudgetEditor`. */
      readonly isBounded: boolean;
    };

export type RequestRefusal =
  /** The project has too many open requests, or too many within the last 24 hours. */
  | { readonly kind: 'too-many'; readonly open: boolean; readonly most: number }
  /** The requested end has passed. */
  | { readonly kind: 'over' }
  /** The user has no budget of their own: a new one would limit them further. */
  | { readonly kind: 'no-budget' }
  /** The budget would exceed the maximum. */
  | { readonly kind: 'too-large' }
  | { readonly kind: 'gone' }
  /** The current state does not allow the step. */
  | { readonly kind: 'settled'; readonly current: BudgetRequest }
  /** The budget was not changed, for this reason. */
  | { readonly kind: 'budget'; readonly refusal: BudgetRefusal };

export type RequestEdit =
  | { readonly kind: 'done'; readonly request: BudgetRequest }
  | { readonly kind: 'refused'; readonly refusal: RequestRefusal };

const OUTCOMES: Readonly<Record<RequestStep['kind'], readonly BudgetRequestState[]>> = {
  endorse: ['endorsed'],
  refuse: ['refused'],
  withdraw: ['withdrawn'],
  grant: ['granted', 'changed'],
};

/** Whether the step was done before in the same way. */
export function isDone(request: BudgetRequest, step: RequestStep): boolean {
  if (!OUTCOMES[step.kind].includes(request.state)) {
    return false;
  }
  const { amount, validUntil } = termsOf(request, step);
  return (
    step.kind !== 'grant' || (request.granted?.amount === amount && request.granted.validUntil === validUntil)
  );
}

/** Whether the step is allowed now. */
export function isPossible(request: BudgetRequest, { kind }: RequestStep): boolean {
  return isOpen(request) && !(kind === 'endorse' && request.state === 'endorsed');
}

/** The terms of a grant: from the step, or as requested. */
export function termsOf(request: BudgetRequest, step: RequestStep) {
  const { amount = request.amount, validUntil = request.validUntil } = step.kind === 'grant' ? step : {};
  return { amount, validUntil };
}
