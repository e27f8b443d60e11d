/** What an API server tells of scheduling policies, without one. */
import type { ApiObject } from '../../../../src/kubernetes/cluster/api/contract.ts';
import type { Following, ObjectListener } from '../../../../src/kubernetes/cluster/live/contract.ts';
import { WatchedPolicies } from '../../../../src/kubernetes/cluster/live/live-policies.ts';
import { recordingLogger } from '../../../support/logger.ts';

export const ssd = { allowed: { nodeSelectors: { disk: ['ssd'] } } };
export const hdd = { allowed: { nodeSelectors: { disk: ['hdd'] } } };

let version = 0;

/** As kubectl shows one, with what the API server adds. */
export function policyObject(
  name: string,
  spec: unknown,
  {
    generation = 1,
    uid = `uid of ${name}`,
    ...others
  }: Record<string, unknown> & { generation?: number; uid?: string } = {},
) {
  version += 1;
  return {
    apiVersion: 'scheduling.blazar-enforcement/v1alpha1',
    kind: 'SchedulingPolicy',
    metadata: {
      name,
      uid,
      generation,
      resourceVersion: String(version),
      creationTimestamp: '2026-11-22T14:00:00Z',
      selfLink: `/apis/${name}`,
      labels: { team: 'a' },
      annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}' },
      managedFields: [{ manager: 'kubectl', operation: 'Update', fieldsV1: { 'f:spec': {} } }],
    } as ApiObject['metadata'],
    spec,
    status: { conditions: [{ type: 'Accepted', status: 'True' }] },
    ...others,
  };
}

/**
 * Policies, and by hand what list and watch would tell them. `first`: what the first list has; nothing = there
 * was no list yet.
 */
export function watchedPolicies(...first: readonly ApiObject[]) {
  const logger = recordingLogger();
  const state: { -readonly [Name in keyof Following]: Following[Name] } = {
    hasList: false,
    currentAt: undefined,
    problem: undefined,
  };
  let heard: ObjectListener | undefined;
  const policies = new WatchedPolicies((_, listener) => {
    heard = listener;
    return { following: state, start: () => {}, close: async () => {} };
  }, logger);
  if (heard === undefined) {
    throw new Error('nobody listens');
  }
  const listener = heard;
  /** A list, as at the start. */
  const list = (...objects: readonly ApiObject[]) => {
    listener.replaced(objects);
    state.hasList = true;
    state.currentAt = performance.now();
  };
  if (first.length > 0) {
    list(...first);
  }
  return { policies, listener, logger, state, list };
}
