/** Runs all checks against a policy service. */
import { askAgain, type Check, type CheckResult, type Run, type Verdict } from './check.ts';
import { authorChecks } from './checks/author.ts';
import { formChecks } from './checks/forms.ts';
import { commitChecks, endChecks, repetitionChecks, resourceTypeChecks } from './checks/leases.ts';
import { loadChecks, robustnessChecks } from './checks/load.ts';
import { tokenChecks } from './checks/tokens.ts';
import { wholeRunChecks } from './checks/whole-run.ts';
import { createLeases } from './leases.ts';
import { ENDPOINT_FLAGS, type Exchange, Target, type TargetOptions } from './target.ts';

/** All checks, in the order of execution. Checks of the whole run examine the exchanges of the others. */
export const CHECKS: readonly Check[] = [
  ...authorChecks,
  ...resourceTypeChecks,
  ...formChecks,
  ...endChecks,
  ...commitChecks,
  ...repetitionChecks,
  ...tokenChecks,
  ...robustnessChecks,
  ...loadChecks,
  ...wholeRunChecks,
];

export interface ConformanceOptions extends TargetOptions {
  /** The JSON of a `check-create` that must be allowed; valid for `parseCreateRequest`. */
  readonly allowLease?: string | undefined;
  /** The JSON of a `check-create` that must be rejected. */
  readonly denyLease?: string | undefined;
  /** The JSON of a `check-update` that must be rejected; valid for `parseUpdateRequest`. */
  readonly denyUpdate?: string | undefined;
  /** The JSON of a `commit-create` that must be rejected; valid for `parseCreateRequest`. */
  readonly denyCommit?: string | undefined;
  /** Leases start after this time. Default: now. */
  readonly now?: Date | undefined;
  /** Default 10,000. */
  readonly largeLeaseHosts?: number | undefined;
  /** Default: all. */
  readonly checks?: readonly Check[] | undefined;
  /** Called after each check with the number of completed checks and their total. */
  readonly progress?: ((done: number, all: number) => void) | undefined;
}

export interface ConformanceReport {
  readonly results: readonly CheckResult[];
  readonly requests: number;
  /** Leases that the service allowed and whose end could not be reported. */
  readonly notEnded: number;
}

/**
 * Runs the checks against a policy service, one after the other. After each check it reports the end of the
 * leases that the service allowed. Rejects with `UnreachableError` if the service cannot be reached.
 */
export async function runConformance(options: ConformanceOptions): Promise<ConformanceReport> {
  const { allowLease, denyLease, denyUpdate, denyCommit } = options;
  const { now = new Date(), largeLeaseHosts = 10_000, checks = CHECKS } = options;
  const target = new Target(options);
  const given = { allowLease, denyLease, denyUpdate, denyCommit };
  const run: Run = { target, leases: createLeases(now), ...given, largeLeaseHosts };
  const results: CheckResult[] = [];
  /** Why the remaining checks would prove nothing. */
  let vain: string | undefined;
  for (const check of checks) {
    const failed = results.some(({ check: { id }, result }) => id === check.variant && result === 'failed');
    const unproven = failed ? `${check.variant} has failed, and this differs in one thing only` : vain;
    const result = await runCheck(check, run, unproven);
    results.push(result);
    options.progress?.(results.length, checks.length);
    if (vain !== undefined) {
      continue;
    }
    // A service that does not respond may be gone: each further check would wait for its timeout.
    if (result.exchanges.some(({ answer }) => answer === undefined)) {
      const { answer } = await askAgain(run);
      vain = answer === undefined ? `the service has not answered since the check ${check.id}` : undefined;
      await target.settle();
    } else if (onlyRefused(target.exchanges)) {
      vain = `the service has answered every request with 401 since the check ${check.id}`;
    }
  }
  return { results, requests: target.exchanges.length, notEnded: target.notEnded };
}

async function runCheck(check: Check, run: Run, vain: string | undefined): Promise<CheckResult> {
  const { target } = run;
  const first = target.exchanges.length;
  const started = performance.now();
  const verdict = await verdictOf(check, run, vain);
  const sent = target.exchanges.slice(first);
  await target.settle();
  const findings = 'skipped' in verdict ? [] : verdict;
  return {
    check,
    result: 'skipped' in verdict ? 'skipped' : findings.length === 0 ? 'passed' : 'failed',
    reason: 'skipped' in verdict ? verdict.skipped : null,
    findings,
    exchanges: sent,
    milliseconds: Math.round(performance.now() - started),
  };
}

function verdictOf(check: Check, run: Run, vain: string | undefined): Promise<Verdict> | Verdict {
  const missing = check.needs?.find((operation) => !run.target.has(operation));
  if (missing !== undefined) {
    const flag = ENDPOINT_FLAGS[missing];
    const given = missing.startsWith('commit') ? `${flag} is not given` : `neither URL nor ${flag} is given`;
    return { skipped: `there is no endpoint: ${given}` };
  }
  if (vain !== undefined && !wholeRunChecks.includes(check)) {
    return { skipped: vain };
  }
  return check.run(run);
}

/** Every valid request got 401: the token is missing or wrong, which is reported once. */
function onlyRefused(exchanges: readonly Exchange[]): boolean {
  const valid = exchanges.filter((exchange) => exchange.valid);
  return valid.length > 0 && valid.every(({ answer }) => answer?.status === 401);
}
