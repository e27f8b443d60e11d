/** Leases of each resource type: create, update and end. */
import type { Check } from '../check.ts';
import { expectNoContent, expectVerdict } from '../expectations.ts';
import { isoText, type Leases, type ResourceType, resources, type TestLease } from '../leases.ts';
import { SOURCE } from '../sources.ts';
import type { Target } from '../target.ts';

const TYPES = Object.keys(resources) as ResourceType[];
const DAY_MS = 86_400_000;

/** `physical:host` → `physical-host`. */
const idOf = (type: ResourceType) => type.replace(':', '-');

const leaseOf = (leases: Leases, type: ResourceType) => leases.make({ reservations: [resources[type]] });

function createCheck(type: ResourceType): Check {
  return {
    id: `create-${idOf(type)}`,
    title: `a new lease with a reservation of the type ${type} is answered with 204 or 403`,
    protocol: 'check-create is answered with 204 when the lease is allowed, and with 403 when it is not.',
    sources: [SOURCE.blazarDocs, SOURCE.requests],
    needs: ['create'],
    run: async ({ target, leases }) =>
      expectVerdict(await target.create(leaseOf(leases, type), `a lease of the type ${type}`)),
  };
}

function updateCheck(type: ResourceType): Check {
  return {
    id: `update-${idOf(type)}`,
    title: `the update of a lease with a reservation of the type ${type} is answered with 204 or 403`,
    protocol:
      'check-update is answered with 204 when the change in lease is allowed, and with 403 when it is not.',
    sources: [SOURCE.blazarDocs, SOURCE.requests],
    needs: ['update'],
    run: async ({ target, leases }) => {
      const lease = leaseOf(leases, type);
      await createdBefore(target, lease, type);
      const changes = {
        name: lease.current.name,
        ...dayLonger(leases),
        reservations: lease.current.reservations,
      };
      return expectVerdict(
        await target.update(lease, changes, `a lease of the type ${type}, extended by a day`),
      );
    },
  };
}

function endCheck(type: ResourceType): Check {
  return {
    id: `end-${idOf(type)}`,
    title: `the end of a lease with a reservation of the type ${type} is answered with 204`,
    protocol: 'on-end reports that a lease has ended, and is answered with 204: there is nothing to decide.',
    sources: [SOURCE.endpoints, SOURCE.duties],
    needs: ['end'],
    run: async ({ target, leases }) => {
      const lease = leaseOf(leases, type);
      await createdBefore(target, lease, type);
      return expectNoContent(await target.end(lease, `the end of a lease of the type ${type}`));
    },
  };
}

/** Creates the lease that is updated or ended, if the service has the endpoint for it. */
export async function createdBefore(target: Target, lease: TestLease, type = 'physical:host'): Promise<void> {
  if (target.has('create')) {
    await target.create(lease, `a lease of the type ${type}`);
  }
}

export function dayLonger({ start, end }: Leases) {
  return { start_date: isoText(start), end_date: isoText(new Date(end.getTime() + DAY_MS)) };
}

export const resourceTypeChecks: readonly Check[] = [
  ...TYPES.map(createCheck),
  {
    id: 'create-two-reservations',
    title: 'a new lease with two reservations of different types is answered with 204 or 403',
    protocol: 'A lease has any number of reservations, each with its own allocations.',
    sources: [SOURCE.requests, SOURCE.unsaid],
    needs: ['create'],
    run: async ({ target, leases }) => {
      const reservations = [resources['physical:host'], resources['virtual:floatingip']];
      return expectVerdict(
        await target.create(leases.make({ reservations }), 'a lease of a host and a floating IP'),
      );
    },
  },
  ...TYPES.map(updateCheck),
  ...TYPES.map(endCheck),
];
