/** What a hook is called with, its answer, and the answer of the whole chain. */
import { type Wait, waitFor } from '../base/deadline.ts';
import { lookInto } from '../base/errors.ts';
import type { Lease } from '../lease/lease.ts';

/** The answer of one filter. A rejection is a value; a filter that cannot decide throws. */
export type Verdict =
  | { readonly allowed: true; readonly lease?: Lease; readonly onError?: true; readonly rules?: RuleOutcomes }
  | { readonly allowed: false; readonly message: string; readonly rules?: RuleOutcomes };

/** Outcomes of a filter's rules against the lease. Rules in audit mode refuse nothing. */
export type RuleOutcomes = readonly RuleOutcome[];

export interface RuleOutcome {
  readonly rule: string;
  readonly outcome: 'rejected' | 'failed';
  readonly audit: boolean;
  /** For the user; `null` if the rule failed. */
  readonly message: string | null;
}

/** A verdict that refuses the lease. */
export type Rejection = Extract<Verdict, { allowed: false }>;

const ALLOWED: Verdict = Object.freeze({ allowed: true });
const ALLOWED_ON_ERROR: Verdict = Object.freeze({ allowed: true, onError: true });

/**
 * Allows the lease, or with an argument the lease in this form. Pass a changed copy
 * (`allow({ ...lease, end_date })`); do not change the lease in place.
 */
export function allow(lease?: Lease): Verdict {
  return lease === undefined ? ALLOWED : { allowed: true, lease };
}

/**
 * Allows the lease although the filter could not decide, because its options require it. Counted separately
 * from `allow()`, and a warning in the decision: this is how a limit stops being enforced.
 */
export function allowOnError(): Verdict {
  return ALLOWED_ON_ERROR;
}

/** Refuses the lease. `message` is for the user: what is not allowed, and what would be. */
export function reject(message: string): Rejection {
  return { allowed: false, message };
}

/** One filter's answer, and how long it took. */
export interface Outcome {
  readonly filter: string;
  /** For an audited filter: what it would have answered. */
  readonly allowed: boolean;
  /** The reason of a rejection, the generic message of a failure, else `null`. */
  readonly message: string | null;
  /** The filter threw, timed out or returned no verdict. The cause is in the log. */
  readonly failed: boolean;
  /** The filter could not decide, and its options allow the lease in this case. */
  readonly onError: boolean;
  /** The filter is audited (`audit_filters`), not enforced. */
  readonly audit: boolean;
  /** The filter changed the lease. */
  readonly changed: boolean;
  /** Time spent in the filter, over all rounds. */
  readonly milliseconds: number;
  /** For a filter with named rules: those that did not allow the lease. */
  readonly rules?: RuleOutcomes | undefined;
}

/** The answer of the chain to a check. */
export interface Decision {
  readonly operation: 'create' | 'update' | 'commit-create' | 'commit-update';
  readonly allowed: boolean;
  /** The lease as every filter accepted it; if refused, as received. */
  readonly lease: Lease;
  /** Whether filters changed the lease. */
  readonly changed: boolean;
  /** Of the first rejection, for the user; `null` when allowed. */
  readonly message: string | null;
  /** The filter that rejected or failed first; `null` when allowed. */
  readonly filter: string | null;
  /** The filter that refused first has failed, without a verdict. */
  readonly failed: boolean;
  /** The project is in `exempt_projects`: no filter was called. */
  readonly exempt: boolean;
  /**
   * For the operator: refusals by audited filters, failures that let the lease through, and the exemption of
   * the project.
   */
  readonly warnings: readonly string[];
  /** One per called filter, in order. */
  readonly outcomes: readonly Outcome[];
  /** Names of project and user; missing unless `[keystone] resolve_names` is true. */
  readonly names?: RequestNames;
}

/** The result of `onEnd`. It refuses nothing. */
export interface EndReport {
  readonly operation: 'end';
  /** At least one filter's hook failed. */
  readonly failed: boolean;
  readonly warnings: readonly string[];
  /** One per filter. `allowed`: its hook succeeded. */
  readonly outcomes: readonly Outcome[];
  /** As in a `Decision`. */
  readonly names?: RequestNames;
}

/** Whether a value that a hook returned is a verdict. */
export function isVerdict(value: unknown): value is Verdict {
  if (typeof value !== 'object' || value === null || !('allowed' in value)) {
    return false;
  }
  if ('rules' in value && value.rules !== undefined && !areRules(value.rules)) {
    return false;
  }
  if (value.allowed === false) {
    return 'message' in value && typeof value.message === 'string' && value.message !== '';
  }
  return (
    value.allowed === true &&
    (!('lease' in value) || value.lease === undefined || typeof value.lease === 'object') &&
    (!('onError' in value) || value.onError === undefined || value.onError === true)
  );
}

/** Whether a value from a plug-in is a list of rule outcomes. */
export function areRules(value: unknown): value is RuleOutcomes {
  return Array.isArray(value) && value.every(isRule);
}

function isRule(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) {
    return false;
  }
  const { rule, outcome, audit } = value as { readonly [name in keyof RuleOutcome]?: unknown };
  return (
    typeof rule === 'string' && (outcome === 'rejected' || outcome === 'failed') && typeof audit === 'boolean'
  );
}

/**
 * Rules failed, so that there is no verdict: the request is refused as after any other failure, and the
 * decision names the rules. The message is for the log.
 */
export class BrokenRulesError extends Error {
  override readonly name = 'BrokenRulesError';
  /** All outcomes before the request was refused, including the broken rules. */
  readonly rules: RuleOutcomes;

  constructor(message: string, rules: RuleOutcomes) {
    super(message);
    this.rules = rules;
  }
}

/** The rule outcomes in an error, of this or another thread; `undefined` = it was not thrown because of rules. */
export function rulesOfFailure(thrown: unknown): RuleOutcomes | undefined {
  return lookInto(() => {
    const rules: unknown = thrown instanceof Error && 'rules' in thrown ? thrown.rules : undefined;
    return areRules(rules) ? rules : undefined;
  });
}

/** The circumstances of a hook's call. */
export interface Call {
  /** Fires when the answer is no longer needed. Pass it to everything that you wait for. */
  readonly signal?: AbortSignal | undefined;
  /** The deadline behind `signal`, for code that checks the time without waiting. */
  readonly wait?: Wait | undefined;
  /** The same in all calls for one request, different for every other request. */
  readonly requestKey?: string | undefined;
  /** For a request with an `Idempotency-Key`, which may be a repetition. */
  readonly repetition?: Repetition | undefined;
  /** Missing unless `[keystone] resolve_names` is true. */
  readonly names?: RequestNames | undefined;
  /** For an end that undoes a commit: the call of that commit. */
  readonly undoes?: Call | undefined;
}

/** Distinguishes a repeated request from another one that looks the same. */
export interface Repetition {
  /** The `Idempotency-Key`. */
  readonly key: string;
  /** A digest of the request. A different request with the same key is no repetition. */
  readonly content: string;
}

/** Keystone's names for the ids of a request, as far as known. */
export interface RequestNames {
  readonly project?: (Named & { readonly tags: readonly string[] }) | undefined;
  readonly user?: Named | undefined;
}

export interface Named {
  readonly name: string;
  /** The name of its domain; empty if unknown. */
  readonly domain: string;
}

export function waitOf({ wait, signal }: Call): Wait {
  return wait ?? waitFor(signal);
}
