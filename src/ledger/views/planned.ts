/** What leases are still to use of budgets. */
import type { Wait } from '../../deadline.ts';
import type { Amount } from '../../filter/amount.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import type { Ledger } from '../ledger.ts';
import { usedBefore } from './charges.ts';
import { leaseSpan } from './lease-span.ts';

/** After every lease, in seconds of the epoch. */
const NEVER = 2n ** 43n;

/**
 * Account → what is still to be used of what is taken. `undefined` = there are too many pending and active leases to tell.
 * @throws LedgerUnavailableError
 */
export async function plannedUse(
  ledger: Ledger,
  projectId: string,
  wait: Wait,
): Promise<ReadonlyMap<string, Amount> | undefined> {
  const now = ledger.now() / MICROSECONDS_PER_SECOND;
  const { leases, completeFrom } = await leaseSpan(ledger, { projectId, from: now, until: NEVER }, wait);
  if (completeFrom > now) {
    return undefined;
  }
  const planned = new Map<string, Amount>();
  for (const share of leases.flatMap(({ charges }) => charges)) {
    const rest = share.amount - usedBefore(share, now);
    planned.set(share.account, (planned.get(share.account) ?? 0n) + rest);
  }
  return planned;
}
