import { z } from 'zod';
import {
  allow,
  BaseFilter,
  type Context,
  type FilterServices,
  type Lease,
  type Reservation,
  reject,
  reservationSize,
  reservationsAfterUpdate,
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
        'Limits for single projects. They override max_reservation_size: climate/physical:host:20 = twenty hosts for the project climate.',
      pairs: 'project id/resource type:count',
      names: ['id/resource type'],
    }),
  max_reservation_size_user_limits: z
    .record(z.string().regex(/^.+\/[^/]+$/, 'user id/resource type'), limit)
    .default({})
    .meta({
      description:
        'Limits for single users. They override the limit of the project and max_reservation_size.',
      pairs: 'user id/resource type:count',
      names: ['id/resource type'],
    }),
});

/** The most that a lease can be given, by resource type. */
type Sizes = ReadonlyMap<string, number>;

interface Limit {
  readonly count: number;
  readonly of: string;
}

/** Rejects leases that reserve too much. An update may keep an amount that is over the limit, but not increase it. */
export class MaxReservationSizeFilter extends BaseFilter<z.infer<typeof options>> {
  static override readonly options = options;
  static override readonly limitsNothing = (values: z.infer<typeof options>): string | undefined =>
    Object.values(values)
      .flatMap((limits) => Object.values(limits))
      .every((count) => count < 0)
      ? 'limits nothing: leases may reserve any amount; set max_reservation_size, or limits of projects or users'
      : undefined;

  readonly #general: ReadonlyMap<string, number>;
  readonly #project: ReadonlyMap<string, number>;
  readonly #user: ReadonlyMap<string, number>;

  constructor(values: z.infer<typeof options>, services: FilterServices) {
    super(values, services);
    this.#general = new Map(Object.entries(values.max_reservation_size));
    this.#project = new Map(Object.entries(values.max_reservation_size_project_limits));
    this.#user = new Map(Object.entries(values.max_reservation_size_user_limits));
  }

  checkCreate(context: Context, lease: Lease): Verdict {
    return this.#check(context, lease.reservations ?? [], undefined);
  }

  checkUpdate(context: Context, currentLease: Lease, newLease: Lease): Verdict {
    const before = this.#sizesOf(context, currentLease.reservations ?? []);
    // If the current lease cannot be counted, only the new one must be valid.
    const current = 'mistake' in before ? undefined : before;
    return this.#check(context, reservationsAfterUpdate(currentLease, newLease), current);
  }

  onEnd(): void {}

  #check(context: Context, reservations: readonly Reservation[], current: Sizes | undefined): Verdict {
    const sizes = this.#sizesOf(context, reservations);
    if ('mistake' in sizes) {
      return reject(`The size of the lease can't be told: ${sizes.mistake}.`);
    }
    for (const [type, size] of sizes) {
      const { count, of } = this.#limitFor(context, type);
      if (size > count && size > (current?.get(type) ?? 0)) {
        return reject(`The lease reserves up to ${size} of ${type}; the most allowed for ${of} is ${count}.`);
      }
    }
    return allow();
  }

  #sizesOf(context: Context, reservations: readonly Reservation[]) {
    return sizesOf(reservations, (type) => this.#limitFor(context, type).count >= 0);
  }

  #limitFor({ user_id, project_id }: Context, type: string): Limit {
    const ofUser = this.#user.get(`${user_id}/${type}`);
    if (ofUser !== undefined) {
      return { count: ofUser, of: `user ${user_id}` };
    }
    const ofProject = this.#project.get(`${project_id}/${type}`);
    return ofProject === undefined
      ? { count: this.#general.get(type) ?? -1, of: 'any lease' }
      : { count: ofProject, of: `project ${project_id}` };
  }
}

/**
 * Counts only types that have a limit: other types may belong to plug-ins that count differently, or not at all. A reservation
 * without a type cannot be limited.
 */
function sizesOf(
  reservations: readonly Reservation[],
  isLimited: (type: string) => boolean,
): Sizes | { readonly mistake: string } {
  const sizes = new Map<string, number>();
  for (const [index, reservation] of reservations.entries()) {
    const { resource_type: type = '' } = reservation;
    if (!isLimited(type)) {
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
