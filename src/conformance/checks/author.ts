/** Requests that only the author of the service can provide: one to allow, and some to reject. */
import { randomUUID } from 'node:crypto';
import { type Check, expectStatus, type Run, SOURCE, type Verdict } from '../check.ts';
import type { Operation } from '../target.ts';

export const authorChecks: readonly Check[] = [
  {
    id: 'allow-lease',
    title: 'the lease of --allow-lease is answered with 204',
    protocol: 'check-create is answered with 204 when the lease meets the criteria.',
    sources: [SOURCE.blazarDocs, SOURCE.endpoints],
    needs: ['create'],
    run: (run) => asked(run, 'create', run.allowLease, 204, 'lease of --allow-lease'),
  },
  {
    id: 'deny-lease',
    title: 'the lease of --deny-lease is answered with 403',
    protocol: 'check-create is answered with 403 when the lease does not meet the criteria.',
    sources: [SOURCE.blazarDocs, SOURCE.endpoints],
    needs: ['create'],
    run: (run) => asked(run, 'create', run.denyLease, 403, 'lease of --deny-lease'),
  },
  {
    id: 'deny-update',
    title: 'the update of --deny-update is answered with 403',
    protocol:
      'check-update is answered with 403 when the change in lease is not allowed. An update must not get what a create would not.',
    sources: [SOURCE.blazarDocs, SOURCE.endpoints],
    needs: ['update'],
    run: (run) => asked(run, 'update', run.denyUpdate, 403, 'update of --deny-update'),
  },
  {
    id: 'deny-commit',
    title: 'the lease of --deny-commit is answered with 403 by commit-create',
    protocol:
      'A commit is the last check before a lease is granted: a lease that has exceeded a limit since its check is answered with 403.',
    sources: [SOURCE.endpoints, SOURCE.keepInMind],
    needs: ['commitCreate'],
    run: (run) => asked(run, 'commitCreate', run.denyCommit, 403, 'lease of --deny-commit'),
  },
];

/** Sends the author's request unchanged. `what` ends with its flag. */
async function asked(
  { target }: Run,
  operation: Operation,
  body: string | undefined,
  status: 204 | 403,
  what: string,
): Promise<Verdict> {
  if (body === undefined) {
    return { skipped: `${what.replace(/^.* /, '')} is not given` };
  }
  const exchange = await target.send({ operation, what: `the ${what}`, body }, true);
  const { context, current_lease, lease } = JSON.parse(body) as Readonly<Record<string, object | undefined>>;
  const id = randomUUID();
  target.noteAllowed(exchange, id, { context, lease: { id, ...current_lease, ...lease } });
  return expectStatus(exchange, [status], `the status ${status}`);
}
