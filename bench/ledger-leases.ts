/** Leases that are asked for, and allowed, one after the other. */

import type { HttpObserver } from '../src/http/contract.ts';
import { type CreateRequest, UsageEnforcement } from '../src/index.ts';
import { CLOCK, PROJECT } from './ledger-databases.ts';
import { capturedRequests } from './requests.ts';

const USERS = 10;
/** Prefix of all names in a bench. */
export const NAME = 'bench ';

/** The captured request, repeatedly: each lease has a new name. */
export function requestsOf(prefix = NAME): () => CreateRequest {
  const captured = capturedRequests();
  let count = 0;
  return () => {
    const request = captured[count % captured.length] as CreateRequest;
    count += 1;
    const context = { ...request.context, project_id: PROJECT, user_id: `user-${count % USERS}` };
    return { context, lease: { ...request.lease, name: `${prefix}${count}` } };
  };
}

/** On a ledger, with the filters that use it. `more`: further options of `[enforcement]`. */
export function enforcementAt(
  connection: string,
  more: Readonly<Record<string, unknown>> = {},
  httpObserver?: HttpObserver,
): Promise<UsageEnforcement> {
  return UsageEnforcement.load(
    {
      environment: {},
      configFiles: [],
      values: {
        ledger: { connection },
        enforcement: {
          enabled_filters: ['MaxLeasesFilter', 'UsageBudgetFilter'],
          max_leases_per_project: 1_000_000_000,
          ...more,
        },
      },
    },
    { clock: CLOCK, httpObserver },
  );
}

/** Throws if the lease is not allowed. */
export async function create(
  enforcement: UsageEnforcement,
  request: CreateRequest,
  dryRun = false,
): Promise<void> {
  const { allowed, message } = await enforcement.checkCreate(request, { dryRun });
  if (!allowed) {
    throw new Error(`expected the lease to be allowed: ${message}`);
  }
}
