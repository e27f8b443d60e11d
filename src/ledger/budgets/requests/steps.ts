/** The steps of a request for more budget: what is wanted, what may come of it, and which step is possible when. */
import type { Amount, Budget } from '../../../filter/claim.ts';
import type { BudgetRequestState } from '../../storage/service-tables.ts';
import type { BudgetRefusal } from '../edits.ts';
import { type BudgetRequest, isOpen } from './rows.ts';

/** What is asked for. */
export interface WantedMore extends Pick<Budget, 'projectId' | 'userId'> {
  /** More than 0: what the budget should grow by. */
  readonly amount: Amount;
  /** In seconds of the epoch: until when it is needed. */
  readonly validUntil: bigint;
}

export interface Requester {
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
      /** Default: what was asked for. */
      readonly amount?: Amount | undefined;
      readonly validUntil?: bigint | undefined;
      /** As of `BudgetEditor`. */
      readonly isBounded: boolean;
    };

export type RequestRefusal =
  /** The project has so many open requests, or so many of the last 24 hours. */
  | { readonly kind: 'too-many'; readonly open: boolean; readonly most: number }
  /** The time until which it is needed is over. */
  | { readonly kind: 'over' }
  /** It is for a user without a budget of their own: one would limit them further. */
  | { readonly kind: 'no-budget' }
  /** The budget would be larger than any can be. */
  | { readonly kind: 'too-large' }
  | { readonly kind: 'gone' }
  /** The step is not possible from its state. */
  | { readonly kind: 'settled'; readonly current: BudgetRequest }
  /** The budget cannot become so. */
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

/** Whether it was done before in the same way. */
export function isDone(request: BudgetRequest, step: RequestStep): boolean {
  if (!OUTCOMES[step.kind].includes(request.state)) {
    return false;
  }
  const { amount, validUntil } = termsOf(request, step);
  return (
    step.kind !== 'grant' || (request.granted?.amount === amount && request.granted.validUntil === validUntil)
  );
}

/** Whether it may be done now. */
export function isPossible(request: BudgetRequest, { kind }: RequestStep): boolean {
  return isOpen(request) && !(kind === 'endorse' && request.state === 'endorsed');
}

/** What a grant is of. */
export function termsOf(request: BudgetRequest, step: RequestStep) {
  const { amount = request.amount, validUntil = request.validUntil } = step.kind === 'grant' ? step : {};
  return { amount, validUntil };
}
