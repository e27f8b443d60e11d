/**
 * The conditions of a policy's status. Source: Kubernetes API conventions, "Typical status properties";
 * meta/v1, Condition.
 */
import { z } from 'zod';
import { visibleText } from '../../../base/visible-text.ts';
import { auditLeftOut } from '../../export/left-out.ts';
import { CLUSTER_GROUP } from '../../policies/policy.ts';
import type { LivePolicy } from '../live/contract.ts';
import { POLICIES_PATH } from '../live/read-policy.ts';

export const ACCEPTED = 'Accepted';
const ENFORCED = 'Enforced';
const EXPORTABLE = 'Exportable';

export interface Condition {
  readonly type: typeof ACCEPTED | typeof ENFORCED | typeof EXPORTABLE;
  readonly status: 'True' | 'False';
  readonly reason:
    | 'Valid'
    | 'Invalid'
    | 'Enforced'
    | 'Audited'
    | 'NotAsked'
    | 'LastGoodForm'
    | 'Complete'
    | 'LeftOut';
  readonly message: string;
  readonly observedGeneration: number;
}

/** `isAudited`: what the policy would reject becomes a warning. `notAsked`: what API servers do not ask about. */
export function conditionsOf(
  policy: LivePolicy,
  isAudited: boolean,
  notAsked: readonly string[],
): readonly Condition[] {
  const { generation: observedGeneration } = policy;
  return [
    { type: ACCEPTED, ...accepted(policy), observedGeneration },
    { type: ENFORCED, ...enforced(policy, isAudited, notAsked), observedGeneration },
    { type: EXPORTABLE, ...exportable(policy, isAudited), observedGeneration },
  ];
}

type Said = Pick<Condition, 'status' | 'reason' | 'message'>;

function accepted({ mistake }: LivePolicy): Said {
  return mistake === undefined
    ? { status: 'True', reason: 'Valid', message: 'The policy is valid.' }
    : { status: 'False', reason: 'Invalid', message: shownText(mistake) };
}

function enforced(
  { generation, enforcedGeneration }: LivePolicy,
  isAudited: boolean,
  notAsked: readonly string[],
): Said {
  if (notAsked.length > 0) {
    const message = shownText(
      `The webhooks are not as they were installed, so API servers may not ask about everything: ${notAsked.join('; ')}`,
    );
    return { status: 'False', reason: 'NotAsked', message };
  }
  const isLastGood = enforcedGeneration !== undefined && enforcedGeneration !== generation;
  const which = isLastGood ? `Generation ${enforcedGeneration}, the last valid one,` : 'The policy';
  if (isAudited) {
    const message =
      enforcedGeneration === undefined
        ? 'The policy is in audit mode and was never valid: pods of accounts that may use it get a warning.'
        : `${which} is in audit mode: what it would reject gets a warning.`;
    return { status: 'False', reason: 'Audited', message };
  }
  if (enforcedGeneration === undefined) {
    const message = 'The policy was never valid: pods of accounts that may use it are refused.';
    return { status: 'False', reason: 'Invalid', message };
  }
  return isLastGood
    ? {
        status: 'True',
        reason: 'LastGoodForm',
        // A starting replica has no earlier form.
        message: `${which} is in force until the service restarts; then pods of accounts that may use the policy are refused.`,
      }
    : { status: 'True', reason: 'Enforced', message: 'The policy is in force.' };
}

function exportable({ name, mistake, leftOut }: LivePolicy, isAudited: boolean): Said {
  if (mistake !== undefined) {
    return { status: 'False', reason: 'Invalid', message: 'The policy is invalid: it stops an export.' };
  }
  const missing = isAudited ? auditLeftOut([name]) : leftOut;
  return missing.length === 0
    ? { status: 'True', reason: 'Complete', message: 'An export says all that the policy says.' }
    : { status: 'False', reason: 'LeftOut', message: shownText(missing.join('; ')) };
}

/** The API server refuses longer notes of events. In bytes. Source: Kubernetes API, events.k8s.io/v1. */
const MOST = 1024;
const DOTS = '…';
/** Longer texts are not needed, and escaping may turn one character into twelve. */
const LOOKED_AT = 2 * MOST;

/** At most 1 kB of UTF-8. */
export function shownText(text: string): string {
  const shown = visibleText(text.slice(0, LOOKED_AT));
  const isCut = text.length > LOOKED_AT || Buffer.byteLength(shown) > MOST;
  if (!isCut) {
    return shown;
  }
  const bytes = Buffer.from(shown).subarray(0, MOST - Buffer.byteLength(DOTS));
  // The end may be half a character, which decodes to U+FFFD.
  return `${bytes.toString().replace(/\ufffd$/, '')}${DOTS}`;
}

const statusSchema = z.looseObject({
  observedGeneration: z.unknown().optional(),
  conditions: z.array(z.unknown()).optional().catch(undefined),
});
const conditionSchema = z.looseObject({
  type: z.string(),
  status: z.string(),
  reason: z.string().optional().catch(undefined),
  message: z.string().optional().catch(undefined),
  observedGeneration: z.number().optional().catch(undefined),
  lastTransitionTime: z.iso.datetime({ offset: true }).optional().catch(undefined),
});
type WrittenCondition = z.infer<typeof conditionSchema>;

/** Only our types. Never fails: anything that is not a condition is dropped. */
function writtenConditions(status: unknown): ReadonlyMap<string, WrittenCondition> {
  const { conditions = [] } = statusSchema.safeParse(status).data ?? {};
  const parsed = conditions.flatMap((condition) => conditionSchema.safeParse(condition).data ?? []);
  return new Map(parsed.map((condition) => [condition.type, condition]));
}

/** The condition of a type in a written status. */
export function writtenCondition(status: unknown, type: string): WrittenCondition | undefined {
  return writtenConditions(status).get(type);
}

/** Whether a policy's status is up to date. Other clients' conditions are ignored. */
export function isWritten({ status, generation }: LivePolicy, conditions: readonly Condition[]): boolean {
  const written = writtenConditions(status);
  return (
    statusSchema.safeParse(status).data?.observedGeneration === generation &&
    conditions.every(({ type, status: said, reason, message, observedGeneration }) => {
      const has = written.get(type);
      return (
        has?.lastTransitionTime !== undefined &&
        has.status === said &&
        has.reason === reason &&
        has.message === message &&
        has.observedGeneration === observedGeneration
      );
    })
  );
}

/**
 * A PATCH by server-side apply: the API server merges conditions by type, so that other clients' stay.
 * `resourceVersion` makes it refuse a status for an earlier state, also from a replica that was frozen and is
 * no longer the leader.
 */
export function statusPatch(policy: LivePolicy, conditions: readonly Condition[], now: Date) {
  const { name, uid, resourceVersion, generation, status } = policy;
  const written = writtenConditions(status);
  return {
    method: 'PATCH',
    path: `${POLICIES_PATH}/${encodeURIComponent(name)}/status`,
    query: { fieldManager: COMPONENT, force: 'true' },
    contentType: 'application/apply-patch+yaml',
    body: {
      apiVersion: POLICY_API_VERSION,
      kind: POLICY_KIND,
      metadata: { name, uid, resourceVersion },
      status: {
        observedGeneration: generation,
        conditions: conditions.map((condition) => {
          const before = written.get(condition.type);
          const kept = before?.status === condition.status ? before.lastTransitionTime : undefined;
          return { ...condition, lastTransitionTime: kept ?? seconds(now) };
        }),
      },
    },
  } as const;
}

/** As Kubernetes writes times. */
export function seconds(time: Date): string {
  return time.toISOString().replace(/\.\d{3}Z$/, 'Z');
}

/**
 * Of a write of a policy's status. `conflict`: the policy has changed meanwhile; it is checked again. `gone`:
 * there is no such policy, or its definition has no status. `refused`: no right, or the API server finds it
 * invalid. `failed`: no answer, or a fault of the server.
 */
export type StatusOutcome = 'written' | 'conflict' | 'gone' | 'refused' | 'failed';

/** Of an event. `repeated`: another replica has written it. `dropped`: the queue was full. */
export type EventOutcome = 'sent' | 'repeated' | 'dropped' | 'failed';

/** For counting. Never throws. */
export interface StatusObserver {
  statusWritten(outcome: StatusOutcome): void;
  event(outcome: EventOutcome): void;
}

/** The writer, in managed fields and events. */
export const COMPONENT = 'blazar-enforcement';

/** The API version of policies. */
export const POLICY_API_VERSION = `${CLUSTER_GROUP}/v1alpha1`;
export const POLICY_KIND = 'SchedulingPolicy';
