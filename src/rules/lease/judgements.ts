/** Judges leases without the ledger, and what Blazar may leave of them if it fails to update them. */
import { type Account, projectOf, userOf } from '../../filter/account-limits.ts';
import type { RuleAnswer } from '../../filter/services.ts';
import type { RequestNames } from '../../filter/verdict.ts';
import { type Context, type Lease, leasesHalfway } from '../../lease/lease.ts';
import type { IsExempt, Judgement, RuleJudge, Violation } from '../judge.ts';
import { type Rule, readsLedger } from '../rule.ts';
import { LeaseActivation, type LeaseRequestParts } from './request-view.ts';

interface KnownJudgement extends Judgement {
  /** Enforced rules whose result depends on the ledger, and so is unknown. */
  readonly open: readonly Rule[];
}

/**
 * A rule may read the ledger without depending on it, such as `leases() < 4 || hours(lease) < 1.0` for a
 * short lease. `judged`: as for `RuleJudge.judge`, for the rules that are not open.
 */
export function judgeWithoutLedger(
  judge: RuleJudge,
  parts: Omit<LeaseRequestParts, 'ledger'>,
  isExempt: IsExempt,
  judged?: (activation: LeaseActivation, rule: Rule, said: RuleAnswer) => void,
): KnownJudgement {
  const answers: [Rule, RuleAnswer][] = [];
  const activation = new LeaseActivation(parts);
  const { violations, failures } = judge.judge(activation, isExempt, parts.now.getTime(), (rule, said) =>
    answers.push([rule, said]),
  );
  // They may have failed for another reason, which the ledger might have prevented.
  const failed = [...failures, ...violations.filter(({ isInvalidPart }) => isInvalidPart)];
  const missing = new Set(failed.map(({ rule }) => rule).filter(readsLedger));
  for (const [rule, said] of answers) {
    if (!missing.has(rule)) {
      judged?.(activation, rule, said);
    }
  }
  return {
    violations: violations
      .filter(({ rule }) => !missing.has(rule))
      .map((one) => (one.unsaid !== undefined && readsLedger(one.rule) ? unworded(one.rule) : one)),
    failures: failures.filter(({ rule }) => !missing.has(rule)),
    open: [...missing].filter(({ audit }) => !audit),
  };
}

/** The rule is violated; only its message depends on the ledger. */
function unworded(rule: Rule): Violation {
  return { rule, message: `The rule ${rule.name} refuses the lease; what it says depends on the ledger.` };
}

/** Exemptions from rules for leases: by id, `name@domain`, or a tag of the project. */
export function leaseExemption(context: Context, names: RequestNames | undefined): IsExempt {
  let accounts: { readonly project: Account; readonly user: Account } | undefined;
  return ({ projects, users, tags }) => {
    accounts ??= { project: projectOf(context, names), user: userOf(context, names) };
    const { project, user } = accounts;
    return projects.has(project) || users.has(user) || project.tags.some((tag) => tags.has(tag));
  };
}

/** In reservations and allocations, over all leases that are judged: half a second of the most expensive rules. */
const MAX_JUDGED = 100_000;

/** `open`: as in `KnownJudgement`. */
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
