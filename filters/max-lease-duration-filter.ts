import { z } from 'zod';
import {
  type Account,
  AccountLimits,
  AccountList,
  accountText,
  allow,
  BaseFilter,
  type Call,
  type Context,
  type FilterServices,
  formatDuration,
  type Instant,
  type Lease,
  leaseEnd,
  leaseStart,
  MICROSECONDS_PER_SECOND,
  projectOf,
  type RequestNames,
  reject,
  toInstant,
  userOf,
  type Verdict,
} from '../src/index.ts';

/** -1 = no limit, as in Blazar. */
const limit = z.int().min(-1).meta({ unit: 'seconds' });

const options = z.object({
  max_lease_duration: limit.default(-1).meta({
    description: 'Maximum length of a lease. -1 = no limit.',
  }),
  max_lease_duration_exempt_project_ids: z
    .array(z.string())
    .default([])
    .meta({
      serverOnly: true,
      names: ['id', 'name@domain'],
      description: 'Projects without any of these limits, by id or name@domain.',
    }),
  max_lease_duration_project_limits: z
    .record(z.string(), limit)
    .default({})
    .meta({
      description:
        'Limits for single projects, by id or name@domain. They override max_lease_duration and the limits by tag.',
      pairs: 'project id:seconds',
      names: ['id', 'name@domain'],
    }),
  max_lease_duration_tag_limits: z
    .record(z.string(), limit)
    .default({})
    .meta({
      description:
        'Limits for projects with a tag at Keystone. They override max_lease_duration. If several tags have a limit, the strictest applies.',
      pairs: 'tag:seconds',
      names: ['tag'],
    }),
  max_lease_duration_user_limits: z
    .record(z.string(), limit)
    .default({})
    .meta({
      description:
        'Limits for single users, by id or name@domain. They override the limit of the project and max_lease_duration.',
      pairs: 'user id:seconds',
      names: ['id', 'name@domain'],
    }),
  max_lease_duration_extension_window: z.int().min(0).optional().meta({
    description:
      'If set, a lease may be extended only in this time before its current end, the limit applies to the extension alone, and shortening is always allowed. If not set, the limit applies to the whole lease.',
    unit: 'seconds',
  }),
});

interface Limit {
  readonly duration: Instant;
  /** The account that has the limit. */
  readonly of: () => string;
}

/**
 * Rejects leases that are too long. Has the options and rules of the Blazar filter, and limits per project
 * and user.
 */
export class MaxLeaseDurationFilter extends BaseFilter<z.infer<typeof options>> {
  static override readonly options = options;
  static override readonly limitsNothing = (values: z.infer<typeof options>): string | undefined =>
    values.max_lease_duration_extension_window === undefined &&
    [
      values.max_lease_duration,
      ...Object.values(values.max_lease_duration_project_limits),
      ...Object.values(values.max_lease_duration_tag_limits),
      ...Object.values(values.max_lease_duration_user_limits),
    ].every((seconds) => seconds < 0)
      ? 'limits nothing: leases may have any length; set max_lease_duration, or limits of projects or users'
      : undefined;

  readonly #exempt: AccountList;
  readonly #users: AccountLimits;
  readonly #projects: AccountLimits;
  readonly #general: Limit;
  readonly #extensionWindow: Instant | undefined;

  constructor(values: z.infer<typeof options>, services: FilterServices) {
    super(values, services);
    this.#exempt = new AccountList(values.max_lease_duration_exempt_project_ids);
    this.#users = new AccountLimits(values.max_lease_duration_user_limits);
    this.#projects = new AccountLimits(
      values.max_lease_duration_project_limits,
      values.max_lease_duration_tag_limits,
    );
    this.#general = { duration: microseconds(values.max_lease_duration), of: () => 'any lease' };
    const window = values.max_lease_duration_extension_window;
    this.#extensionWindow = window === undefined ? undefined : microseconds(window);
  }

  checkCreate(context: Context, lease: Lease, { names }: Call): Verdict {
    return this.#exempt.has(projectOf(context, names))
      ? allow()
      : checkWhole(this.#limitFor(context, names), start(lease), end(lease));
  }

  checkUpdate(context: Context, currentLease: Lease, newLease: Lease, { names }: Call): Verdict {
    if (this.#exempt.has(projectOf(context, names))) {
      return allow();
    }
    const newStart = start(newLease, currentLease);
    const newEnd = end(newLease, currentLease);
    const window = this.#extensionWindow;
    const currentEnd = leaseEnd(currentLease);
    // The window is for extensions at the end. A lease that starts earlier is checked as a whole.
    if (
      window === undefined ||
      currentEnd === undefined ||
      newStart < (leaseStart(currentLease) ?? newStart)
    ) {
      return checkWhole(this.#limitFor(context, names), newStart, newEnd);
    }
    return newEnd <= currentEnd
      ? allow()
      : this.#checkExtension(this.#limitFor(context, names), currentEnd, newEnd, window);
  }

  onEnd(): void {}

  #checkExtension({ duration, of }: Limit, from: Instant, to: Instant, window: Instant): Verdict {
    const now = toInstant(this.services.clock.now()) ?? 0n;
    if (now < from - window || now > from) {
      return reject(
        `The lease can be extended only within ${formatDuration(window)} before its present end, and ${
          now > from ? 'it has ended' : `that is ${formatDuration(from - now)} away`
        }.`,
      );
    }
    if (duration < 0n || to - from <= duration) {
      return allow();
    }
    return reject(
      `The lease would be extended by ${formatDuration(to - from)}; the longest extension allowed for ${of()} is ${formatDuration(duration)}.`,
    );
  }

  #limitFor(context: Context, names: RequestNames | undefined): Limit {
    return (
      ownLimit(this.#users, userOf(context, names)) ??
      ownLimit(this.#projects, projectOf(context, names)) ??
      this.#general
    );
  }
}

function ownLimit(limits: AccountLimits, account: Account): Limit | undefined {
  const found = limits.find(account);
  return found && { duration: microseconds(found.limit), of: () => accountText(account, found) };
}

function checkWhole({ duration, of }: Limit, from: Instant, to: Instant): Verdict {
  if (duration < 0n || to - from <= duration) {
    return allow();
  }
  return reject(
    `The lease is ${formatDuration(to - from)} long; the longest allowed for ${of()} is ${formatDuration(duration)}.`,
  );
}

function microseconds(seconds: number): Instant {
  return BigInt(seconds) * MICROSECONDS_PER_SECOND;
}

function start(lease: Lease, currentLease: Lease = {}): Instant {
  return required(leaseStart(lease) ?? leaseStart(currentLease), 'start_date');
}

function end(lease: Lease, currentLease: Lease = {}): Instant {
  return required(leaseEnd(lease) ?? leaseEnd(currentLease), 'end_date');
}

function required(date: Instant | undefined, field: string): Instant {
  if (date === undefined) {
    throw new Error(`the lease has no ${field}`);
  }
  return date;
}
