import type { Deadline } from '../base/deadline.ts';
import { nearestName } from '../config/nearest.ts';

/** `undefined` is the same as leaving an option out. Unknown names are refused, whatever their value. */
export interface CheckOptions {
  /** Ends the wait: filters that have not answered by then have failed. Passed to every filter. */
  readonly signal?: AbortSignal | undefined;
  /** Cheaper alternative to `signal`: its signal is created only if something waits for it. */
  readonly deadline?: Deadline | undefined;
  /** Call all filters, even after the first rejection. Default false. */
  readonly explain?: boolean | undefined;
  /**
   * Whether the caller can use a lease that filters changed. If not, a change is a rejection that names the
   * values to set. Default true.
   */
  readonly acceptsChanges?: boolean | undefined;
  /** Decide, but record nothing. Default false. */
  readonly dryRun?: boolean | undefined;
  /** For the log, and the ledger. */
  readonly requestId?: string | undefined;
  /**
   * For a new lease: the same if a request is repeated, different for every other request. The lease is then
   * recorded once. Without a key, requests that look the same are for different leases. 1 to 255 visible
   * ASCII characters.
   */
  readonly idempotencyKey?: string | undefined;
}

const TYPES = new Map<string, 'boolean' | 'string' | 'object'>(
  Object.entries({
    signal: 'object',
    deadline: 'object',
    explain: 'boolean',
    acceptsChanges: 'boolean',
    dryRun: 'boolean',
    requestId: 'string',
    idempotencyKey: 'string',
  } as const satisfies Record<keyof CheckOptions, string>),
);

/**
 * From JavaScript: with `dry_run`, or `dryRun: 1`, the lease would be recorded. Unknown names are refused even if their
 * value is `undefined`: a mistyped name would otherwise show only once it has a value. @throws TypeError
 */
export function requireCheckOptions(options: CheckOptions): void {
  for (const [name, value] of Object.entries(options)) {
    const type = TYPES.get(name);
    if (type === undefined) {
      throw new TypeError(`${name}: unknown option of a call${nearestName(name, [...TYPES.keys()])}`);
    }
    if (value !== undefined && (value === null || typeof value !== type)) {
      const expected = type === 'object' ? 'an object' : `a ${type}`;
      throw new TypeError(`${name}: expected ${expected}, got ${value === null ? 'null' : typeof value}`);
    }
  }
}
