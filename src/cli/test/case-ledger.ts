/** Puts into the ledger of a trial what a case gives. */
import { waitFor } from '../../base/deadline.ts';
import type { Instant } from '../../lease/dates.ts';
import { formatInstant } from '../../lease/dates.ts';
import { type Context, type Lease, leaseEnd, leaseStart } from '../../lease/lease.ts';
import { type BudgetStanding, listBudgets, setBudget } from '../../ledger/budgets/budgets.ts';
import { parseBudget } from '../../ledger/budgets/terms.ts';
import { identityOf, nameOf } from '../../ledger/identity.ts';
import { requestOf } from '../../ledger/reconciliation/change-lease.ts';
import { timeOf } from './case-time.ts';
import type { GivenBudget } from './lease-case.ts';
import type { LeaseTrial } from './lease-trial.ts';

/** A lease that was granted before the case. */
export interface StandingLease {
  readonly context: Context;
  readonly lease: Lease;
}

const WHO = 'a case';
const WAIT = waitFor(undefined);

/** @throws InvalidRequestError, BudgetConflictError */
export async function giveBudget(trial: LeaseTrial, budget: GivenBudget): Promise<void> {
  const now = trial.now();
  const { project, user, from, until, amount } = budget;
  const wanted = parseBudget(
    {
      projectId: project,
      userId: user ?? null,
      from: formatInstant(timeOf(from, now)),
      until: formatInstant(timeOf(until, now)),
      amount,
    },
    'unit-hours',
  );
  const author = { who: WHO, reason: null };
  await trial.ledger?.read((ledger) => setBudget(ledger, wanted, author, WAIT));
}

/** Records leases whether they fit or not, each when it began: all of it is charged. */
export async function giveLeases(trial: LeaseTrial, leases: readonly StandingLease[]): Promise<void> {
  const now = trial.now();
  const dated = leases.map((one) => ({
    ...one,
    start: leaseStart(one.lease) ?? now,
    end: leaseEnd(one.lease) ?? now,
  }));
  // The clock of a ledger does not go back.
  dated.sort((a, b) => (a.start < b.start ? -1 : a.start > b.start ? 1 : 0));
  for (const { context, lease, start, end } of dated) {
    const request = requestOf(identityOf(context, [lease, lease]), {
      lease: { name: nameOf([lease, lease]), start, end, reservations: lease.reservations ?? [] },
      current: { start, end },
      claimants: trial.claimants,
    });
    const author = { operation: 'reconcile', who: WHO, requestId: null, reason: null } as const;
    await trial.at(earlier(start, now), async () => {
      await trial.ledger?.read((ledger) => ledger.commit(request, author, WAIT, true));
    });
  }
}

/** Empty if no filter uses the ledger. */
export async function budgetsIn(trial: LeaseTrial): Promise<readonly BudgetStanding[]> {
  return (await trial.ledger?.read((ledger) => listBudgets(ledger, undefined, WAIT))) ?? [];
}

function earlier(one: Instant, other: Instant): Instant {
  return one < other ? one : other;
}
