/** A Nova flavor determines the machines, and Blazar sends only its id: the filter cannot check what it selects. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { CreateRequest } from '../../src/index.ts';
import { EffectivePolicy } from '../../src/kubernetes/policies/effective-policy.ts';
import { schedulingPolicy } from '../peers/cluster-objects.ts';
import { ALLOWED, rejectedWith } from '../support/decisions.ts';
import { temporaryFile } from '../support/files.ts';
import { updateExtend } from '../support/requests.ts';
import {
  asYaml,
  equals,
  filterFor,
  grantDocuments,
  leaseOf,
  loadFilter,
  policiesForAll,
  REJECTED,
} from './lease-policies.ts';

/** What Blazar stores in `resource_properties` once the lease exists. */
const FLAVOR = JSON.stringify({ id: 'f1', vcpus: 4, extra_specs: { 'trait:CUSTOM_GPU': 'required' } });
const REASON =
  'reservations[0].flavor_id: expected a reservation of another type than flavor:instance, since the nodes that a flavor selects cannot be judged';

const ofFlavor = (resource_properties: unknown): CreateRequest =>
  leaseOf({
    resource_type: 'flavor:instance',
    flavor_id: '0f3d2c1b-77aa-4f0e-9d59-2b8b1b5b6a11',
    amount: 2,
    affinity: null,
    resource_properties,
    hypervisor_properties: undefined,
  });

const NODE_TYPES = { required: { nodeSelectors: { node_type: ['small'] } } };
const RULES: readonly (readonly [string, Readonly<Record<string, object>>])[] = [
  ['requires a label', { p: NODE_TYPES }],
  ['allows some labels', { p: { allowed: { nodeSelectors: { node_type: ['small'] } } } }],
  ['allows all and requires one', { p: { ...NODE_TYPES, allowed: { nodeSelectors: {} } } }],
  [
    'allows all and adds a default',
    { p: { allowed: { nodeSelectors: {} }, default: { nodeSelector: { node_type: 'small' } } } },
  ],
  ['says nothing', { p: {} }],
];

describe('a reservation of flavor:instance', () => {
  it.each(RULES)('is refused by a policy that %s, whatever its properties', async (_name, specs) => {
    const chain = await filterFor(specs);
    for (const properties of [undefined, '', equals('node_type', 'small'), FLAVOR]) {
      const decision = await chain.checkCreate(ofFlavor(properties));
      expect(decision).toMatchObject({ allowed: false, failed: false, message: `${REJECTED}${REASON}.` });
    }
  });

  it('is one of at most ten reasons, and no further reservation is reviewed', async () => {
    const reviews = vi.spyOn(EffectivePolicy.prototype, 'reviewNodeSelectors');
    onTestFinished(() => reviews.mockRestore());
    const request = ofFlavor('');
    const reservations = Array.from({ length: 40 }, () => request.lease.reservations?.[0] ?? {});
    const chain = await filterFor({ p: NODE_TYPES });
    const { message } = await chain.checkCreate({ ...request, lease: { ...request.lease, reservations } });
    expect(message?.split('flavor_id')).toHaveLength(11);
    expect(message).toMatch(/; and more\.$/);
    expect(reviews).toHaveBeenCalledTimes(11);
  });

  it('is refused if the user may use no policy', async () => {
    const everything = schedulingPolicy('p', { allowed: { nodeSelectors: {} } });
    const documents = [everything, ...grantDocuments('p', { kind: 'User', name: 'somebody-else' })];
    const chain = await loadFilter(temporaryFile('policies.yaml', asYaml(documents)));
    try {
      expect(await chain.checkCreate(ofFlavor(''))).toMatchObject({ allowed: false, failed: false });
    } finally {
      await chain.close();
    }
  });

  it('is allowed if every node is allowed', async () => {
    const chain = await filterFor({ p: { allowed: { nodeSelectors: {} } } });
    for (const properties of [undefined, equals('node_type', 'small'), FLAVOR]) {
      expect(await chain.checkCreate(ofFlavor(properties))).toMatchObject({ allowed: true, changed: false });
    }
  });

  it('is not checked with scheduling_policy_flavor_instances = allow, but other reservations of the lease are', async () => {
    const options = { scheduling_policy_flavor_instances: 'allow' };
    const chain = await loadFilter(policiesForAll({ p: NODE_TYPES }), options);
    try {
      expect(await chain.checkCreate(ofFlavor(FLAVOR))).toMatchObject({ allowed: true, changed: false });
      const beside = leaseOf({ resource_properties: equals('node_type', 'large') });
      const [flavor] = ofFlavor('').lease.reservations ?? [];
      const both = {
        ...beside,
        lease: { ...beside.lease, reservations: [...(beside.lease.reservations ?? []), { ...flavor }] },
      };
      expect(await chain.checkCreate(both)).toMatchObject({ allowed: false });
    } finally {
      await chain.close();
    }
  });

  it('is checked the same way in an update, where Blazar sends the flavor in resource_properties', async () => {
    const { context, currentLease, lease } = updateExtend();
    const [flavor = {}] = ofFlavor(FLAVOR).lease.reservations ?? [];
    const request = {
      context,
      currentLease: { ...currentLease, reservations: [{ ...flavor, id: 'r1' }] },
      lease: { ...lease, reservations: [{ ...flavor, id: 'r1' }] },
    };
    expect(await (await filterFor({ p: NODE_TYPES })).checkUpdate(request)).toMatchObject(
      rejectedWith(expect.stringContaining('flavor_id')),
    );
    const anyNode = await filterFor({ p: { allowed: { nodeSelectors: {} } } });
    expect(await anyNode.checkUpdate(request)).toMatchObject(ALLOWED);
  });
});
