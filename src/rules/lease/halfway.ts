/** Judges what Blazar may leave of a lease, if it fails to update it. */

import { type Lease, leasesHalfway } from '../../lease/lease.ts';
import type { Judgement } from '../judge.ts';
import type { Rule } from '../rule.ts';
import type { LeaseRequestParts } from './request-view.ts';

/** In reservations and allocations, over all leases that are judged: half a second of the most expensive rules. */
const MAX_JUDGED = 100_000;

/** `open`: as of judgements without the ledger. */
type OpenJudgement = Judgement & { readonly open?: readonly Rule[] };

/**
 * What enforced rules say of the first lease that Blazar may leave and that they do not allow; `undefined` if
 * they allow all. Without rules that do not allow the current lease either, such as those about the time until
 * its start: to these, a failed update changes nothing. `too many`: it changes too much to judge all of them.
 */
export function judgeHalfway<J extends OpenJudgement>(
  parts: LeaseRequestParts,
  judge: (parts: LeaseRequestParts) => J,
): J | 'too many' | undefined {
  const { currentLease } = parts;
  if (currentLease === undefined) {
    return undefined;
  }
  let known: ReadonlySet<Rule> | undefined;
  const each = sizeOf(currentLease) + sizeOf(parts.lease);
  let judged = 0;
  for (const lease of leasesHalfway(currentLease, parts.lease)) {
    judged += each;
    if (judged > MAX_JUDGED) {
      return 'too many';
    }
    const judgement = judge({ ...parts, lease });
    if (!isClean(judgement)) {
      known ??= brokenRules(judge({ ...parts, lease: currentLease }));
      const isNew = (rule: Rule) => !rule.audit && known?.has(rule) === false;
      const left = {
        ...judgement,
        violations: judgement.violations.filter(({ rule }) => isNew(rule)),
        failures: judgement.failures.filter(({ rule }) => isNew(rule)),
      };
      if (!isClean(left)) {
        return left;
      }
    }
  }
  return undefined;
}

function isClean({ violations, failures, open = [] }: OpenJudgement): boolean {
  return violations.length === 0 && failures.length === 0 && open.length === 0;
}

function brokenRules({ violations, failures }: Judgement): ReadonlySet<Rule> {
  return new Set([...violations, ...failures].map(({ rule }) => rule));
}

function sizeOf({ reservations }: Lease): number {
  return (reservations ?? []).reduce((sum, { allocations }) => sum + 1 + (allocations?.length ?? 0), 0);
}
