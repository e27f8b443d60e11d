/**
 * Opens "Try it" with a refused lease in the form. The link names the decision, since reservations may be too
 * long for a URL.
 */
import type { Asked } from '../../../decisions/asked.ts';
import type { DecisionRecord } from '../../../decisions/record.ts';
import { decisionsOf } from '../decisions/found-decisions.ts';
import { changePath, type PageRequest, pathWith } from '../page.ts';
import { formOfReservation, local, MOST_RESERVATIONS, type ReservationForm } from './lease-form.ts';

/** A request may have several decisions. */
const LIMIT = 20;

/** If the decision no longer exists when the link is followed, the other fields are still filled in. */
export function tryPathOf(record: DecisionRecord, asked: Asked | undefined): string {
  const dates = { start: asked && local(asked.start), end: asked && local(asked.end) };
  if (record.operation.endsWith('update') && record.lease_id !== null) {
    return pathWith(changePath(record.lease_id), dates);
  }
  return pathWith('/try', {
    project: record.project_id ?? undefined,
    user: record.user_id ?? undefined,
    name: record.lease_name ?? undefined,
    ...dates,
    decision: record.request_id,
  });
}

interface RefusedReservations {
  readonly reservations: readonly ReservationForm[];
  /** What could not be filled in. */
  readonly notice?: string | undefined;
}

/**
 * The reservations of the linked decision, if the caller may see it; `undefined` = no decision is linked.
 * `types`: of the form.
 */
export async function refusedReservations(
  request: PageRequest,
  types: readonly string[],
): Promise<RefusedReservations | undefined> {
  const id = request.query.get('decision');
  if (!id) {
    return undefined;
  }
  const decisions = await decisionsOf(request, id, LIMIT);
  const asked = decisions.find((one) => one.asked?.reservations !== undefined)?.asked?.reservations;
  if (asked === undefined) {
    return {
      reservations: [],
      notice: 'The reservations of the refused lease were not kept: fill them in.',
    };
  }
  const reservations = asked
    .map(formOfReservation)
    .filter(({ type }) => types.includes(type))
    .slice(0, MOST_RESERVATIONS);
  const left = asked.length - reservations.length;
  return {
    reservations,
    notice:
      left === 0
        ? undefined
        : `The refused lease had ${asked.length} reservations; ${left} of them do not fit into this form.`,
  };
}
