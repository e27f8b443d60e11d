import { z } from 'zod';
import {
  AccountLimits,
  accountText,
  allow,
  BaseFilter,
  type Call,
  type Context,
  type FilterServices,
  type Lease,
  leasesHalfway,
  projectOf,
  type RequestNames,
  type Reservation,
  reject,
  reservationSize,
  reservationsAfterUpdate,
  userOf,
  type Verdict,
} from '../src/index.ts';

/** -1 = no limit, as in Blazar. */
const limit = z.int().min(-1);

const options = z.object({
  max_reservation_size: z
    .record(z.string(), limit)
    .default({})
    .meta({
      description:
        'Maximum amount of a resource type in one lease, summed over its reservations: physical:host:10 = ten hosts. -1 = no limit, also for types that are not listed.',
      pairs: 'resource type:count',
      names: ['resource type'],
    }),
  max_reservation_size_project_limits: z
    .record(z.string().regex(/^.+\/[^/]+$/, 'project id/resource type'), limit)
    .default({})
    .meta({
      description:
        'Limits for single projects, by id or name@domain. They override max_reservation_size and the limits by tag: climate@Default/physical:host:20 = twenty hosts for the project climate.',
      pairs: 'project id/resource type:count',
      names: ['id/resource type', 'name@domain'],
    }),
  max_reservation_size_tag_limits: z
    .record(z.string().regex(/^.+\/[^/]+$/, 'tag/resource type'), limit)
    .default({})
    .meta({
      description:
        'Limits for projects with a tag at Keystone. They override max_reservation_size. If several tags have a limit, the strictest applies.',
      pairs: 'tag/resource type:count',
      names: ['tag/resource type'],
    }),
  max_reservation_size_user_limits: z
    .record(z.string().regex(/^.+\/[^/]+$/, 'user id/resource type'), limit)
    .default({})
    .meta({
      description:
        'Limits for single users, by id or name@domain. They override the limit of the project and max_reservation_size.',
      pairs: 'user id/resource type:count',
      names: ['id/resource type', 'name@domain'],
    }),
});

/** The most that a lease may get, by resource type. */
type Sizes = ReadonlyMap<string, number>;

interface Limit {
  readonly count: number;
  /** The account that has the limit. */
  readonly of: () => string;
}

type Limits = (type: string) => Limit;

/** Rejects leases that reserve too much. Updates may keep an amount over the limit, but not increase it. */
export class MaxReservationSizeFilter extends BaseFilter<z.infer<typeof options>> {
  static override readonly options = options;
  static override readonly limitsNothing = (values: z.infer<typeof options>): string | undefined =>
    Object.values(values)
      .flatMap((limits) => Object.values(limits))
      .every((count) => count < 0)
      ? 'limits nothing: leases may reserve any amount; set max_reservation_size, or limits of projects or users'
      : undefined;

  readonly #general: ReadonlyMap<string, number>;
  readonly #projects: AccountLimits;
  readonly #users: AccountLimits;

  constructor(values: z.infer<typeof options>, services: FilterServices) {
    super(values, services);
    this.#general = new Map(Object.entries(values.max_reservation_size));
    const byType = { byType: true };
    this.#projects = new AccountLimits(
      values.max_reservation_size_project_limits,
      values.max_reservation_size_tag_limits,
      byType,
    );
    this.#users = new AccountLimits(values.max_reservation_size_user_limits, {}, byType);
  }

  checkCreate(context: Context, lease: Lease, { names }: Call): Verdict {
    return this.#check(this.#limitsFor(context, names), lease.reservations ?? [], undefined);
  }

  checkUpdate(context: Context, currentLease: Lease, newLease: Lease, { names }: Call): Verdict {
    const limits = this.#limitsFor(context, names);
    const before = sizesOf(currentLease.reservations ?? [], limits);
    // If the current lease cannot be counted, only the new one must be valid.
    const current = 'mistake' in before ? undefined : before;
    let verdict = this.#check(limits, reservationsAfterUpdate(currentLease, newLease), current);
    for (const { reservations = [] } of leasesHalfway(currentLease, newLease)) {
      verdict = verdict.allowed ? this.#check(limits, reservations, current, tooLargeHalfway) : verdict;
    }
    return verdict;
  }

  onEnd(): void {}

  #check(
    limits: Limits,
    reservations: readonly Reservation[],
    current: Sizes | undefined,
    why = tooLarge,
  ): Verdict {
    const sizes = sizesOf(reservations, limits);
    if ('mistake' in sizes) {
      return reject(`The size of the lease cannot be determined: ${sizes.mistake}.`);
    }
    for (const [type, size] of sizes) {
      const { count, of } = limits(type);
      if (size > count && size > (current?.get(type) ?? 0)) {
        return reject(why(size, type, `the most allowed for ${of()} is ${count}`));
      }
    }
    return allow();
  }

  #limitsFor(context: Context, names: RequestNames | undefined): Limits {
    const user = userOf(context, names);
    const project = projectOf(context, names);
    return (type) => {
      for (const [limits, account] of [
        [this.#users, user],
        [this.#projects, project],
      ] as const) {
        const found = limits.find(account, type);
        if (found !== undefined) {
          return { count: found.limit, of: () => accountText(account, found) };
        }
      }
      return { count: this.#general.get(type) ?? -1, of: () => 'any lease' };
    };
  }
}

function tooLarge(size: number, type: string, most: string): string {
  return `The lease reserves up to ${size} of ${type}; ${most}.`;
}

/** Blazar changes reservations one by one, and undoes nothing when it fails at one of them. */
function tooLargeHalfway(size: number, type: string, most: string): string {
  return `If the change failed halfway, the lease could reserve up to ${size} of ${type}; ${most}. Make reservations smaller first, then others larger.`;
}

/**
 * Counts only types with a limit: other types may belong to plug-ins that count differently, or not at all. A
 * reservation without a type cannot be limited.
 */
function sizesOf(reservations: readonly Reservation[], limits: Limits): Sizes | { readonly mistake: string } {
  const sizes = new Map<string, number>();
  for (const [index, reservation] of reservations.entries()) {
    const { resource_type: type = '' } = reservation;
    if (limits(type).count < 0) {
      continue;
    }
    const size = reservationSize(reservation);
    if (size === undefined) {
      return { mistake: `reservations.${index}: expected max or amount as a whole number, 0 or more` };
    }
    sizes.set(type, (sizes.get(type) ?? 0) + size);
  }
  return sizes;
}
