/** The status that a policy has, as somebody has written it, and what must be written to make it ours. */
import { z } from 'zod';
import type { LivePolicy } from '../live/contract.ts';
import { POLICIES_PATH } from '../live/live-policies.ts';
import type { Condition } from './conditions.ts';
import { COMPONENT, POLICY_API_VERSION, POLICY_KIND } from './contract.ts';

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

/** Of those with one of our types. Never fails: what is not a condition is not there. */
function writtenConditions(status: unknown): ReadonlyMap<string, WrittenCondition> {
  const { conditions = [] } = statusSchema.safeParse(status).data ?? {};
  const parsed = conditions.flatMap((condition) => conditionSchema.safeParse(condition).data ?? []);
  return new Map(parsed.map((condition) => [condition.type, condition]));
}

/** The condition of a type in a written status. */
export function writtenCondition(status: unknown, type: string): WrittenCondition | undefined {
  return writtenConditions(status).get(type);
}

/** Whether a policy's status says already what it should. Conditions of others are theirs. */
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
 * A PATCH by server-side apply: the API server merges conditions by type, so that those of others stay. `resourceVersion` makes it refuse
 * what was decided about an earlier state, also by a replica that was frozen since and is no longer the leader.
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
