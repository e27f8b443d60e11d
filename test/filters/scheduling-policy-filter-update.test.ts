import { describe, expect, it } from 'vitest';
import type { Lease, Reservation } from '../../src/index.ts';
import { updateExtend } from '../support/requests.ts';
import { equals, filterFor } from './lease-policies.ts';

const TYPE = {
  type: {
    required: { nodeSelectors: { node_type: ['compute_cascadelake_r', 'skylake'] } },
    allowed: { nodeSelectors: { rack: ['1'] } },
    default: { nodeSelector: { node_type: 'skylake' } },
  },
};

const CAPTURED = updateExtend().currentLease.reservations?.[0] ?? {};

/** The decision on an update of a lease from the reservations `current` to `wanted`. */
async function update(
  current: readonly Reservation[] | null | undefined,
  wanted: Lease['reservations'] | null,
  specs: Record<string, object> = TYPE,
) {
  const { context, currentLease, lease } = updateExtend();
  const enforcement = await filterFor(specs);
  const change = {
    context,
    currentLease: { ...currentLease, reservations: current } as Lease,
    lease: { ...lease, reservations: wanted } as Lease,
  };
  const decision = await enforcement.checkUpdate(change, { dryRun: true });
  expect(decision).toMatchObject({ failed: false, changed: false });
  return decision.message;
}

const REFUSED = 'The lease would not fit the scheduling policies: ';

describe('SchedulingPolicyFilter at an update', () => {
  it('allows the captured extension without changing it', async () => {
    const enforcement = await filterFor(TYPE);
    expect(await enforcement.checkUpdate(updateExtend())).toMatchObject({
      allowed: true,
      changed: false,
      lease: updateExtend().lease,
    });
  });

  it('refuses properties that are not allowed, and names the place and the policy', async () => {
    const wanted = [{ ...CAPTURED, resource_properties: equals('node_type', 'gpu_v100') }];
    expect(await update([CAPTURED], wanted)).toBe(
      `${REFUSED}reservations[0].resource_properties node_type: expected compute_cascadelake_r or skylake, got "gpu_v100" (scheduling policy type).`,
    );
    const unreadable = [{ ...CAPTURED, hypervisor_properties: '["==", ' }];
    expect(await update([CAPTURED], unreadable)).toContain(
      'reservations[0].hypervisor_properties: expected a list',
    );
  });

  it('takes missing fields of a reservation from the current one with the same id', async () => {
    const { id } = CAPTURED;
    expect(await update([CAPTURED], [{ id, max: 3 }])).toBeNull();
    expect(await update([CAPTURED], [{ id, max: 3, hypervisor_properties: equals('rack', '1') }])).toBeNull();
    const wrong = { ...CAPTURED, resource_properties: equals('node_type', 'gpu_v100') };
    expect(await update([wrong], [{ id, max: 3 }])).toContain('got "gpu_v100"');
    expect(await update([wrong], [{ id, resource_properties: equals('node_type', 'skylake') }])).toBeNull();
  });

  it('finds the current reservation by its id, not by its position', async () => {
    const a = { ...CAPTURED, id: 'a' };
    const b = { ...CAPTURED, id: 'b', resource_properties: equals('node_type', 'gpu_v100') };
    const c = { ...CAPTURED, id: 'c', resource_type: 'virtual:floatingip', resource_properties: undefined };
    expect(await update([b, a, c], [{ id: 'a' }, { id: 'c' }, { id: 'b' }])).toContain('reservations[2]');
    expect(
      await update([a, b], [{ id: 'b', resource_properties: equals('node_type', 'skylake') }, { id: 'a' }]),
    ).toBeNull();
  });

  it('finds no current reservation without an id, or with an unknown id', async () => {
    const { id: _, ...nameless } = CAPTURED;
    const { resource_type = '' } = CAPTURED;
    for (const added of [
      { resource_type, max: 1 },
      { id: 'new', resource_type, max: 1 },
    ]) {
      expect(await update([nameless], [CAPTURED, added])).toBe(
        `${REFUSED}reservations[1].resource_properties node_type: expected compute_cascadelake_r or skylake, got nothing (scheduling policy type).`,
      );
    }
  });

  it.for([undefined, null])('checks the current reservations if the update has %j', async (none) => {
    expect(await update([CAPTURED], none)).toBeNull();
    const wrong = { ...CAPTURED, resource_properties: equals('node_type', 'gpu_v100') };
    expect(await update([wrong], none)).toContain('reservations[0].resource_properties node_type: ');
    expect(await update(none, none)).toBeNull();
  });

  it('also checks current reservations that the update leaves out', async () => {
    const other = { ...CAPTURED, id: 'other', resource_properties: equals('node_type', 'gpu_v100') };
    expect(await update([other, CAPTURED], [CAPTURED])).toContain('got "gpu_v100"');
  });

  it('adds no default: a reservation without a required property is refused', async () => {
    const wanted = [{ ...CAPTURED, resource_properties: '' }];
    expect(await update([CAPTURED], wanted)).toContain(
      'node_type: expected compute_cascadelake_r or skylake, got',
    );
    const optional = { d: { default: { nodeSelector: { rack: '1' } }, allowed: { nodeSelectors: {} } } };
    expect(await update([CAPTURED], wanted, optional)).toBeNull();
  });

  it('does not check a reservation of an address', async () => {
    const address = { id: 'ip', resource_type: 'virtual:floatingip', resource_properties: 'no JSON' };
    expect(await update([CAPTURED, address], [CAPTURED, { id: 'ip', amount: 2 }])).toBeNull();
  });

  it('accepts every end', async () => {
    const enforcement = await filterFor({ none: { required: { nodeSelectors: { x: [] } } } });
    const { context, currentLease } = updateExtend();
    expect(await enforcement.onEnd({ context, lease: currentLease })).toMatchObject({
      failed: false,
      warnings: [],
    });
  });
});
