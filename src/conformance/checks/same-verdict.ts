import type { Finding, Run } from '../check.ts';
import { expectVerdict } from '../expectations.ts';
import type { Exchange } from '../target.ts';

/**
 * A question that differs from a plain one in what must not matter is answered like the plain one. `as` completes "the status
 * 204, as …". What was allowed before has been told to have ended, so that its cost decides nothing.
 */
export async function expectSameVerdict(
  { target, leases }: Run,
  ask: () => Promise<Exchange>,
  as: string,
): Promise<Finding[]> {
  const before = await target.create(leases.make(), 'a lease');
  await target.settle();
  const exchange = await ask();
  const status = before.answer?.status;
  if (exchange.answer?.status === status || expectVerdict(exchange).length > 0) {
    return expectVerdict(exchange);
  }
  await target.settle();
  // A budget may be used up by now. Then a plain one is answered otherwise as well.
  const after = await target.create(leases.make(), 'a lease, once more');
  return after.answer?.status === exchange.answer?.status
    ? []
    : [{ expected: `the status ${status ?? '204 or 403'}, as ${as}`, exchange }];
}
