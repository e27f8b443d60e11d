/** Requests for more budget as rows of the table. */
import type { Kysely, Selectable } from 'kysely';
import type { Amount, Budget } from '../../../filter/claim.ts';
import { rows, type Work } from '../../storage/database.ts';
import type { Tables } from '../../storage/schema.ts';
import {
  type BudgetRequestState,
  type BudgetRequestsTable,
  OPEN_STATES,
} from '../../storage/service-tables.ts';

/** Author, time in microseconds of the epoch, and reason of a step. */
export interface TakenStep {
  readonly at: bigint;
  readonly who: string;
  readonly reason: string | null;
}

export interface BudgetRequest extends Pick<Budget, 'projectId' | 'userId'> {
  readonly id: bigint;
  /** Requested increase of the budget. */
  readonly amount: Amount;
  /** End of the need, in seconds of the epoch. */
  readonly validUntil: bigint;
  readonly reason: string;
  readonly state: BudgetRequestState;
  readonly asked: Pick<TakenStep, 'at' | 'who'>;
  /** `Caller.identity` */
  readonly asker: string;
  readonly endorsed: TakenStep | null;
  /** The step that closed the request. */
  readonly settled: TakenStep | null;
  /** The granted increase, and the budget that received it. */
  readonly granted: {
    readonly amount: Amount;
    readonly validUntil: bigint;
    readonly budget: bigint;
  } | null;
}

export function isOpen({ state }: Pick<BudgetRequest, 'state'>): boolean {
  return OPEN_STATES.some((open) => open === state);
}

export function requestOf(row: Selectable<BudgetRequestsTable>): BudgetRequest {
  const { granted_amount: amount, granted_until: validUntil, budget } = row;
  return {
    id: row.id,
    projectId: row.project_id,
    userId: row.user_id,
    amount: row.amount,
    validUntil: row.valid_until,
    reason: row.reason,
    state: row.state,
    asker: row.asker,
    asked: { at: row.asked_at, who: row.asked_by },
    endorsed: stepOf(row.endorsed_at, row.endorsed_by, row.endorsed_reason),
    settled: stepOf(row.settled_at, row.settled_by, row.settled_reason),
    granted:
      amount === null || validUntil === null || budget === null ? null : { amount, validUntil, budget },
  };
}

function stepOf(at: bigint | null, who: string | null, reason: string | null): TakenStep | null {
  return at === null || who === null ? null : { at, who, reason };
}

export function* requestIn(queries: Kysely<Tables>, id: bigint): Work<BudgetRequest | undefined> {
  const query = queries.selectFrom('budget_requests').selectAll().where('id', '=', id);
  return (yield* rows(query.compile())).map(requestOf)[0];
}
