import { z } from 'zod';
import type { OptionsCheck } from '../config/option-groups.ts';
import type { Context, Lease } from '../lease/lease.ts';
import type { Call, FilterServices } from './services.ts';
import type { Verdict } from './verdict.ts';

/** What tells a filter class from any other, also when a second copy of this package is installed beside a filter. */
const FILTER_MARKER = Symbol.for('blazar-enforcement.filter');

/**
 * A rule for leases. A subclass declares its options, and answers three hooks.
 *
 * The contract, for all filters:
 * - `options` is a zod object. Its keys are the full names in `[enforcement]` and start with the filter's name in snake
 *   case without `Filter`: `MaxLeaseDurationFilter` owns `max_lease_duration` and `max_lease_duration_*`. Each has a
 *   default or is optional. `.meta({ description, unit, secret, … })` says the rest.
 * - The constructor is called once, when the configuration is known to be right. To refuse it, throw.
 * - A hook answers `allow()`, `allow(changedCopy)` or `reject('why')`. A hook that throws, never answers or answers
 *   anything else has failed: the lease is refused, the user reads a generic sentence, the log has the cause.
 * - A check has no effects, and may be asked more than once about one lease. What has effects is done by `commitCreate` and
 *   `commitUpdate`, which are asked once every filter has allowed the lease. A limit that leases share is a `LedgerFilter`.
 * - Requests are read-only. Attributes that you don't know are to be left as they are.
 * - `onEnd` is a notification and may come late, twice or never.
 */
export abstract class BaseFilter<Options = unknown> {
  static readonly [FILTER_MARKER] = true;
  static readonly options: z.ZodObject = z.object({});
  /**
   * Looks at what its options name, such as files; `config validate` asks for it, and nothing else of the filter then. Called
   * with options that the schema accepts. May be left out.
   */
  static readonly check?: OptionsCheck | undefined;

  /**
   * That a filter with these options refuses no lease, and what to set: "limits nothing: …". It is a warning that begins with the
   * filter's name. `undefined` = it limits something. Called with options that the schema accepts. May be left out.
   */
  static readonly limitsNothing?: ((options: never) => string | undefined) | undefined;

  protected readonly options: Options;
  protected readonly services: FilterServices;

  constructor(options: Options, services: FilterServices) {
    this.options = options;
    this.services = services;
  }

  /** A lease is about to be created. */
  abstract checkCreate(context: Context, lease: Lease, call: Call): Verdict | Promise<Verdict>;

  /** `currentLease` is about to become `newLease`, which may lack what does not change. */
  abstract checkUpdate(
    context: Context,
    currentLease: Lease,
    newLease: Lease,
    call: Call,
  ): Verdict | Promise<Verdict>;

  /**
   * Every filter has allowed the lease, and it is about to be had: what must be kept of it is kept here. May be left out. A
   * rejection refuses the lease after all.
   */
  commitCreate?(context: Context, lease: Lease, call: Call): Verdict | Promise<Verdict>;

  /** As `commitCreate`, for a change of a lease. May be left out. */
  commitUpdate?(
    context: Context,
    currentLease: Lease,
    newLease: Lease,
    call: Call,
  ): Verdict | Promise<Verdict>;

  /** A lease has ended or was deleted. */
  abstract onEnd(context: Context, lease: Lease, call: Call): void | Promise<void>;

  /**
   * Gets ready, such as by reading what its options name: called once, before any check. Throw to refuse the configuration.
   * May be left out.
   */
  open(): void | Promise<void> {}

  /** Lets go of connections and timers. May be left out. */
  close(): void | Promise<void> {}
}

/** A filter's class as the loader finds it. */
export interface FilterClass {
  new (options: never, services: FilterServices): BaseFilter;
  readonly name: string;
  readonly options: z.ZodObject;
  readonly check?: OptionsCheck | undefined;
  readonly limitsNothing?: ((options: never) => string | undefined) | undefined;
}

/** Whether a value is a subclass of `BaseFilter`, of this copy of the package or of another. */
export function isFilterClass(value: unknown): value is FilterClass {
  return typeof value === 'function' && FILTER_MARKER in value && value.name !== 'BaseFilter';
}
