/** The ledger that a route reads. */
import { inTime, type Wait } from '../../base/deadline.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { Generation } from '../configuration/generation.ts';
import { ApiError } from './route.ts';

export const NO_LEDGER = 'this service keeps no ledger: no filter or policy that needs one is enabled';

/** @throws ApiError 404 if nothing in the configuration uses a ledger; LedgerUnavailableError */
export function ledgerOf({ ledger }: Pick<Generation, 'ledger'>, wait: Wait): Promise<Ledger> {
  if (ledger === undefined) {
    throw new ApiError(404, NO_LEDGER);
  }
  return inTime(ledger.ledger(wait), wait);
}
