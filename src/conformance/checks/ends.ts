/** Ends of leases: reported twice, or of a lease that the service does not know. */
import type { Check } from '../check.ts';
import { expectNoContent } from '../expectations.ts';
import { SOURCE } from '../sources.ts';
import { createdBefore } from './resource-types.ts';

const NO_PROMISE = 'on-end is not guaranteed to arrive: it may come late, twice or never.';

export const endChecks: readonly Check[] = [
  {
    id: 'end-unknown-lease',
    title: 'the end of a lease that the service has never seen is answered with 204',
    protocol: `${NO_PROMISE} A lease may be older than the service.`,
    sources: [SOURCE.endpoints, SOURCE.blazarDocs],
    needs: ['end'],
    run: async ({ target, leases }) =>
      expectNoContent(await target.end(leases.make(), 'the end of a lease that was never created')),
  },
  {
    id: 'end-twice',
    title: 'the end of a lease that is reported twice is answered with 204 both times',
    protocol: NO_PROMISE,
    sources: [SOURCE.endpoints, SOURCE.blazarDocs],
    needs: ['end'],
    run: async ({ target, leases }) => {
      const lease = leases.make();
      await createdBefore(target, lease);
      const first = await target.end(lease, 'the end of a lease');
      const second = await target.end(lease, 'the same end again');
      return [first, second].flatMap(expectNoContent);
    },
  },
];
