/** The two requests that only the author can give: what the rule allows, and what it does not. */
import { randomUUID } from 'node:crypto';
import type { Check, Finding, Run } from '../check.ts';
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
];

async function asked({ target }: Run, body: string, status: number, what: string): Promise<Finding[]> {
  const exchange = await target.send({ operation: 'create', what, body }, true);
  const { context, lease } = JSON.parse(body) as { context: object; lease: object };
  const id = randomUUID();
  target.noteAllowed(exchange, id, { context, lease: { id, ...lease } });
  return exchange.answer?.status === status ? [] : [{ expected: `the status ${status}`, exchange }];
}
