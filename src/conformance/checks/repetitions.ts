/** Requests that are sent again, as their key shows. */
import { randomUUID } from 'node:crypto';
import type { Check, Finding, Run } from '../check.ts';
import { expectVerdict } from '../expectations.ts';
import { SOURCE } from '../sources.ts';
import { expectSameVerdict } from './same-verdict.ts';

export const repetitionChecks: readonly Check[] = [
  {
    id: 'idempotency-key',
    title: 'an Idempotency-Key does not change the answer to a new lease, nor does sending it again',
    protocol:
      'ExternalServiceFilter of this package sends an Idempotency-Key. The same key means that a request is sent again: it is one lease, with one answer.',
    sources: [SOURCE.endpoints, SOURCE.keepInMind],
    needs: ['create'],
    run: sentAgain,
  },
];

async function sentAgain(run: Run): Promise<Finding[]> {
  const { target, leases } = run;
  const lease = leases.make();
  const key = randomUUID();
  let status: number | undefined;
  const first = async () => {
    const exchange = await target.create(lease, 'a lease with an Idempotency-Key', { key });
    status = exchange.answer?.status;
    return exchange;
  };
  const findings = await expectSameVerdict(run, first, 'without an Idempotency-Key');
  if (findings.length > 0) {
    return findings;
  }
  const again = await target.create(lease, 'the same lease with the same Idempotency-Key', { key });
  return again.answer?.status === status
    ? expectVerdict(again)
    : [{ expected: `the status ${status}, as the first time`, exchange: again }];
}
