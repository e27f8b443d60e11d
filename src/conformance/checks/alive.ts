import type { Run } from '../check.ts';
import type { Exchange } from '../target.ts';

/** A valid request, to see whether the service still answers. */
export function askAgain({ target, leases }: Pick<Run, 'target' | 'leases'>): Promise<Exchange> {
  const lease = leases.make();
  const what = 'does the service still answer?';
  if (target.has('create')) {
    return target.create(lease, `a lease: ${what}`);
  }
  return target.has('update')
    ? target.update(lease, lease.current, `an update: ${what}`)
    : target.end(lease, `the end of a lease: ${what}`);
}
