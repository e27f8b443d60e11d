/** The two endpoints that forks of Blazar, and ExternalServiceFilter of this package, call when a lease is built. */
import type { Check } from '../check.ts';
import { expectVerdict } from '../expectations.ts';
import { SOURCE } from '../sources.ts';
import { createdBefore, dayLonger } from './resource-types.ts';

const SOURCES = [SOURCE.endpoints, SOURCE.keepInMind];

export const commitChecks: readonly Check[] = [
  {
    id: 'commit-create',
    title: 'the commit of a new lease is answered with 204 or 403',
    protocol: 'commit-create has the body of a check-create with the id of the lease, and the same answers.',
    sources: SOURCES,
    needs: ['commitCreate'],
    run: async ({ target, leases }) => {
      const lease = leases.make();
      await createdBefore(target, lease);
      return expectVerdict(await target.commitCreate(lease, 'the commit of a new lease'));
    },
  },
  {
    id: 'commit-update',
    title: 'the commit of an update is answered with 204 or 403',
    protocol: 'commit-update has the body of a check-update, and the same answers.',
    sources: SOURCES,
    needs: ['commitUpdate'],
    run: async ({ target, leases }) => {
      const lease = leases.make();
      await createdBefore(target, lease);
      const changes = { ...dayLonger(leases), reservations: lease.current.reservations };
      if (target.has('update')) {
        await target.update(lease, changes, 'an update');
      }
      return expectVerdict(await target.commitUpdate(lease, changes, 'the commit of an update'));
    },
  },
  {
    id: 'commit-twice',
    title: 'a commit that is sent again gets the same answer',
    protocol:
      'A commit whose answer was lost is sent again with the same Idempotency-Key and id: it is one lease, and is charged once.',
    sources: SOURCES,
    needs: ['commitCreate'],
    run: async ({ target, leases }) => {
      const lease = leases.make();
      await createdBefore(target, lease);
      const key = lease.id;
      const first = await target.commitCreate(lease, 'the commit of a new lease', { key });
      const second = await target.commitCreate(lease, 'the same commit again', { key });
      const { answer } = first;
      return answer === undefined || answer.status === second.answer?.status
        ? [first, second].flatMap(expectVerdict)
        : [{ expected: `the status ${answer.status}, as the first time`, exchange: second }];
    },
  },
];
