import type { Instant } from '../../lease/dates.ts';
import { MAKING, reservationsAfterUpdate, type UpdateRequest } from '../../lease/lease.ts';
import { demandOf } from '../../ledger/accounting/demand.ts';

/**
 * The changes of reservations that this process has allowed just before. Blazar does not lock a lease: of changes that
 * are asked for at once, it asks about each with the lease as it was, and makes all. The ledger knows the changes of all
 * replicas, if an enforced filter uses it.
 */
export class RecentChanges {
  /** Lease → the reservations after its last change. The oldest change is first. */
  readonly #changes = new Map<string, { readonly at: Instant; readonly demand: string }>();

  /** Whether Blazar is not making another change of the lease. If so, the change is remembered. */
  admits(request: UpdateRequest, now: Instant): boolean {
    for (const [lease, { at }] of this.#changes) {
      if (at <= now && now < at + MAKING) {
        break;
      }
      this.#changes.delete(lease);
    }
    const { currentLease, lease } = request;
    const before = demandOf(currentLease.reservations ?? []);
    const demand = demandOf(reservationsAfterUpdate(currentLease, lease));
    const key = keyOf(request);
    if ((this.#changes.get(key)?.demand ?? before) !== before) {
      return false;
    }
    if (demand !== before && typeof currentLease.id === 'string') {
      this.#changes.delete(key);
      this.#changes.set(key, { at: now, demand });
    }
    return true;
  }

  /** The change was refused after all. */
  forget(request: UpdateRequest): void {
    this.#changes.delete(keyOf(request));
  }
}

function keyOf({ context: { region_name, project_id }, currentLease: { id } }: UpdateRequest): string {
  return JSON.stringify([region_name, project_id, id]);
}
