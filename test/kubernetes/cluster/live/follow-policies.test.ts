import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  followSchedulingPolicies,
  SourceUnavailableError,
  serviceAccount,
} from '../../../../src/kubernetes/index.ts';
import { startApiServerDouble } from '../../../support/api-server-double.ts';
import { recordingLogger } from '../../../support/logger.ts';

const GROUP = 'scheduling.blazar-enforcement';
const POLICIES = `/apis/${GROUP}/v1alpha1/schedulingpolicies`;
const ACCOUNT = serviceAccount('shop', 'web');
const SETTLED = { timeout: 120_000, interval: 20 };

async function followed() {
  const api = await startApiServerDouble();
  const store = (...disks: string[]) =>
    api.store.put(POLICIES, {
      apiVersion: `${GROUP}/v1alpha1`,
      kind: 'SchedulingPolicy',
      metadata: { name: 'disks' },
      spec: { allowed: { schedulerNames: [], nodeSelectors: { disk: disks } } },
    });
  store('ssd');
  api.review = ({ user, resourceAttributes = {} }) =>
    user === ACCOUNT.user && resourceAttributes.name === 'disks';
  const follow = async (staleAfter?: number) => {
    const policies = await followSchedulingPolicies({
      kubeconfig: api.kubeconfig(),
      logger: recordingLogger(),
      ...(staleAfter !== undefined && { staleAfter }),
    });
    onTestFinished(() => policies.close());
    const allows = async (disk: string, account = ACCOUNT) =>
      (await policies.effectiveFor(account)).review(
        { spec: { nodeSelector: { disk } } },
        { addDefaults: true },
      ).allowed;
    return { policies, allows };
  };
  return { api, store, follow };
}

describe('followSchedulingPolicies', () => {
  it('judges by the policies of the cluster, as they change, and by its rights', async () => {
    const { store, follow } = await followed();
    const { policies, allows } = await follow();
    expect(await policies.listed()).toBe(true);
    expect(policies.health.state).toBe('current');
    expect(await allows('ssd')).toBe(true);
    expect(await allows('tape')).toBe(false);
    expect(await allows('ssd', serviceAccount('shop', 'another'))).toBe(false);
    store('ssd', 'tape');
    await vi.waitFor(async () => expect(await allows('tape')).toBe(true), SETTLED);
  });

  it('admits nothing after staleAfter seconds, and where the API server does not say who may use a policy', async () => {
    const { api, follow } = await followed();
    const stale = await follow(0);
    expect(await stale.policies.listed()).toBe(true);
    await expect(stale.allows('ssd')).rejects.toThrow(SourceUnavailableError);
    api.fault = ({ path }) => (path.endsWith('reviews') ? { status: 500 } : undefined);
    const { policies, allows } = await follow();
    expect(await policies.listed()).toBe(true);
    await expect(allows('ssd')).rejects.toThrow(SourceUnavailableError);
  });

  it('ends with close, also who waits', async () => {
    const { api, follow } = await followed();
    api.freeze();
    const { policies } = await follow();
    const listed = policies.listed(60);
    await policies.close();
    expect(await listed).toBe(false);
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY, -1])('refuses %s as staleAfter', async (staleAfter) => {
    await expect(followSchedulingPolicies({ staleAfter })).rejects.toThrow(RangeError);
  });
});
