import { describe, expect, it, vi } from 'vitest';
import { policyObject, toldPolicies } from './objects.ts';

const SOON = { timeout: 120_000, interval: 2 };
const ssd = { allowed: { nodeSelectors: { disk: ['ssd'] } } };
const hdd = { allowed: { nodeSelectors: { disk: ['hdd'] } } };
const BROKEN = { allowed: { colour: ['red'] } };

/** What is in force: the disks that each policy allows, or why it cannot be read. */
function inForce({ policies: { known } }: ReturnType<typeof toldPolicies>) {
  return Object.fromEntries([
    ...known.policies.map(({ name, allowed }) => [name, allowed.nodeSelectors?.disk]),
    ...known.invalid.map(({ name, message }) => [name, message]),
  ]) as Record<string, unknown>;
}

describe('policies of a cluster', () => {
  it('are known with the first list, whatever the API server adds to them', () => {
    const told = toldPolicies();
    expect(told.policies.following).toMatchObject({ hasList: false });
    told.list(policyObject('b', hdd), policyObject('a', ssd));
    expect(told.policies.following).toMatchObject({ hasList: true });
    expect(inForce(told)).toEqual({ a: ['ssd'], b: ['hdd'] });
    expect(told.policies.known.names).toEqual(['a', 'b']);
    expect(told.policies.known.policies[0]?.group).toBe('scheduling.blazar-enforcement');
    expect(told.logger.lines).toEqual([]);
  });

  it('are refused with unknown fields, beside the spec too', () => {
    const told = toldPolicies(
      policyObject('a', ssd, { rules: [] }),
      policyObject('b', BROKEN),
      policyObject('c', 'none'),
    );
    expect(inForce(told)).toEqual({
      a: expect.stringMatching(/^rules: unknown field/),
      b: expect.stringMatching(/^spec\.allowed\.colour: unknown field/),
      c: 'spec: expected a mapping, got "none"',
    });
    expect(told.policies.known.names).toEqual(['a', 'b', 'c']);
    expect([...told.policies.policies.values()]).toMatchObject([
      { name: 'a', mistake: expect.any(String), enforcedGeneration: undefined },
      { name: 'b', generation: 1 },
      { name: 'c' },
    ]);
  });

  it('follow what is added, changed and removed', async () => {
    const told = toldPolicies(policyObject('a', ssd));
    const heard = vi.fn();
    told.policies.onChange(heard);
    told.listener.changed(policyObject('b', ssd));
    told.listener.changed(policyObject('a', hdd, { generation: 2 }));
    await vi.waitFor(() => expect(inForce(told)).toEqual({ a: ['hdd'], b: ['ssd'] }), SOON);
    told.listener.removed(policyObject('b', ssd));
    await vi.waitFor(() => expect(inForce(told)).toEqual({ a: ['hdd'] }), SOON);
    expect(heard.mock.calls).toEqual([[['b', 'a']], [['b']]]);
    expect([...told.policies.policies.keys()]).toEqual(['a']);
  });

  it('are told to a listener until it leaves, and once to a function that listens twice', async () => {
    const told = toldPolicies(policyObject('a', ssd));
    const heard = vi.fn();
    const leave = told.policies.onChange(heard);
    const leaveToo = told.policies.onChange(heard);
    leave();
    leave();
    told.listener.changed(policyObject('b', ssd));
    await vi.waitFor(() => expect(heard.mock.calls).toEqual([[['b']]]), SOON);
    leaveToo();
    told.listener.changed(policyObject('c', ssd));
    await vi.waitFor(() => expect(told.policies.known.names).toEqual(['a', 'b', 'c']), SOON);
    expect(heard).toHaveBeenCalledTimes(1);
  });

  it('are read again if their content is another, even in a generation and a version that are known', async () => {
    const told = toldPolicies();
    const before = policyObject('a', ssd, { generation: 5 });
    told.list(before);
    // As etcd has it after it was restored from a backup, and the policy was changed since.
    told.list({ ...before, spec: hdd } as typeof before);
    expect(inForce(told)).toEqual({ a: ['hdd'] });
    told.listener.changed(policyObject('a', ssd, { generation: 5 }));
    await vi.waitFor(() => expect(inForce(told)).toEqual({ a: ['ssd'] }), SOON);
    const { known } = told.policies;
    told.listener.changed(policyObject('a', ssd, { generation: 5, status: { observedGeneration: 5 } }));
    await vi.waitFor(
      () => expect(told.policies.policies.get('a')?.status).toEqual({ observedGeneration: 5 }),
      SOON,
    );
    expect(told.policies.known).toBe(known);
  });

  it('that turn invalid keep their last good form, which is logged once', async () => {
    const told = toldPolicies(policyObject('a', ssd));
    const broken = policyObject('a', BROKEN, { generation: 2 });
    told.listener.changed(broken);
    await vi.waitFor(() => expect(told.logger.lines).toHaveLength(1), SOON);
    expect(inForce(told)).toEqual({ a: ['ssd'] });
    const invalid = { generation: 2, enforcedGeneration: 1, mistake: expect.stringContaining('colour') };
    expect(told.policies.policies.get('a')).toMatchObject(invalid);
    told.listener.changed(policyObject('a', BROKEN, { generation: 2, status: { observedGeneration: 2 } }));
    told.list(policyObject('a', BROKEN, { generation: 2 }));
    expect(inForce(told)).toEqual({ a: ['ssd'] });
    expect(told.policies.policies.get('a')).toMatchObject(invalid);
    expect(told.logger.lines).toMatchObject([
      { level: 'warn', fields: { policy: 'a', generation: 2, enforced_generation: 1 } },
    ]);
    told.listener.changed(policyObject('a', hdd, { generation: 3 }));
    await vi.waitFor(() => expect(inForce(told)).toEqual({ a: ['hdd'] }), SOON);
    expect(told.logger.lines.at(-1)).toMatchObject({
      level: 'info',
      message: expect.stringContaining('valid again'),
    });
  });

  it('keep the newest good form even if a bad one comes right after it', async () => {
    const told = toldPolicies(policyObject('a', ssd));
    told.listener.changed(policyObject('a', hdd, { generation: 2 }));
    told.listener.changed(policyObject('a', BROKEN, { generation: 3 }));
    await vi.waitFor(() => expect(inForce(told)).toEqual({ a: ['hdd'] }), SOON);
    expect(told.policies.policies.get('a')).toMatchObject({ generation: 3, enforcedGeneration: 2 });
  });

  it('keep no good form of another object that had the name', async () => {
    const told = toldPolicies(policyObject('a', ssd), policyObject('b', ssd), policyObject('c', ssd));
    told.listener.removed(policyObject('a', ssd));
    told.listener.changed(policyObject('a', BROKEN, { uid: 'another' }));
    told.listener.changed(policyObject('b', BROKEN, { uid: 'another' }));
    const gone = { a: expect.stringContaining('colour'), b: expect.stringContaining('colour') };
    await vi.waitFor(() => expect(inForce(told)).toEqual({ ...gone, c: ['ssd'] }), SOON);
    told.list(policyObject('c', BROKEN, { uid: 'another' }));
    expect(inForce(told)).toEqual({ c: expect.stringContaining('colour') });
    told.list(policyObject('c', ssd, { uid: '' }));
    told.list(policyObject('c', BROKEN, { uid: '', generation: 2 }));
    expect(inForce(told), 'which cannot be told').toEqual({ c: expect.stringContaining('colour') });
  });

  it('make one set of a thousand changes', async () => {
    const told = toldPolicies();
    told.list();
    const heard = vi.fn();
    told.policies.onChange(heard);
    for (let number = 0; number < 1000; number += 1) {
      told.listener.changed(policyObject('one', ssd, { generation: number + 1 }));
    }
    await vi.waitFor(() => expect(inForce(told)).toEqual({ one: ['ssd'] }), SOON);
    expect(heard).toHaveBeenCalledTimes(1);
    expect(told.policies.policies.get('one')).toMatchObject({ enforcedGeneration: 1000 });
  });

  it.each([
    ['a prototype', JSON.parse('{"required":{"nodeSelectors":{"__proto__":["a"]}}}'), /__proto__: this key/],
    ['a constructor', { allowed: { constructor: {} } }, /spec\.allowed\.constructor: unknown field/],
    ['no end', endless(), /^spec\..*: it is nested deeper than 100 levels$/],
    ['nothing', undefined, /spec: expected a mapping/],
  ])('with %s are invalid', (_, spec, message) => {
    const told = toldPolicies(policyObject('a', spec));
    expect(inForce(told)).toEqual({ a: expect.stringMatching(message) });
  });

  it('are logged in few lines when many are invalid', () => {
    const told = toldPolicies(
      ...Array.from({ length: 25 }, (_, number) => policyObject(`p${number}`, BROKEN)),
    );
    expect(told.logger.lines).toHaveLength(21);
    expect(told.logger.lines.at(-1)).toMatchObject({ fields: { policies: 5 } });
  });

  it('are kept though a listener fails', async () => {
    const told = toldPolicies();
    const heard = vi.fn();
    told.policies.onChange(() => {
      throw new Error('no room');
    });
    told.policies.onChange(heard);
    told.list(policyObject('a', ssd));
    expect(heard).toHaveBeenCalledWith(['a']);
    expect(told.logger.lines).toMatchObject([{ level: 'error', fields: { error: 'no room' } }]);
  });

  it('change no more once they are closed', async () => {
    const told = toldPolicies(policyObject('a', ssd));
    told.listener.changed(policyObject('a', hdd, { generation: 2 }));
    await told.policies.close();
    await new Promise((later) => setTimeout(later, 20));
    expect(inForce(told)).toEqual({ a: ['ssd'] });
  });
});

function endless(): unknown {
  let spec: unknown = {};
  for (let depth = 0; depth < 20_000; depth += 1) {
    spec = [spec];
  }
  return { allowed: { nodeSelectors: { disk: spec } } };
}
