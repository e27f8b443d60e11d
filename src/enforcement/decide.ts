/** Asks the filters of a chain about a lease. Whether a lease is allowed is decided in this file. */
import { isDeepStrictEqual } from 'node:util';
import type { Wait } from '../deadline.ts';
import type { Decision, Outcome } from '../filter/verdict.ts';
import type { Lease } from '../lease/lease.ts';
import { readOnly } from '../lease/read-only.ts';
import type { Logger } from '../logger.ts';
import { callHook } from './call-hook.ts';
import type { ChainedFilter } from './chain.ts';
import type { CheckOptions } from './check-options.ts';
import { accepted, refused } from './decision.ts';
import { FAILED_MESSAGE } from './failure.ts';
import type { HookRequest } from './hook-request.ts';
import { describeChanges } from './lease-changes.ts';
import { logAudit } from './log-lines.ts';
import { afterRound, outcomeOf } from './outcomes.ts';

/** If filters still change the lease in this round, they contradict each other. */
const MAX_ROUNDS = 5;

/**
 * Asks the filters in order. If one changed the lease, asks all of them again about the result, until a round changes
 * nothing: every filter has then accepted exactly the lease that is returned.
 *
 * `left`: from this position on, filters are not asked about a lease that is allowed so far, because the caller has them judge it in
 * the transaction that records it. Only `LedgerFilter`s can be left, which change no lease and ask nobody else.
 */
export async function decide(
  chain: readonly ChainedFilter[],
  original: Lease,
  request: HookRequest,
  { explain = false, acceptsChanges = true }: Pick<CheckOptions, 'explain' | 'acceptsChanges'>,
  logger: Logger,
  left = chain.length,
): Promise<Decision> {
  const { operation } = request;
  const outcomes: Outcome[] = [];
  let lease = original;
  let view = readOnly(lease);
  let rejection: Outcome | undefined;
  let lastChange: Outcome | undefined;
  for (let round = 1; rejection === undefined; round += 1) {
    let changed = false;
    for (let position = 0; position < chain.length; position += 1) {
      const member = chain[position] as ChainedFilter;
      // After a rejection only audited filters are asked, while there is time: the operator wants to see what they would refuse.
      if (rejection !== undefined && !explain && (!member.audit || isOver(request.wait))) {
        continue;
      }
      // A change that the caller cannot accept ends here: the answer must still say whether that lease would be allowed.
      if (position >= left && rejection === undefined && (acceptsChanges || lastChange === undefined)) {
        continue;
      }
      const started = performance.now();
      const called = callHook(member, view, request, logger);
      // Most filters answer at once, and `await` costs more than such a filter.
      const result = called instanceof Promise ? await called : called;
      const { verdict } = result;
      const proposal = verdict.allowed && !isSame(verdict.lease, lease) ? verdict.lease : undefined;
      const latest = outcomeOf(member, result, performance.now() - started, proposal !== undefined);
      const outcome = afterRound(outcomes[position], latest);
      outcomes[position] = outcome;
      if (member.audit || outcome.rules !== undefined) {
        logAudit(logger, request, outcome);
      }
      if (member.audit) {
        continue;
      }
      if (!outcome.allowed) {
        rejection ??= outcome;
      } else if (proposal !== undefined) {
        lease = proposal;
        view = readOnly(lease);
        lastChange = outcome;
        changed = true;
      }
    }
    if (!changed) {
      break;
    }
    if (round === MAX_ROUNDS && rejection === undefined && lastChange !== undefined) {
      const { filter } = lastChange;
      logger.error({ operation, filter }, `filters kept changing the lease for ${MAX_ROUNDS} rounds`);
      rejection = { ...lastChange, allowed: false, failed: true, message: FAILED_MESSAGE };
    }
  }

  if (rejection !== undefined) {
    // The array has holes for filters that were not asked: `Object.values` skips them.
    return refused(operation, original, rejection, Object.values(outcomes));
  }
  if (lastChange !== undefined && !acceptsChanges) {
    const message = `The lease would be allowed with other values: ${describeChanges(original, lease)}.`;
    return refused(operation, original, { ...lastChange, message }, outcomes);
  }
  return accepted(operation, lease, lastChange !== undefined, outcomes);
}

function isOver(wait: Wait): boolean {
  try {
    wait.throwIfOver();
    return false;
  } catch {
    return true;
  }
}

/** Whether a filter has left the lease unchanged. An equal copy counts as unchanged. */
function isSame(answered: Lease | undefined, lease: Lease): boolean {
  return answered === undefined || isDeepStrictEqual(answered, lease);
}
