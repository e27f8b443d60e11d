import type { PolicyServices } from '../admin-policy.ts';
import type { LaunchLedger } from './contract.ts';

/** The ledger of a policy that names it in `needs`. @throws Error if there is none */
export function requireLaunches({ launches }: PolicyServices): LaunchLedger {
  if (launches === undefined) {
    throw new Error('expected the ledger, which the policy names in needs');
  }
  return launches;
}
