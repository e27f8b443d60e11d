/** Turns launches and clusters into requests to the ledger. */
import { hash } from 'node:crypto';
import { z } from 'zod';
import type { Claim, Claims, ProjectState, Proposal } from '../../filter/claim.ts';
import { type Rejection, reject } from '../../filter/verdict.ts';
import type { Reservation } from '../../lease/lease.ts';
import { charge } from '../../ledger/accounting/recorded-claim.ts';
import { type LeaseIdentity, textMistake } from '../../ledger/identity.ts';
import type { Claimant, LedgerRequest } from '../../ledger/ledger-request.ts';
import { CLUSTER_REGION } from '../../ledger/reconciliation/cluster-mark.ts';
import type { Hardware, Launch, LaunchLimit, LaunchOwner, Payer } from './contract.ts';

/** `skypilot:ml/train`. Names of clusters are unique in SkyPilot. */
export function clusterId({ scheme }: LaunchLimit, { workspace }: LaunchOwner, cluster: string): string {
  return `${scheme}:${workspace}/${cluster}`;
}

export function identityOf(
  limit: LaunchLimit,
  owner: LaunchOwner,
  cluster: string,
  { projectId, userId }: Payer,
): LeaseIdentity | Rejection {
  const leaseId = clusterId(limit, owner, cluster);
  for (const text of [leaseId, projectId, userId]) {
    const mistake = textMistake(text);
    if (mistake !== undefined) {
      return reject(`The launch cannot be recorded: ${mistake}.`);
    }
  }
  return { leaseId, region: CLUSTER_REGION, projectId, userId };
}

/**
 * The request for a launch that begins now. `now`: microseconds; `seconds`: how long it is charged ahead;
 * `audit`: record it even if it does not fit.
 */
export function launchRequest(
  limit: LaunchLimit,
  { owner, cluster, alternatives }: Launch,
  identity: LeaseIdentity,
  {
    now,
    seconds,
    audit = false,
  }: { readonly now: bigint; readonly seconds: number; readonly audit?: boolean },
): LedgerRequest {
  const [first] = alternatives;
  const { projectId: project_id, userId: user_id, region: region_name } = identity;
  return {
    identity,
    name: cluster,
    proposal: {
      context: { project_id, user_id, region_name },
      start: now,
      end: now + BigInt(Math.ceil(seconds)) * 1_000_000n,
      reservations: reservationsOf(first),
      allocationsAreExact: true,
    },
    current: undefined,
    halfway: undefined,
    isCertain: false,
    demand: demandOfHardware(first, first.shownType !== undefined),
    adopts: false,
    repetition: undefined,
    claimants: [claimantOf(limit, owner, alternatives, audit)],
  };
}

/** Claims the maximum of all alternatives for each account. */
export function claimantOf(
  limit: LaunchLimit,
  owner: LaunchOwner,
  alternatives: readonly Hardware[],
  audit = false,
): Claimant {
  return {
    name: limit.name,
    audit,
    claims: (proposal, state) => mostExpensive(limit, owner, alternatives, proposal, state),
  };
}

function mostExpensive(
  limit: LaunchLimit,
  owner: LaunchOwner,
  alternatives: readonly Hardware[],
  proposal: Proposal,
  state: ProjectState,
): Claims {
  const most = new Map<string, Claim>();
  for (const hardware of alternatives) {
    const claims = limit.claims(owner, hardware, proposal, state);
    if ('allowed' in claims) {
      return claims;
    }
    for (const claim of claims) {
      const key = claim.kind === 'held' ? claim.account : `${claim.account} ${claim.from}`;
      const before = most.get(key);
      if (before === undefined || charge(claim) > charge(before)) {
        most.set(key, claim);
      }
    }
  }
  return [...most.values()];
}

/** For display: hours of accelerators and of nodes. */
export function reservationsOf({
  nodes,
  cloud,
  accelerators,
  instanceType,
  isSpot,
}: Hardware): Reservation[] {
  const what = accelerators === null ? (instanceType ?? 'node') : accelerators.name;
  const place = cloud === null ? '' : `${cloud}/`;
  const amount = Math.ceil(nodes * (accelerators?.count ?? 1));
  return [{ resource_type: `skypilot:${place}${what}${isSpot ? ' (spot)' : ''}`.slice(0, 200), amount }];
}

/** Prefix of the column `demand` of a cluster that SkyPilot has: its hardware follows. */
export const KNOWN_HARDWARE = '3:';

const hardwareSchema = z.object({
  nodes: z.number(),
  cloud: z.string().nullable(),
  region: z.string().nullable(),
  instanceType: z.string().nullable(),
  accelerators: z.object({ name: z.string(), count: z.number() }).nullable(),
  isSpot: z.boolean(),
  shownType: z.string().nullable(),
});

/** The hardware of a cluster that SkyPilot has, also a stopped one. `undefined` = it has none that is known. */
export function knownHardware({ demand }: { readonly demand: string }): Hardware | undefined {
  return demand.startsWith(KNOWN_HARDWARE)
    ? hardwareSchema.parse(JSON.parse(demand.slice(KNOWN_HARDWARE.length)))
    : undefined;
}

/** The column `demand`: differs when the hardware differs. `exists`: whether SkyPilot has a cluster with it. */
export function demandOfHardware(hardware: Hardware, exists: boolean): string {
  const { nodes, cloud, region, accelerators, instanceType, isSpot } = hardware;
  if (exists) {
    return `${KNOWN_HARDWARE}${JSON.stringify(hardwareSchema.parse({ shownType: null, ...hardware }))}`;
  }
  const { name = null, count = null } = accelerators ?? {};
  const facts = [nodes, cloud, region, instanceType, name?.toLowerCase() ?? null, count, isSpot];
  return `2:${hash('sha256', JSON.stringify(facts), 'base64url')}`;
}
