/** What policies that charge launches do with a request: refuse it, hold the launch, or let it pass. */
import type { Call } from '../../filter/call.ts';
import { PolicyRejected, type PolicyServices } from '../admin-policy.ts';
import { MutatedUserRequest, type UserRequest } from '../request/user-request.ts';
import { chargedLaunch } from './charged-launch.ts';
import type { Hardware, LaunchLedger, LaunchLimit } from './contract.ts';

/** How a policy treats requests. */
export interface LaunchTerms {
  /** What happens to requests after which a controller launches without asking, if `takes` is true for an alternative. */
  readonly managed: 'refuse' | 'check';
  /** Whether hardware takes something of the limit. */
  readonly takes: (hardware: Hardware) => boolean;
  /** For the user whose request is refused by `managed`. */
  readonly refusal: string;
  /** For how long a launch is held, in seconds; `longest`: for how long its cluster can be up, `undefined` = without end. Default: the hold of the limit. */
  readonly secondsOf?: (longest: number | undefined) => number;
}

/** Holds the launch of a request, which stays as it is. @throws PolicyRejected @throws LedgerUnavailableError */
export async function reviewLaunch(
  limit: LaunchLimit,
  launches: LaunchLedger,
  request: UserRequest,
  call: Call,
  { managed, takes, refusal, secondsOf }: LaunchTerms,
): Promise<MutatedUserRequest> {
  const charged = chargedLaunch(request);
  if (charged !== undefined) {
    const { kind, launch, seconds } = charged;
    if (kind === 'managed' && managed === 'refuse' && launch.alternatives.some(takes)) {
      throw new PolicyRejected(refusal);
    }
    const verdict =
      kind === 'hold'
        ? await launches.hold(limit, launch, call, secondsOf?.(seconds))
        : await launches.check(limit, launch, call);
    if (!verdict.allowed) {
      throw new PolicyRejected(verdict.message);
    }
  }
  return new MutatedUserRequest(request.task, request.skypilotConfig);
}

/** The ledger of a policy that names it in `needs`. @throws Error if there is none */
export function requireLaunches({ launches }: PolicyServices): LaunchLedger {
  if (launches === undefined) {
    throw new Error('expected the ledger, which the policy names in needs');
  }
  return launches;
}
