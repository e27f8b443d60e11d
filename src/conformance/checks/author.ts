/** Requests that only the author of the service can give: one that its rule allows, and some that it does not. */
import { randomUUID } from 'node:crypto';
import type { Check, Finding, Run } from '../check.ts';
import { expectStatus } from '../expectations.ts';
import type { Operation } from '../operations.ts';
import { SOURCE } from '../sources.ts';

export const authorChecks: readonly Check[] = [
  {
    id: 'allow-lease',
    title: 'the lease of --allow-lease is answered with 204',
    protocol: 'check-create is answered with 204 when the lease meets the criteria.',
    sources: [SOURCE.blazarDocs, SOURCE.endpoints],
    needs: ['create'],
    run: (run) =>
      run.allowLease === undefined
        ? { skipped: '--allow-lease is not given' }
        : asked(run, run.allowLease, 204, 'the lease of --allow-lease'),
  },
  {
    id: 'deny-lease',
    title: 'the lease of --deny-lease is answered with 403',
    protocol: 'check-create is answered with 403 when the lease does not meet the criteria.',
    sources: [SOURCE.blazarDocs, SOURCE.endpoints],
    needs: ['create'],
    run: (run) =>
      run.denyLease === undefined
        ? { skipped: '--deny-lease is not given' }
        : asked(run, run.denyLease, 403, 'the lease of --deny-lease'),
  },
  {
    id: 'deny-update',
    title: 'the update of --deny-update is answered with 403',
    protocol:
      'check-update is answered with 403 when the change in lease is not allowed. An update must not get what a create would not.',
    sources: [SOURCE.blazarDocs, SOURCE.endpoints],
    needs: ['update'],
    run: (run) =>
      run.denyUpdate === undefined
        ? { skipped: '--deny-update is not given' }
        : asked(run, run.denyUpdate, 403, 'the update of --deny-update', 'update'),
  },
  {
    id: 'deny-commit',
    title: 'the lease of --deny-commit is answered with 403 by commit-create',
    protocol:
      'A commit is the last check before a lease is granted: a lease that has exceeded a limit since its check is answered with 403.',
    sources: [SOURCE.endpoints, SOURCE.keepInMind],
    needs: ['commitCreate'],
    run: (run) =>
      run.denyCommit === undefined
        ? { skipped: '--deny-commit is not given' }
        : asked(run, run.denyCommit, 403, 'the lease of --deny-commit', 'commitCreate'),
  },
];

/** Sends the author's request unchanged. */
async function asked(
  { target }: Run,
  body: string,
  status: 204 | 403,
  what: string,
  operation: Exclude<Operation, 'end'> = 'create',
): Promise<Finding[]> {
  const exchange = await target.send({ operation, what, body }, true);
  const { context, current_lease, lease } = JSON.parse(body) as Readonly<Record<string, object | undefined>>;
  const id = randomUUID();
  target.noteAllowed(exchange, id, { context, lease: { id, ...current_lease, ...lease } });
  return expectStatus(exchange, [status], `the status ${status}`);
}
