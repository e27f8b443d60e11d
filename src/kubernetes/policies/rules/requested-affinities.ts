/** The affinities of a pod by place, such as `nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution`. */

import { AFFINITY_TIMES } from '../documents/policy-schema.ts';
import type { Affinity, Expression, NodeSelectorTerm } from '../pod.ts';

const [REQUIRED, PREFERRED] = AFFINITY_TIMES;

/** The kinds, as pods and as policies spell them. */
export const KINDS = {
  nodeAffinity: 'nodeAffinities',
  podAffinity: 'podAffinities',
  podAntiAffinity: 'podAntiAffinities',
} as const;

export type Kind = keyof typeof KINDS;

/** What a pod requests at one place. */
export interface RequestedAffinity {
  readonly place: string;
  readonly terms: readonly unknown[];
}

/** Omits what the pod does not set. Includes unknown kinds and times. */
export function requestedAffinities(affinity: Affinity): RequestedAffinity[] {
  return Object.entries(affinity).flatMap(([kind, times]: [string, unknown]) => {
    if (typeof times !== 'object') {
      return times === undefined ? [] : [{ place: kind, terms: [times] }];
    }
    return Object.entries(times ?? {}).flatMap(([time, value]) => {
      const terms = termsOf(kind, time, value);
      return terms.length === 0 ? [] : [{ place: `${kind}.${time}`, terms }];
    });
  });
}

function termsOf(kind: string, time: string, value: unknown): readonly unknown[] {
  if (value === undefined || value === null) {
    return [];
  }
  if (kind === 'nodeAffinity' && time === REQUIRED) {
    return (value as { nodeSelectorTerms?: NodeSelectorTerm[] | null }).nodeSelectorTerms ?? [];
  }
  if (kind === 'nodeAffinity' && time === PREFERRED) {
    return (value as { preference: NodeSelectorTerm }[]).map(({ preference }) => preference);
  }
  return Array.isArray(value) ? value : [value];
}

/** The node field that holds its name. */
export const NODE_NAME = 'metadata.name';

/** The expression that the DaemonSet controller writes. */
export function isNodeName({ key, operator, values }: Expression): boolean {
  return key === NODE_NAME && operator === 'In' && values?.length === 1;
}
