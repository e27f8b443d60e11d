import { describe, expect, it, vi } from 'vitest';
import { hdd, policyObject, ssd, watchedPolicies } from './objects.ts';

const SOON = { timeout: 120_000, interval: 2 };
const BROKEN = { allowed: { colour: ['red'] } };

/** What is in force: the disks that each policy allows, or why it cannot be read. */
function inForce({ policies: { known } }: ReturnType<typeof watchedPolicies>) {
  return Object.fromEntries([
    ...known.policies.map(({ name, allowed }) => [name, allowed.nodeSelectors?.disk]),
    ...known.invalid.map(({ name, message }) => [name, message]),
  ]) as Record<string, unknown>;
}

describe('policies of a cluster', () => {
  it('are known with the first list, whatever the API server adds to them', () => {
    const watched = watchedPolicies();
    expect(watched.policies.following).toMatchObject({ hasList: false });
    watched.list(policyObject('b', hdd), policyObject('a', ssd));
    expect(watched.policies.following).toMatchObject({ hasList: true });
    expect(inForce(watched)).toEqual({ a: ['ssd'], b: ['hdd'] });
    expect(watched.policies.known.names).toEqual(['a', 'b']);
    expect(watched.policies.known.policies[0]?.group).toBe('scheduling.blazar-enforcement');
    expect(watched.logger.lines).toEqual([]);
  });

  it('are refused with unknown fields, beside the spec too', () => {
    const watched = watchedPolicies(
      policyObject('a', ssd, { rules: [] }),
      policyObject('b', BROKEN),
      policyObject('c', 'none'),
    );
    expect(inForce(watched)).toEqual({
      a: expect.stringMatching(/^rules: unknown field/),
      b: expect.stringMatching(/^spec\.allowed\.colour: unknown field/),
      c: 'spec: expected a mapping, got "none"',
    });
    expect(watched.policies.known.names).toEqual(['a', 'b', 'c']);
    expect([...watched.policies.policies.values()]).toMatchObject([
      { name: 'a', mistake: expect.any(String), enforcedGeneration: undefined },
      { name: 'b', generation: 1 },
      { name: 'c' },
    ]);
  });

  it('follow what is added, changed and removed', async () => {
    const watched = watchedPolicies(policyObject('a', ssd));
    const heard = vi.fn();
    watched.policies.onChange(heard);
    watched.listener.changed(policyObject('b', ssd));
    watched.listener.changed(policyObject('a', hdd, { generation: 2 }));
    await vi.waitFor(() => expect(inForce(watched)).toEqual({ a: ['hdd'], b: ['ssd'] }), SOON);
    watched.listener.removed(policyObject('b', ssd));
    await vi.waitFor(() => expect(inForce(watched)).toEqual({ a: ['hdd'] }), SOON);
    expect(heard.mock.calls).toEqual([[['b', 'a']], [['b']]]);
    expect([...watched.policies.policies.keys()]).toEqual(['a']);
  });

  it('reach a listener until it leaves, and once to a function that listens twice', async () => {
    const watched = watchedPolicies(policyObject('a', ssd));
    const heard = vi.fn();
    const leave = watched.policies.onChange(heard);
    const leaveToo = watched.policies.onChange(heard);
    leave();
    leave();
    watched.listener.changed(policyObject('b', ssd));
    await vi.waitFor(() => expect(heard.mock.calls).toEqual([[['b']]]), SOON);
    leaveToo();
    watched.listener.changed(policyObject('c', ssd));
    await vi.waitFor(() => expect(watched.policies.known.names).toEqual(['a', 'b', 'c']), SOON);
    expect(heard).toHaveBeenCalledTimes(1);
  });

  it('are read again if their content is another, even in a generation and a version that are known', async () => {
    const watched = watchedPolicies();
    const before = policyObject('a', ssd, { generation: 5 });
    watched.list(before);
    // As etcd has it after it was restored from a backup, and the policy was changed since.
    watched.list({ ...before, spec: hdd } as typeof before);
    expect(inForce(watched)).toEqual({ a: ['hdd'] });
    watched.listener.changed(policyObject('a', ssd, { generation: 5 }));
    await vi.waitFor(() => expect(inForce(watched)).toEqual({ a: ['ssd'] }), SOON);
    const { known } = watched.policies;
    watched.listener.changed(policyObject('a', ssd, { generation: 5, status: { observedGeneration: 5 } }));
    await vi.waitFor(
      () => expect(watched.policies.policies.get('a')?.status).toEqual({ observedGeneration: 5 }),
      SOON,
    );
    expect(watched.policies.known).toBe(known);
  });

  it('that turn invalid keep their last good form, which is logged once', async () => {
    const watched = watchedPolicies(policyObject('a', ssd));
    const broken = policyObject('a', BROKEN, { generation: 2 });
    watched.listener.changed(broken);
    await vi.waitFor(() => expect(watched.logger.lines).toHaveLength(1), SOON);
    expect(inForce(watched)).toEqual({ a: ['ssd'] });
    const invalid = { generation: 2, enforcedGeneration: 1, mistake: expect.stringContaining('colour') };
    expect(watched.policies.policies.get('a')).toMatchObject(invalid);
    watched.listener.changed(policyObject('a', BROKEN, { generation: 2, status: { observedGeneration: 2 } }));
    watched.list(policyObject('a', BROKEN, { generation: 2 }));
    expect(inForce(watched)).toEqual({ a: ['ssd'] });
    expect(watched.policies.policies.get('a')).toMatchObject(invalid);
    expect(watched.logger.lines).toMatchObject([
      { level: 'warn', fields: { policy: 'a', generation: 2, enforced_generation: 1 } },
    ]);
    watched.listener.changed(policyObject('a', hdd, { generation: 3 }));
    await vi.waitFor(() => expect(inForce(watched)).toEqual({ a: ['hdd'] }), SOON);
    expect(watched.logger.lines.at(-1)).toMatchObject({
      level: 'info',
      message: expect.stringContaining('valid again'),
    });
  });

  it('keep the newest good form even if a bad one comes right after it', async () => {
    const watched = watchedPolicies(policyObject('a', ssd));
    watched.listener.changed(policyObject('a', hdd, { generation: 2 }));
    watched.listener.changed(policyObject('a', BROKEN, { generation: 3 }));
    await vi.waitFor(() => expect(inForce(watched)).toEqual({ a: ['hdd'] }), SOON);
    expect(watched.policies.policies.get('a')).toMatchObject({ generation: 3, enforcedGeneration: 2 });
  });

  it('keep no good form of another object that had the name', async () => {
    const watched = watchedPolicies(policyObject('a', ssd), policyObject('b', ssd), policyObject('c', ssd));
    watched.listener.removed(policyObject('a', ssd));
    watched.listener.changed(policyObject('a', BROKEN, { uid: 'another' }));
    watched.listener.changed(policyObject('b', BROKEN, { uid: 'another' }));
    const gone = { a: expect.stringContaining('colour'), b: expect.stringContaining('colour') };
    await vi.waitFor(() => expect(inForce(watched)).toEqual({ ...gone, c: ['ssd'] }), SOON);
    watched.list(policyObject('c', BROKEN, { uid: 'another' }));
    expect(inForce(watched)).toEqual({ c: expect.stringContaining('colour') });
    watched.list(policyObject('c', ssd, { uid: '' }));
    watched.list(policyObject('c', BROKEN, { uid: '', generation: 2 }));
    expect(inForce(watched), 'of which the older cannot be seen').toEqual({
      c: expect.stringContaining('colour'),
    });
  });

  it('make one set of a thousand changes', async () => {
    const watched = watchedPolicies();
    watched.list();
    const heard = vi.fn();
    watched.policies.onChange(heard);
    for (let number = 0; number < 1000; number += 1) {
      watched.listener.changed(policyObject('one', ssd, { generation: number + 1 }));
    }
    await vi.waitFor(() => expect(inForce(watched)).toEqual({ one: ['ssd'] }), SOON);
    expect(heard).toHaveBeenCalledTimes(1);
    expect(watched.policies.policies.get('one')).toMatchObject({ enforcedGeneration: 1000 });
  });

  it.each([
    ['a prototype', JSON.parse('{"required":{"nodeSelectors":{"__proto__":["a"]}}}'), /__proto__: this key/],
    ['a constructor', { allowed: { constructor: {} } }, /spec\.allowed\.constructor: unknown field/],
    ['no end', endless(), /^spec\..*: it is nested deeper than 100 levels$/],
    ['nothing', undefined, /spec: expected a mapping/],
  ])('with %s are invalid', (_, spec, message) => {
    const watched = watchedPolicies(policyObject('a', spec));
    expect(inForce(watched)).toEqual({ a: expect.stringMatching(message) });
  });

  it('are logged in few lines when many are invalid', () => {
    const watched = watchedPolicies(
      ...Array.from({ length: 25 }, (_, number) => policyObject(`p${number}`, BROKEN)),
    );
    expect(watched.logger.lines).toHaveLength(21);
    expect(watched.logger.lines.at(-1)).toMatchObject({ fields: { policies: 5 } });
  });

  it('are kept though a listener fails', async () => {
    const watched = watchedPolicies();
    const heard = vi.fn();
    watched.policies.onChange(() => {
      throw new Error('no room');
    });
    watched.policies.onChange(heard);
    watched.list(policyObject('a', ssd));
    expect(heard).toHaveBeenCalledWith(['a']);
    expect(watched.logger.lines).toMatchObject([{ level: 'error', fields: { error: 'no room' } }]);
  });

  it('change no more once they are closed', async () => {
    const watched = watchedPolicies(policyObject('a', ssd));
    watched.listener.changed(policyObject('a', hdd, { generation: 2 }));
    await watched.policies.close();
    await new Promise((later) => setTimeout(later, 20));
    expect(inForce(watched)).toEqual({ a: ['ssd'] });
  });
});

function endless(): unknown {
  let spec: unknown = {};
  for (let depth = 0; depth < 20_000; depth += 1) {
    spec = [spec];
  }
  return { allowed: { nodeSelectors: { disk: spec } } };
}
