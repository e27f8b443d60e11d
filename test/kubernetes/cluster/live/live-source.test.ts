import { describe, expect, it } from 'vitest';
import type { UsePermissions } from '../../../../src/kubernetes/cluster/live/contract.ts';
import {
  ClusterSource,
  type ClusterSourceOptions,
} from '../../../../src/kubernetes/cluster/live/live-source.ts';
import { type AccountPolicies, serviceAccount } from '../../../../src/kubernetes/policies/access.ts';
import { hdd, policyObject, ssd, watchedPolicies } from './objects.ts';

const LIN = serviceAccount('shop', 'lin');

function source(usable: UsePermissions['usable'], options: Partial<ClusterSourceOptions> = {}) {
  const watched = watchedPolicies();
  const clock = { now: 0 };
  const made = new ClusterSource({
    policies: watched.policies,
    permissions: { usable },
    staleAfter: 10,
    now: () => clock.now,
    ...options,
  });
  const list = (...objects: readonly ReturnType<typeof policyObject>[]) => {
    watched.listener.replaced(objects);
    watched.state.hasList = true;
    watched.state.currentAt = clock.now;
  };
  return { source: made, watched, clock, list };
}

const everything: UsePermissions['usable'] = (_, names) => names;
const named = (answer: AccountPolicies | Promise<AccountPolicies>) =>
  Promise.resolve(answer).then(({ names }) => names);

describe('a source in a cluster', () => {
  it('refuses before the first list, and says why', async () => {
    const { source: live, watched, list } = source(everything);
    expect(live.health).toEqual({ state: 'starting', ageSeconds: undefined, problem: undefined });
    watched.state.problem = 'https://127.0.0.1:1 cannot be reached';
    await expect(live.policiesOf(LIN)).rejects.toMatchObject({
      name: 'SourceUnavailableError',
      message: 'the policies of the cluster are not known yet: https://127.0.0.1:1 cannot be reached',
    });
    watched.state.problem = undefined;
    list(policyObject('a', ssd));
    expect(await named(live.policiesOf(LIN))).toEqual(['a']);
    expect(live.health).toEqual({ state: 'current', ageSeconds: 0, problem: undefined });
  });

  it('goes on with what it knows until that is too old', async () => {
    const { source: live, watched, clock, list } = source(everything);
    list(policyObject('a', ssd));
    watched.state.problem = 'the watch has ended';
    clock.now = 9000;
    expect(live.health).toEqual({ state: 'behind', ageSeconds: 9, problem: 'the watch has ended' });
    expect(await named(live.policiesOf(LIN))).toEqual(['a']);
    clock.now = 10_001;
    expect(live.health).toMatchObject({ state: 'stale' });
    await expect(live.policiesOf(LIN)).rejects.toThrow('10 s old: the watch has ended');
    watched.state.problem = undefined;
    expect(live.health, 'though nothing was noticed').toMatchObject({
      state: 'stale',
      problem: expect.any(String),
    });
    watched.state.currentAt = clock.now;
    expect(await named(live.policiesOf(LIN))).toEqual(['a']);
  });

  it('answers at once, with the same object until rights or policies change', () => {
    let usable: readonly string[] = ['a'];
    const { source: live, list } = source(() => usable);
    list(policyObject('a', ssd), policyObject('b', ssd));
    const first = live.policiesOf(LIN);
    expect(first).not.toBeInstanceOf(Promise);
    expect(live.policiesOf(LIN)).toBe(first);
    usable = ['a', 'b'];
    const second = live.policiesOf(LIN) as AccountPolicies;
    expect(second.names).toEqual(['a', 'b']);
    list(policyObject('a', hdd, { generation: 2 }), policyObject('b', ssd));
    const third = live.policiesOf(LIN) as AccountPolicies;
    expect(third).not.toBe(second);
    expect(third.all.policies).toEqual(['a', 'b']);
  });

  it('refuses the accounts that may use a policy nobody can read', async () => {
    const { source: live, list } = source((_, names) => names);
    list(policyObject('a', { allowed: { colour: [] } }), policyObject('b', ssd));
    const { all, names } = await live.policiesOf(LIN);
    expect(names).toEqual(['a', 'b']);
    expect(all.conflicts).toMatchObject([
      { policies: ['a'], expectation: expect.stringContaining('colour') },
    ]);
    expect(all.review({ spec: { nodeSelector: { disk: 'ssd' } } }, { addDefaults: true }).allowed).toBe(
      false,
    );
  });

  it('asks again about policies that came while it asked', async () => {
    const asked: (readonly string[])[] = [];
    const { source: live, list } = source(async (_, names) => {
      asked.push(names);
      if (asked.length === 1) {
        list(policyObject('a', hdd, { generation: 2 }), policyObject('b', ssd));
      }
      return names;
    });
    list(policyObject('a', ssd));
    const { names, all } = await live.policiesOf(LIN);
    expect(asked).toEqual([['a'], ['a', 'b']]);
    expect(names).toEqual(['a', 'b']);
    expect(all.policies).toEqual(['a', 'b']);
  });

  it('does not ask again about policies that went while it asked', async () => {
    let count = 0;
    const { source: live, list } = source(async (_, names) => {
      count += 1;
      list(policyObject('a', hdd, { generation: 2 }));
      return names;
    });
    list(policyObject('a', ssd), policyObject('b', ssd));
    const { all } = await live.policiesOf(LIN);
    expect(all.policies).toEqual(['a']);
    expect(count).toBe(1);
  });

  it('refuses if it became too old, or policies keep coming, while it asked', async () => {
    const late = source(async (_, names) => {
      late.clock.now = 20_000;
      return names;
    });
    late.list(policyObject('a', ssd));
    await expect(late.source.policiesOf(LIN)).rejects.toThrow('20 s old');
    let count = 0;
    const busy = source(async (_, names) => {
      count += 1;
      busy.list(policyObject(`p${count}`, ssd));
      return names;
    });
    busy.list(policyObject('a', ssd));
    await expect(busy.source.policiesOf(LIN)).rejects.toMatchObject({ name: 'SourceUnavailableError' });
  });
});
