/** What a hook answers, and what the whole chain answers. */
import type { Lease } from '../lease/lease.ts';

/** The answer of one filter. A rejection is a value; a filter that can't answer throws. */
export type Verdict =
  | { readonly allowed: true; readonly lease?: Lease; readonly onError?: true }
  | { readonly allowed: false; readonly message: string };

/** A verdict that says no. */
export type Rejection = Extract<Verdict, { allowed: false }>;

const ALLOWED: Verdict = Object.freeze({ allowed: true });
const ALLOWED_ON_ERROR: Verdict = Object.freeze({ allowed: true, onError: true });

/**
 * The lease may be had. With a lease: it may be had in this form. Pass a changed copy (`allow({ ...lease, end_date })`),
 * never the lease itself changed in place.
 */
export function allow(lease?: Lease): Verdict {
  return lease === undefined ? ALLOWED : { allowed: true, lease };
}

/**
 * The filter could not tell, and its options say that the lease may be had then. Counted apart from `allow()`, and a
 * warning of the decision: this is how a limit stops being enforced.
 */
export function allowOnError(): Verdict {
  return ALLOWED_ON_ERROR;
}

/** The lease may not be had; `message` is shown to the user: what is not allowed, and what would be. */
export function reject(message: string): Rejection {
  return { allowed: false, message };
}

/** What one filter said, and how long it took. */
export interface Outcome {
  readonly filter: string;
  /** Of an audited filter: what it would have answered. */
  readonly allowed: boolean;
  /** The reason of a rejection, the generic sentence of a failure, else `null`. */
  readonly message: string | null;
  /** The filter threw, timed out or answered nonsense. The cause is in the log. */
  readonly failed: boolean;
  /** The filter could not tell, and allowed the lease since its options say so. */
  readonly onError: boolean;
  /** The filter is tried (`audit_filters`), not enforced. */
  readonly audit: boolean;
  /** The filter changed the lease. */
  readonly changed: boolean;
  /** Time spent in the filter, over all rounds. */
  readonly milliseconds: number;
}

/** The answer of the chain to a check. */
export interface Decision {
  readonly operation: 'create' | 'update' | 'commit-create' | 'commit-update';
  readonly allowed: boolean;
  /** The lease as every filter accepted it; when it was refused, as it came. */
  readonly lease: Lease;
  /** Whether filters changed the lease. */
  readonly changed: boolean;
  /** Of the first rejection, for the user; `null` when allowed. */
  readonly message: string | null;
  /** The filter that rejected or failed first; `null` when allowed. */
  readonly filter: string | null;
  /** The first rejection was no verdict but a failure. */
  readonly failed: boolean;
  /** The project is in `exempt_projects`: no filter was asked. */
  readonly exempt: boolean;
  /** What the operator should know: what audited filters would have refused, what failed and let the lease through, and whom nothing was asked about. */
  readonly warnings: readonly string[];
  /** One a filter that was asked, in order. */
  readonly outcomes: readonly Outcome[];
}

/** What became of a notification. It rejects nothing. */
export interface EndReport {
  readonly operation: 'end';
  /** At least one filter could not be told. */
  readonly failed: boolean;
  readonly warnings: readonly string[];
  /** One a filter; `allowed` is true where the filter was told. */
  readonly outcomes: readonly Outcome[];
}

/** Whether a value that a hook returned is a verdict. */
export function isVerdict(value: unknown): value is Verdict {
  if (typeof value !== 'object' || value === null || !('allowed' in value)) {
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
