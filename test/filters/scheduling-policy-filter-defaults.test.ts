import { describe, expect, it } from 'vitest';
import { parseResourceProperties } from '../../src/index.ts';
import { ALLOWED, rejectedWith } from '../support/decisions.ts';
import { createPhysicalHost, deepFreeze } from '../support/requests.ts';
import { runService } from '../support/running-service.ts';
import {
  demanding,
  equals,
  filterFor,
  leaseOf,
  policiesForAll,
  propertiesOf,
  REJECTED,
} from './lease-policies.ts';

/** Requires a node type, allows any rack, and adds skylake by default. */
const TYPE = {
  type: {
    required: { nodeSelectors: { node_type: ['skylake', 'haswell'] } },
    allowed: { nodeSelectors: { rack: [] } },
    default: { nodeSelector: { node_type: 'skylake' } },
  },
};

const BOTH = {
  both: { allowed: { nodeSelectors: {} }, default: { nodeSelector: { node_type: 'skylake', gpu: 'False' } } },
};

describe('SchedulingPolicyFilter adds defaults', () => {
  it('to a reservation without properties', async () => {
    const enforcement = await filterFor(TYPE);
    for (const nothing of ['', '[]', null, undefined]) {
      const decision = await enforcement.checkCreate(demanding(nothing));
      expect(decision).toMatchObject({ allowed: true, changed: true, message: null });
      expect(propertiesOf(decision)).toEqual(['["==","$node_type","skylake"]']);
    }
  });

  it('after the properties of the reservation, which stay unchanged', async () => {
    const enforcement = await filterFor(BOTH);
    const decision = await enforcement.checkCreate(
      demanding('["and", ["!=", "$rack", "1"], ["=", "$gpu", "True"]]', '[">=", "$vcpus", "16"]'),
    );
    expect(propertiesOf(decision)).toEqual([
      '["and",["!=","$rack","1"],["==","$gpu","True"],["==","$node_type","skylake"]]',
    ]);
    expect(decision.lease.reservations?.[0]).toMatchObject({
      hypervisor_properties: '[">=", "$vcpus", "16"]',
      min: 1,
      max: 2,
    });
  });

  it('and changes nothing else, and not the request itself', async () => {
    const enforcement = await filterFor(TYPE);
    const request = deepFreeze(
      leaseOf({ resource_properties: '' }, { resource_properties: equals('rack', '1') }),
    );
    const { lease } = await enforcement.checkCreate(request);
    const [first, second] = request.lease.reservations ?? [];
    expect(lease).toEqual({
      ...request.lease,
      reservations: [
        { ...first, resource_properties: '["==","$node_type","skylake"]' },
        { ...second, resource_properties: '["and",["==","$rack","1"],["==","$node_type","skylake"]]' },
      ],
    });
  });

  it('only to the reservations that lack them', async () => {
    const enforcement = await filterFor(TYPE);
    const named = '["==", "$node_type", "haswell"]';
    const decision = await enforcement.checkCreate(
      leaseOf(
        { resource_properties: named },
        { resource_properties: '', hypervisor_properties: named },
        { resource_type: 'virtual:floatingip', resource_properties: '' },
        { resource_properties: '' },
      ),
    );
    expect(propertiesOf(decision)).toEqual([named, '', '', '["==","$node_type","skylake"]']);
  });

  it('not if the property is compared with another operator', async () => {
    const enforcement = await filterFor(BOTH);
    const decision = await enforcement.checkCreate(demanding('["!=", "$node_type", "haswell"]'));
    expect(propertiesOf(decision)).toEqual(['["and",["!=","$node_type","haswell"],["==","$gpu","False"]]']);
  });

  it('once: it allows the changed lease without another change', async () => {
    const enforcement = await filterFor(BOTH);
    const { context, lease } = leaseOf(
      { resource_properties: '' },
      { resource_properties: equals('a', 'b') },
    );
    const first = await enforcement.checkCreate({ context, lease });
    expect(first.changed).toBe(true);
    const second = await enforcement.checkCreate({ context, lease: first.lease });
    expect(second).toMatchObject({ allowed: true, changed: false });
    expect(second.lease).toEqual(first.lease);
  });

  it('not to a lease that is refused for another reason', async () => {
    const enforcement = await filterFor(TYPE);
    const request = leaseOf({ resource_properties: '' }, { resource_properties: equals('zone', 'a') });
    expect(await enforcement.checkCreate(request)).toMatchObject({
      allowed: false,
      lease: request.lease,
      message: expect.stringMatching(
        new RegExp(`^${REJECTED}reservations\\[1\\]\\.resource_properties zone: expected nothing, got "a"; `),
      ),
    });
  });

  it('that are allowed when the lease contains them itself', async () => {
    const enforcement = await filterFor({ d: { default: { nodeSelector: { gpu: 'False' } } } });
    expect(propertiesOf(await enforcement.checkCreate(demanding('')))).toEqual([equals('gpu', 'False')]);
    expect(await enforcement.checkCreate(demanding(equals('gpu', 'False')))).toMatchObject(ALLOWED);
    expect(await enforcement.checkCreate(demanding(equals('gpu', 'True')))).toMatchObject({ allowed: false });
  });

  it('with characters that JSON escapes, as Blazar reads them', async () => {
    const specs = { d: { default: { nodeSelector: { 'a/b"c\\': ' "x" \\ é\n' } } } };
    const decision = await (await filterFor(specs)).checkCreate(demanding(''));
    expect(propertiesOf(decision).map(parseResourceProperties)).toEqual([
      [{ name: 'a/b"c\\', operator: '==', value: ' "x" \\ é\n' }],
    ]);
  });
});

describe('SchedulingPolicyFilter, called by a caller that cannot use a changed lease', () => {
  it('refuses, and names the text to set and the place', async () => {
    const enforcement = await filterFor(TYPE);
    const request = leaseOf(
      { resource_properties: equals('node_type', 'haswell') },
      { resource_properties: equals('rack', '1') },
    );
    expect(await enforcement.checkCreate(request, { acceptsChanges: false })).toMatchObject({
      ...rejectedWith(
        `The lease would be allowed with other values: reservations/1/resource_properties = ${JSON.stringify('["and",["==","$rack","1"],["==","$node_type","skylake"]]')}.`,
      ),
      changed: false,
      filter: 'SchedulingPolicyFilter',
    });
  });

  it('refuses over HTTP for Blazar, and allows the lease once that text is set', async () => {
    const { post } = await runService({
      enforcement: {
        enabled_filters: ['SchedulingPolicyFilter'],
        scheduling_policy_path: policiesForAll(TYPE),
      },
    });
    const answer = await post('/check-create', demanding(''));
    expect(answer.status).toBe(403);
    const { message } = answer.json as { message: string };
    const [, place, text = ''] =
      /^The lease would be allowed with other values: (\S+) = (".+")\.$/.exec(message) ?? [];
    expect(place).toBe('reservations/0/resource_properties');
    const properties: unknown = JSON.parse(text);
    expect((await post('/check-create', demanding(properties))).status).toBe(204);
    expect((await post('/check-create', createPhysicalHost())).status).toBe(403);
  });
});
