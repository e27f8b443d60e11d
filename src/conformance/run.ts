import type { Check, CheckResult, Run, Verdict } from './check.ts';
import { askAgain } from './checks/alive.ts';
import { wholeRunChecks } from './checks/whole-run.ts';
import { CHECKS } from './checks.ts';
import { createLeases } from './leases.ts';
import { Target, type TargetOptions } from './target.ts';

export interface ConformanceOptions extends TargetOptions {
  /** The JSON of a `check-create` that must be allowed; it is one (`parseCreateRequest`). */
  readonly allowLease?: string | undefined;
  /** The JSON of a `check-create` that must be rejected. */
  readonly denyLease?: string | undefined;
  /** What the leases begin after. Default: now. */
  readonly now?: Date | undefined;
  /** Default 10,000. */
  readonly largeLeaseHosts?: number | undefined;
  /** Default: all. */
  readonly checks?: readonly Check[] | undefined;
}

export interface ConformanceReport {
  readonly results: readonly CheckResult[];
  /** How many requests were sent. */
  readonly requests: number;
  /** Leases that the service allowed and could not be told to have ended. */
  readonly notEnded: number;
}

/**
 * Runs the checks against a policy service, one after the other. What the service allows is told to have ended behind
 * each check. Rejects with `UnreachableError` when there is no service.
 */
export async function runConformance(options: ConformanceOptions): Promise<ConformanceReport> {
  const { allowLease, denyLease, now = new Date(), largeLeaseHosts = 10_000, checks = CHECKS } = options;
  const target = new Target(options);
  const run: Run = { target, leases: createLeases(now), allowLease, denyLease, largeLeaseHosts };
  const results: CheckResult[] = [];
  let silentSince: string | undefined;
  for (const check of checks) {
    const result = await runCheck(check, run, silentSince);
    results.push(result);
    // Whoever leaves one request unanswered may be gone; then each further check would wait in vain.
    if (silentSince === undefined && result.exchanges.some(({ answer }) => answer === undefined)) {
      const { answer } = await askAgain(run);
      silentSince = answer === undefined ? check.id : undefined;
      await target.settle();
    }
  }
  return { results, requests: target.exchanges.length, notEnded: target.notEnded };
}

async function runCheck(check: Check, run: Run, silentSince: string | undefined): Promise<CheckResult> {
  const { target } = run;
  const first = target.exchanges.length;
  const started = performance.now();
  const verdict = await verdictOf(check, run, silentSince);
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

function verdictOf(check: Check, run: Run, silentSince: string | undefined): Promise<Verdict> | Verdict {
  const missing = check.needs.find((operation) => !run.target.has(operation));
  if (missing !== undefined) {
    return { skipped: `there is no endpoint: neither URL nor --${missing}-endpoint is given` };
  }
  if (silentSince !== undefined && !wholeRunChecks.includes(check)) {
    return { skipped: `the service has not answered since the check ${silentSince}` };
  }
  return check.run(run);
}
