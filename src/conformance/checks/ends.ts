/** What is told of leases that have ended: once, twice, or of none that the service knows. */
import type { Check } from '../check.ts';
import { expectNoContent } from '../expectations.ts';
import { SOURCE } from '../sources.ts';
import { createdBefore } from './resource-types.ts';

const NO_PROMISE = 'There is no promise that on-end arrives: it may come late, twice or never.';

export const endChecks: readonly Check[] = [
  {
    id: 'end-unknown-lease',
    title: 'the end of a lease that the service has never seen is answered with 204',
    protocol: `${NO_PROMISE} A lease may be older than the service.`,
    sources: [SOURCE.endpoints, SOURCE.blazarDocs],
    needs: ['end'],
    run: async ({ target, leases }) =>
      expectNoContent(await target.end(leases.make(), 'the end of a lease that was never asked for')),
  },
  {
    id: 'end-twice',
    title: 'the end of a lease that is told twice is answered with 204 both times',
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
