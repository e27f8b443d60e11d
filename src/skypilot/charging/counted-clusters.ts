/**
 * When all running clusters were last counted, for each limit: the times of complete rounds, in the row of
 * the leader lease. Without such a round, clusters that no policy reviewed would not count, and a limit on
 * running clusters would let too many start.
 */
import { z } from 'zod';
import { jsonIn } from '../../base/yaml/tree.ts';
import type { Proposal } from '../../filter/claim.ts';
import { type Instant, MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { SKYPILOT_LEADER } from '../../ledger/reconciliation/leader-lease.ts';
import { rows, type Work } from '../../ledger/storage/database.ts';
import type { Launch, LaunchLimit } from './contract.ts';

export const NOT_COUNTED =
  'The clusters that are up have not been counted yet, so that nothing that is limited may start: try again in a minute, or ask the operator.';

/** Scheme of a limit → start of the last round that compared it with all clusters, in microseconds. */
type CountedAt = ReadonlyMap<string, Instant>;

/** Maximum lag of a limit's rounds behind those of another, which other replicas may have, in intervals. */
export const BEHIND = 3;

const writtenSchema = z.record(z.string(), z.string().regex(/^\d{1,19}$/));

/** Unreadable times = none. */
export function countedAt(written: string | null): CountedAt {
  const { data = {} } = writtenSchema.safeParse(jsonIn(written ?? '{}'));
  return new Map(Object.entries(data).map(([scheme, at]) => [scheme, BigInt(at)]));
}

/** The times after a round. An incomplete round has counted what it saw: it updates times, but adds none. */
export function writtenAfter(
  before: CountedAt,
  limits: readonly LaunchLimit[],
  startedAt: Instant,
  isComplete: boolean,
): string {
  const all = new Map(before);
  for (const { scheme } of limits) {
    if (isComplete || all.has(scheme)) {
      all.set(scheme, startedAt);
    }
  }
  return JSON.stringify(Object.fromEntries([...all].map(([scheme, at]) => [scheme, String(at)])));
}

export function* readCountedAt({ database }: Ledger): Work<CountedAt> {
  const query = database.queries.selectFrom('follower').select('matched').where('id', '=', SKYPILOT_LEADER);
  const [row] = yield* rows(query.compile());
  return countedAt(row?.matched ?? null);
}

/**
 * Whether the leases of a limit match the running clusters. `false` if rounds go on without the limit,
 * because it was disabled in between. `behind`: its maximum lag behind other limits, in seconds.
 */
export function isCounted(
  { scheme, believed }: LaunchLimit,
  marks: CountedAt,
  now: Instant,
  behind: number,
): boolean {
  if (believed === undefined) {
    return true;
  }
  const at = marks.get(scheme);
  const within = (from: Instant, to: Instant, seconds: number) =>
    to - from <= BigInt(Math.floor(seconds)) * MICROSECONDS_PER_SECOND;
  return (
    at !== undefined &&
    within(at, now, believed) &&
    // A future time, after a clock was set back, would be valid for ever.
    within(now, at, believed) &&
    [...marks.values()].every((other) => within(at, other, behind))
  );
}

/** Whether a launch uses any limit. */
export function takesLimited(limit: LaunchLimit, launch: Launch, proposal: Proposal, now: Instant): boolean {
  return launch.alternatives.some((hardware) => {
    const claims = limit.claims(launch.owner, hardware, proposal, { now, budgets: [] });
    return !('allowed' in claims) && claims.some((claim) => claim.limit !== undefined);
  });
}
