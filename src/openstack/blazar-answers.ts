/** The parts of Blazar's API answers that reconciliation needs. All else is dropped, since a list may be long. */
import { z } from 'zod';
import { isMapping } from '../base/yaml/tree.ts';
import { timedYield } from '../base/yield-to-event-loop.ts';
import { type Instant, toInstant } from '../lease/dates.ts';
import { type Allocation, endInBlazar, type Reservation } from '../lease/lease.ts';

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

/** Users can set any owner: a lease without one must not stop the comparison of the others. */
const owner = z
  .string()
  .nullish()
  .transform((id) => id ?? '');

const lease = z
  .object({
    // Users choose ids; an empty one is valid.
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
    events: z.unknown().optional(),
  })
  .transform(({ events, ...one }) => ({
    ...one,
    /** When Blazar ends it. */
    ends_at: endInBlazar(one.end_date, { events, reservations: one.reservations }),
  }));

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
  return isMapping(one) && typeof one.id === 'string' && typeof one.lease_id === 'string';
}

const host = z.looseObject({ id: z.union([z.string(), z.number()]).transform(String) });

/** Calls `take` with each lease. @throws BlazarError if the answer is not a complete list of distinct leases */
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
  /** Reservation → ids of its hosts. A host appears once for each share that the reservation has of it. */
  readonly hosts: ReadonlyMap<string, readonly string[]>;
  /** With allocations. */
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
  const look = (rest: object) => {
    if (isPage(rest)) {
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
      // The parser's message may quote the answer.
      throw new BlazarError(`${name}: the answer is not a whole list in JSON`, { cause: thrown });
    }
    throw thrown;
  }
}

/** Whether an answer announces further pages: no version of Blazar does; this would be only a part. */
export function isPage(answer: object): boolean {
  return Object.keys(answer).some((member) => /links|next|marker/.test(member));
}

/** Blazar does not answer, or not in its format: a reconciliation that needed the answer changes nothing. */
export class BlazarError extends Error {
  override readonly name = 'BlazarError';
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const COMMA = 0x2c;
/** Number of characters between two checks of the time. */
const STRIDE = 65_536;

/** `[start, end)` of the list that is this member of the object, and of its items. */
interface Places {
  readonly list: readonly [number, number];
  readonly items: readonly (readonly [number, number])[];
}

/**
 * The items of `{"name": [item, …], …}`. Throws a `SyntaxError` for anything else. The rest of the object is
 * parsed and passed to `look` before the first item.
 */
async function* itemsOf(
  text: string,
  name: string,
  look: (rest: Readonly<Record<string, unknown>>) => void = () => {},
): AsyncGenerator<unknown> {
  const { list, items } = await placesOf(text, name);
  const rest: unknown = JSON.parse(`${text.slice(0, list[0])}[]${text.slice(list[1])}`);
  if (typeof rest !== 'object' || rest === null || !Object.hasOwn(rest, name)) {
    throw new SyntaxError(`expected an object with the list ${name}`);
  }
  const all = rest as Readonly<Record<string, unknown>>;
  if (!Array.isArray(all[name]) || all[name].length > 0) {
    throw new SyntaxError(`expected one list ${name}`);
  }
  look(all);
  const yieldIfDue = timedYield();
  for (const [start, end] of items) {
    yield JSON.parse(text.slice(start, end));
    await yieldIfDue();
  }
}

async function placesOf(text: string, name: string): Promise<Places> {
  const yieldIfDue = timedYield();
  const items: [number, number][] = [];
  const opening = new RegExp(`${JSON.stringify(name)}\\s*:\\s*$`);
  let depth = 0;
  let begin = -1;
  let item = -1;
  for (let at = 0; at < text.length; at += 1) {
    if (at % STRIDE === 0) {
      await yieldIfDue();
    }
    const character = text.charCodeAt(at);
    if (character === QUOTE) {
      at = endOfText(text, at);
    } else if (character === OPEN_LIST || character === OPEN_OBJECT) {
      depth += 1;
      if (
        depth === 2 &&
        begin < 0 &&
        character === OPEN_LIST &&
        opening.test(text.slice(Math.max(0, at - 200), at))
      ) {
        begin = at;
        item = at + 1;
      }
    } else if (character === CLOSE_LIST || character === CLOSE_OBJECT) {
      depth -= 1;
      if (depth === 1 && begin >= 0) {
        if (items.length > 0 || text.slice(item, at).trim() !== '') {
          items.push([item, at]);
        }
        return { list: [begin, at + 1], items };
      }
    } else if (character === COMMA && depth === 2 && begin >= 0) {
      items.push([item, at]);
      item = at + 1;
    }
  }
  throw new SyntaxError(
    begin < 0 ? `expected an object with the list ${name}` : 'the text ends within the list',
  );
}

/** The position of the closing quote. */
function endOfText(text: string, start: number): number {
  for (let from = start + 1; ; ) {
    const end = text.indexOf('"', from);
    if (end < 0) {
      throw new SyntaxError('the text ends within a string');
    }
    let escapes = 0;
    while (text.charCodeAt(end - 1 - escapes) === BACKSLASH) {
      escapes += 1;
    }
    if (escapes % 2 === 0) {
      return end;
    }
    from = end + 1;
  }
}
