/** Which row of the ledger a request is about. */
import { formatClaims, type Proposal, parseClaims, type RecordedClaim } from './claim.ts';
import { rows, type Work } from './database.ts';
import type { LeaseIdentity } from './identity.ts';
import type { FilterClaims } from './reckoning.ts';
import type { LeaseRow } from './schema.ts';
import type { Statements } from './statements.ts';

/** By its id; where none is known yet, all that it may be. */
export function* findLease(statements: Statements, identity: LeaseIdentity): Work<LeaseRow[]> {
  const {
    leaseId: lease_id,
    region,
    projectId: project_id,
    userId: user_id,
    name,
    start: starts_at,
  } = identity;
  if (lease_id !== null) {
    const known = yield* rows(statements.leaseById({ region, project_id, lease_id }));
    if (known.length > 0) {
      return known;
    }
  }
  return yield* rows(statements.leasesByKey({ region, project_id, user_id, name, starts_at }));
}

/** Whether a new lease was recorded before: Blazar's client tries again, and what is built is reported by its id. */
export function isSame(
  row: LeaseRow,
  {
    proposal,
    demand,
    wanted,
    identity,
  }: { proposal: Proposal; demand: () => string; wanted: readonly FilterClaims[]; identity: LeaseIdentity },
): boolean {
  if (row.lease_id !== null) {
    return row.state === 'open' && row.lease_id === identity.leaseId;
  }
  const isAlike = row.demand === demand();
  const takesAlike = () => includesAll(parseClaims(row.claims), wanted);
  // What is built is described by more than what was asked for: one of both is enough, with an id.
  const isRepeated = identity.leaseId === null ? isAlike && takesAlike() : isAlike || takesAlike();
  return row.ends_at === proposal.end && isRepeated;
}

/** A check is asked by one filter: what the others claim is recorded besides. */
function includesAll(recorded: readonly RecordedClaim[], wanted: readonly FilterClaims[]): boolean {
  const known = new Set(recorded.map((claim) => formatClaims([claim])));
  return wanted.every(({ claims }) => claims.every((claim) => known.has(formatClaims([claim]))));
}

/** Of those that it may be, the one that ends when it does; else the one that was recorded first. */
export function nearest(found: readonly LeaseRow[], endsAt: bigint | undefined): LeaseRow | undefined {
  return found.find(({ ends_at }) => ends_at === endsAt) ?? found[0];
}
