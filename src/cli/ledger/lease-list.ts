/** Reads a list of leases: from `openstack reservation lease list -f json`, or a response of Blazar's API. */
import { z } from 'zod';
import { errorText } from '../../base/errors.ts';
import { toInstant } from '../../lease/dates.ts';
import { endInBlazar, isInUse, isTerminated } from '../../lease/lease.ts';
import type { ListedLease } from '../../ledger/reconciliation/leases.ts';
import { isPage } from '../../openstack/blazar-answers.ts';
import { readText, shownName, UsageError } from '../common/output.ts';
import { parsedDocument } from '../common/requests.ts';

/** About a hundred thousand complete leases. */
const MAX_BYTES = 256 * 1024 * 1024;

const text = z.string('a text');
const date = z.string('a date').refine((value) => toInstant(value) !== undefined, 'an ISO 8601 date');
const someone = text.nullish();

const lease = z
  .object(
    {
      id: text.min(1, 'a text that is not empty'),
      name: text,
      start_date: date,
      end_date: date,
      project_id: someone,
      user_id: someone,
      status: someone,
      events: z.unknown().optional(),
      reservations: z
        .array(
          z.looseObject(
            {
              resource_type: text.optional(),
              allocations: z.array(z.looseObject({}, 'an object'), 'a list').optional(),
            },
            'an object',
          ),
          'a list',
        )
        .nullish(),
    },
    'an object with id, name, start_date and end_date',
  )
  .refine(({ start_date, end_date }) => (toInstant(start_date) ?? 0n) <= (toInstant(end_date) ?? 0n), {
    path: ['end_date'],
    message: 'a date that is not before start_date',
  });

const list = z.array(lease, 'a list of leases');

export interface LeaseList {
  /** The ids of all leases in the list, in any state. */
  readonly ids: ReadonlySet<string>;
  /** The existing leases: neither terminated nor past their end, or in use nevertheless. */
  readonly leases: readonly ListedLease[];
}

/** @throws UsageError */
export async function readLeaseList(file: string, now: bigint): Promise<LeaseList> {
  const name = shownName(file);
  const written = parseJson(name, await readText(file, MAX_BYTES));
  const isAnswer = typeof written === 'object' && written !== null && 'leases' in written;
  if (isAnswer && isPage(written)) {
    throw new UsageError(`${name}: expected all leases, got one page of several`);
  }
  const parsed = list.safeParse(isAnswer ? written.leases : written);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const place = [isAnswer ? 'leases' : '', ...(issue?.path ?? []).map(String)].filter(
      (part) => part !== '',
    );
    const at = place.length === 0 ? '' : `${place.join('.')}: `;
    throw new UsageError(`${name}: ${at}expected ${issue?.message ?? 'a list of leases'}`);
  }
  refuseDuplicates(name, parsed.data);
  const leases = parsed.data.map(
    ({ status, events, ...one }): ListedLease & { status: string | null | undefined } => {
      // JSON has no `undefined`.
      const reservations = (one.reservations ?? undefined) as ListedLease['reservations'];
      return {
        id: one.id,
        name: one.name,
        start: toInstant(one.start_date) ?? 0n,
        end: endInBlazar(toInstant(one.end_date) ?? 0n, { events, reservations }),
        projectId: one.project_id || undefined,
        userId: one.user_id || undefined,
        reservations,
        status,
      };
    },
  );
  return {
    ids: new Set(leases.map(({ id }) => id)),
    leases: leases
      .filter((one) => !isTerminated(one) && (one.end > now || one.reservations?.some(isInUse) === true))
      .map(({ status: _, ...one }) => one),
  };
}

function parseJson(name: string, content: string): unknown {
  try {
    return parsedDocument(content);
  } catch (thrown) {
    const expected = 'expected JSON, as openstack reservation lease list -f json prints it';
    throw new UsageError(`${name}: ${thrown instanceof SyntaxError ? expected : errorText(thrown)}`);
  }
}

function refuseDuplicates(name: string, leases: readonly { readonly id: string }[]): void {
  const seen = new Map<string, number>();
  for (const [index, { id }] of leases.entries()) {
    const before = seen.get(id);
    if (before !== undefined) {
      throw new UsageError(`${name}: ${index}.id: expected each lease once, got ${id} at ${before} already`);
    }
    seen.set(id, index);
  }
}
