/** What a reservation was given, which is what it costs: its allocations, not what was asked for at most. */
import type { Allocation, Reservation } from '../lease/lease.ts';
import type { Allocations, ListedReservation } from './blazar-answers.ts';

export interface Given {
  /** The reservation with the counts and the allocations that it has. */
  readonly reservation: Reservation;
  /** `false`: Blazar has allocated nothing to it that it should have, so it is at work on it. */
  readonly isComplete: boolean;
}

/** Each instance has one allocation. Source: blazar/plugins/instances/instance_plugin.py. */
const INSTANCES = new Set(['virtual:instance', 'flavor:instance']);

/** Of other types, such as floating IPs, the API shows no allocations: they count as listed. */
export function givenBy(
  reservation: ListedReservation,
  { hosts: allocated }: Allocations,
  hosts: ReadonlyMap<string, Allocation>,
): Given {
  const { id, resource_type: type, status, missing_resources: isMissing } = reservation;
  const own = allocated.get(id) ?? [];
  const allocations = own.map((host) => hosts.get(host) ?? { id: host });
  if (type === 'physical:host') {
    const count = own.length;
    const isAtWork = count === 0 && isMissing !== true && (status === 'pending' || status === 'active');
    return {
      reservation: { ...reservation, min: count, max: count, allocations },
      isComplete: !isAtWork,
    };
  }
  return INSTANCES.has(type) && own.length > 0
    ? { reservation: { ...reservation, amount: own.length, allocations }, isComplete: true }
    : { reservation, isComplete: true };
}
