/** The answers of Blazar's API, as far as a round needs them. Everything else in them is left out, since a list may be long. */
import { z } from 'zod';
import { type Instant, toInstant } from '../lease/dates.ts';
import type { Allocation, Reservation } from '../lease/lease.ts';
import { BlazarError } from './blazar-error.ts';
import { itemsOf } from './json-items.ts';

const instant = z.string().transform((text, context): Instant => {
  const read = toInstant(text);
  if (read === undefined) {
    context.addIssue({ code: 'custom', message: 'expected a date' });
    return z.NEVER;
  }
  return read;
});

const reservation = z.looseObject({
  id: z.string().min(1),
  resource_type: z.string(),
  status: z.string().nullish(),
  missing_resources: z.boolean().nullish(),
  resources_changed: z.boolean().nullish(),
});

/** Users may set the owner of a lease to anything: one lease without an owner must not keep the others from being compared. */
const owner = z
  .string()
  .nullish()
  .transform((id) => id ?? '');

const lease = z.object({
  // Users choose ids; the empty one is valid.
  id: z.string(),
  name: z.unknown(),
  start_date: instant,
  end_date: instant,
  project_id: owner,
  user_id: owner,
  status: z.string().nullish(),
  created_at: instant.nullish(),
  degraded: z.boolean().nullish(),
  reservations: z.array(reservation),
});

export type ListedReservation = z.infer<typeof reservation> & Reservation;
export type AnsweredLease = Omit<z.infer<typeof lease>, 'reservations'> & {
  readonly reservations: readonly ListedReservation[];
};

const allocated = z.object({
  resource_id: z.union([z.string(), z.number()]).transform(String),
  // Checked one by one: a host may have very many.
  reservations: z.array(z.unknown()),
});

function isReservation(one: unknown): one is { readonly id: string; readonly lease_id: string } {
  return (
    typeof one === 'object' &&
    one !== null &&
    'id' in one &&
    'lease_id' in one &&
    typeof one.id === 'string' &&
    typeof one.lease_id === 'string'
  );
}

const host = z.looseObject({ id: z.union([z.string(), z.number()]).transform(String) });

/** Calls `take` with each lease. @throws BlazarError where the answer is not a whole list of leases, each once */
export async function readLeases(body: string, take: (lease: AnsweredLease) => void): Promise<void> {
  const seen = new Set<string>();
  await each(body, 'leases', lease, (one) => {
    if (seen.has(one.id)) {
      throw new BlazarError(`leases: ${one.id} is listed twice`);
    }
    seen.add(one.id);
    take(one as AnsweredLease);
  });
}

export interface Allocations {
  /** Reservation → the ids of its hosts; one that has several shares of a host has it several times. */
  readonly hosts: ReadonlyMap<string, readonly string[]>;
  /** The leases that have any. */
  readonly leases: ReadonlySet<string>;
}

/** @throws BlazarError */
export async function readAllocations(body: string): Promise<Allocations> {
  const hosts = new Map<string, string[]>();
  const leases = new Set<string>();
  await each(body, 'allocations', allocated, ({ resource_id, reservations }) => {
    for (const one of reservations) {
      if (!isReservation(one)) {
        throw new BlazarError('allocations: expected reservations with id and lease_id');
      }
      const { id, lease_id } = one;
      const some = hosts.get(id);
      if (some === undefined) {
        hosts.set(id, [resource_id]);
      } else {
        some.push(resource_id);
      }
      leases.add(lease_id);
    }
  });
  return { hosts, leases };
}

/** Id → the host. @throws BlazarError */
export async function readHosts(body: string): Promise<Map<string, Allocation>> {
  const hosts = new Map<string, Allocation>();
  await each(body, 'hosts', host, (one) => hosts.set(one.id, one));
  return hosts;
}

async function each<Schema extends z.ZodType>(
  body: string,
  name: string,
  schema: Schema,
  take: (item: z.infer<Schema>) => void,
): Promise<void> {
  const look = (rest: Readonly<Record<string, unknown>>) => {
    // No version of Blazar does so; one that began to would show only a part.
    if (Object.keys(rest).some((member) => /links|next|marker/.test(member))) {
      throw new BlazarError(`${name}: the answer is one page of several`);
    }
  };
  let index = 0;
  try {
    for await (const item of itemsOf(body, name, look)) {
      const read = schema.safeParse(item);
      if (!read.success) {
        const [issue] = read.error.issues;
        const place = [name, index, ...(issue?.path ?? [])].join('.');
        throw new BlazarError(`${place}: ${issue?.message ?? 'it is not what Blazar answers'}`);
      }
      take(read.data);
      index += 1;
    }
  } catch (thrown) {
    if (thrown instanceof SyntaxError) {
      // Its own message may quote the answer.
      throw new BlazarError(`${name}: the answer is not a whole list in JSON`, { cause: thrown });
    }
    throw thrown;
  }
}
