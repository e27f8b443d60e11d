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
        'How much of a resource type one lease may reserve, over all of its reservations: physical:host:10 means ten hosts. A type that is not named has no limit, nor has one with -1.',
      pairs: 'resource type:count',
      names: ['resource type'],
    }),
  max_reservation_size_project_limits: z
    .record(z.string().regex(/^.+\/[^/]+$/, 'project id/resource type'), limit)
    .default({})
    .meta({
      description:
        'Limits for single projects, instead of max_reservation_size: climate/physical:host:20 means twenty hosts for the project climate.',
      pairs: 'project id/resource type:count',
      names: ['id/resource type'],
    }),
  max_reservation_size_user_limits: z
    .record(z.string().regex(/^.+\/[^/]+$/, 'user id/resource type'), limit)
    .default({})
    .meta({
      description:
        'Limits for single users, instead of the limit of their project and of max_reservation_size.',
      pairs: 'user id/resource type:count',
      names: ['id/resource type'],
    }),
});

/** Counts what a lease could be given at most, by resource type. */
type Sizes = ReadonlyMap<string, number>;

interface Limit {
  readonly count: number;
  readonly of: string;
}

/** Rejects leases that reserve more than they may. What an update does not make larger is not judged. */
export class MaxReservationSizeFilter extends BaseFilter<z.infer<typeof options>> {
  static override readonly options = options;
  static override readonly limitsNothing = (values: z.infer<typeof options>): string | undefined =>
    Object.values(values)
      .flatMap((limits) => Object.values(limits))
      .every((count) => count < 0)
      ? 'limits nothing: a lease may reserve as much as anybody likes; set max_reservation_size, or limits of projects or users'
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
    // What can't be counted now could not be counted before either: only what is new must be right.
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
 * Those of types that are limited: others may be of plug-ins that count otherwise, or not at all. A reservation that says
 * nothing of its type is of none that could be limited.
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
