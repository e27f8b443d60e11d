import { z } from 'zod';
import type { OptionsCheck } from '../config/option-groups.ts';
import type { Context, Lease } from '../lease/lease.ts';
import type { Claims, ProjectState, Proposal } from './claim.ts';
import type { FilterServices } from './services.ts';
import type { Call, Verdict } from './verdict.ts';

/** Marks filter classes, including subclasses of the `BaseFilter` of another copy of this package. */
const FILTER_MARKER = Symbol.for('blazar-enforcement.filter');

/**
 * A rule for leases. A subclass declares its options and implements three hooks.
 *
 * The contract, for all filters:
 * - `options` is a zod object. Its keys are the full names in `[enforcement]` and start with the filter's
 *   name in snake case without `Filter`: `MaxLeaseDurationFilter` owns `max_lease_duration` and
 *   `max_lease_duration_*`. Each has a default or is optional. `.meta({ description, unit, secret, … })` adds
 *   the rest.
 * - The constructor is called once, after the configuration has been validated. To refuse it, throw.
 * - A hook returns `allow()`, `allow(changedCopy)` or `reject('why')`. A hook that throws, never answers or
 *   returns anything else has failed: the lease is refused, the user gets a generic message, and the cause is
 *   logged.
 * - A check has no effects, and may be called more than once for one lease. Effects belong in `commitCreate`
 *   and `commitUpdate`, which are called once, after every filter has allowed the lease. For a limit that
 *   leases share, extend `LedgerFilter`.
 * - Requests are read-only. Keep unknown attributes unchanged.
 * - `onEnd` is a notification and may come late, twice or never.
 */
export abstract class BaseFilter<Options = unknown> {
  static readonly [FILTER_MARKER] = true;
  static readonly options: z.ZodObject = z.object({});
  /**
   * Checks what the options refer to, such as files. `config validate` calls only this part of the filter.
   * Called with options that match the schema. Optional.
   */
  static readonly check?: OptionsCheck | undefined;

  /**
   * The warning for options with which the filter never refuses a lease, and what to set: "limits nothing:
   * …". It is printed after the filter's name. `undefined` = no warning. Called with options that match the
   * schema. Optional.
   */
  static readonly limitsNothing?: ((options: never) => string | undefined) | undefined;

  /**
   * The option whose value requires `services.keystone`, so that `[keystone]` must be set. `undefined` =
   * none. Called with options that match the schema. Optional.
   */
  static readonly needsKeystone?: ((options: never) => string | undefined) | undefined;
  /** Whether the filter needs a ledger with these options. Optional: a `LedgerFilter` always does. */
  static readonly needsLedger?: ((options: never) => boolean) | undefined;

  protected readonly options: Options;
  protected readonly services: FilterServices;

  constructor(options: Options, services: FilterServices) {
    this.options = options;
    this.services = services;
  }

  /** A lease is about to be created. */
  abstract checkCreate(context: Context, lease: Lease, call: Call): Verdict | Promise<Verdict>;

  /** `currentLease` is about to become `newLease`, which may omit what does not change. */
  abstract checkUpdate(
    context: Context,
    currentLease: Lease,
    newLease: Lease,
    call: Call,
  ): Verdict | Promise<Verdict>;

  /**
   * Every filter has allowed the lease, and it is about to be granted: record it here. A rejection still
   * refuses it. Optional.
   */
  commitCreate?(context: Context, lease: Lease, call: Call): Verdict | Promise<Verdict>;

  /** As `commitCreate`, for a change of a lease. Optional. */
  commitUpdate?(
    context: Context,
    currentLease: Lease,
    newLease: Lease,
    call: Call,
  ): Verdict | Promise<Verdict>;

  /** A lease has ended or was deleted. */
  abstract onEnd(context: Context, lease: Lease, call: Call): void | Promise<void>;

  /**
   * Prepares the filter, such as by reading files named in its options. Called once, before any check. Throw
   * to refuse the configuration. So does taking longer than a minute. Optional.
   */
  open(): void | Promise<void> {}

  /** Releases connections and timers, in a minute. Optional. */
  close(): void | Promise<void> {}
}

/** A filter class as the loader finds it. */
export interface FilterClass
  extends Pick<typeof BaseFilter, 'options' | 'check' | 'limitsNothing' | 'needsKeystone' | 'needsLedger'> {
  new (options: never, services: FilterServices): BaseFilter;
  readonly name: string;
}

/** Whether a value is a subclass of `BaseFilter`, of this or another copy of the package. */
export function isFilterClass(value: unknown): value is FilterClass {
  return typeof value === 'function' && FILTER_MARKER in value && value.name !== 'BaseFilter';
}

/**
 * A limit that leases share, such as a budget. A subclass returns the claims of a lease. The ledger compares
 * them with the limits, records them when every filter has allowed the lease, and returns them when the lease
 * ends.
 *
 * There are two kinds of claims:
 * - `held`: an amount taken from the moment the lease is recorded until it ends, whatever its dates: pending
 *   leases count like active ones. For "at most ten leases".
 * - `usage`: an amount for each second of the lease. For budgets of node-hours.
 *
 * Neither limits simultaneous use ("at most ten hosts at once"): claims have no schedule.
 *
 * `claims` must depend only on its arguments and the options: checks call it, and the transaction that
 * records the lease. If the lease is recorded right after the check and no other filter follows, only the
 * transaction calls it.
 */
export abstract class LedgerFilter<Options = unknown> extends BaseFilter<Options> {
  /** The claims of a lease, or `reject('why')` if the request lacks what is needed to compute them. */
  abstract claims(proposal: Proposal, state: ProjectState): Claims;

  override open(): void | Promise<void> {
    return this.services.ledger.open();
  }

  checkCreate(context: Context, lease: Lease, call: Call): Promise<Verdict> {
    return this.services.ledger.check(this, { context, lease }, call);
  }

  checkUpdate(context: Context, currentLease: Lease, newLease: Lease, call: Call): Promise<Verdict> {
    return this.services.ledger.check(this, { context, currentLease, lease: newLease }, call);
  }

  onEnd(context: Context, lease: Lease, call: Call): Promise<void> {
    return this.services.ledger.end({ context, lease }, call);
  }
}

/** Whether a filter is a `LedgerFilter`, of this or another copy of the package. */
export function isLedgerFilter(filter: BaseFilter): filter is LedgerFilter {
  return 'claims' in filter && typeof filter.claims === 'function';
}

/** Whether a filter's checks are those of `LedgerFilter`, which use only the ledger. */
export function isOnlyOfTheLedger(filter: BaseFilter): boolean {
  const { checkCreate, checkUpdate } = LedgerFilter.prototype;
  return isLedgerFilter(filter) && filter.checkCreate === checkCreate && filter.checkUpdate === checkUpdate;
}
