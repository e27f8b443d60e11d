/** What SkyPilot lets pass its admin policies, as a record beside the decisions. Source: SkyPilot 0.13: `sky start` and `sky autostop` ask no policy. */
import { randomUUID } from 'node:crypto';
import { formatInstant, type Instant } from '../lease/dates.ts';
import type { DecisionRecord } from './record.ts';

/** `undecided`: a cluster was started without asking a policy. `autostop-off`: autostop was switched off after the launch. */
export type BypassKind = 'undecided' | 'autostop-off';

/** One event, whatever the number of policies that it got past. */
export interface Bypass {
  readonly kind: BypassKind;
  readonly workspace: string;
  readonly cluster: string;
  /** Empty = SkyPilot does not tell. */
  readonly userId: string;
  /** When the cluster was started last; `undefined` = SkyPilot does not tell. */
  readonly startedAt: Instant | undefined;
  /** In the order of the configuration. */
  readonly policies: readonly string[];
  /** Which limit is exceeded now, for people; `undefined` = none is. */
  readonly exceeded: string | undefined;
}

/** Names of SkyPilot are shorter. */
const MAX_NAME = 255;
const MAX_MESSAGE = 2000;

/** `at`: when it was found. */
export function bypassRecord(bypass: Bypass, at: Date, generation: number): DecisionRecord {
  const { workspace, cluster, userId, policies } = bypass;
  return {
    time: at.toISOString(),
    request_id: `req-${randomUUID()}`,
    operation: 'skypilot.bypass',
    project_id: cut(workspace, MAX_NAME),
    user_id: userId === '' ? null : cut(userId, MAX_NAME),
    lease_id: null,
    lease_name: cut(cluster, MAX_NAME),
    allowed: true,
    outcome: 'bypassed',
    filter: policies[0] ?? null,
    message: cut(bypassText(bypass), MAX_MESSAGE),
    failed: false,
    warnings: [],
    filters: policies.map((filter) => ({
      ...{ filter, outcome: 'bypassed', audit: false, message: null, duration_ms: 0 },
    })),
    generation,
    duration_ms: 0,
  };
}

/** For people. */
export function bypassText({ kind, cluster, startedAt, exceeded }: Bypass): string {
  const when = startedAt === undefined ? '' : ` at ${formatInstant(startedAt)}`;
  const what =
    kind === 'undecided'
      ? `The cluster ${cluster} was started${when} without asking a policy, for example by "sky start".`
      : `Autostop of the cluster ${cluster} was switched off after its launch, for example by "sky autostop --cancel".`;
  return exceeded === undefined ? what : `${what} It is up beyond a limit: ${exceeded}`;
}

function cut(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}
