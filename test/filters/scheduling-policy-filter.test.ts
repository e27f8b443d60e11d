import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { CreateRequest, Lease } from '../../src/index.ts';
import { EffectivePolicy } from '../../src/kubernetes/policies/effective-policy.ts';
import { schedulingPolicy } from '../peers/cluster-objects.ts';
import { ALLOWED, rejectedWith } from '../support/decisions.ts';
import { temporaryFile } from '../support/files.ts';
import {
  createGpuAndFloatingIp,
  createPhysicalHost,
  PROJECT,
  USER,
  updateExtend,
} from '../support/requests.ts';
import { testFilter } from './contract.ts';
import {
  asYaml,
  demanding,
  EVERYBODY,
  equals,
  filterFor,
  grantDocuments,
  leaseOf,
  loadFilter,
  policiesForAll,
  REJECTED,
} from './lease-policies.ts';

testFilter({
  name: 'SchedulingPolicyFilter',
  options: () => ({
    scheduling_policy_path: policiesForAll({ anything: { allowed: { nodeSelectors: {} } } }),
  }),
});

const GPU = { gpu: { allowed: { nodeSelectors: { gpu: ['True', 'False'], zone: [] } } } };

async function create(specs: Record<string, object>, request: CreateRequest) {
  return (await filterFor(specs)).checkCreate(request);
}

/** Why a lease is refused, without the common first words; `null` = allowed. */
async function refusal(specs: Record<string, object>, request: CreateRequest) {
  const { allowed, failed, message } = await create(specs, request);
  expect(failed).toBe(false);
  expect(allowed).toBe(message === null);
  expect(message ?? REJECTED).toMatch(new RegExp(`^${REJECTED}`));
  return message?.slice(REJECTED.length) ?? null;
}

const TYPES = { types: { allowed: { nodeSelectors: { node_type: ['skylake', 'haswell'] } } } };
const TYPED = { types: { required: { nodeSelectors: { node_type: [] } }, ...GPU.gpu } };
const GPU_NEEDED = { gpu: { required: { nodeSelectors: { gpu: ['True'] } } } };
const NO_TYPE =
  'reservations[0].resource_properties node_type: expected a value, got nothing (scheduling policy types).';
const and = (...comparisons: string[]) => `["and", ${comparisons.join(', ')}]`;
const withReservations = (reservations: unknown): CreateRequest => {
  const { context, lease } = createPhysicalHost();
  return { context, lease: { ...lease, reservations } as Lease };
};

describe('SchedulingPolicyFilter checks the properties of a lease', () => {
  it('allows values that a policy allows', async () => {
    const specs = { types: { allowed: { nodeSelectors: { node_type: ['compute_cascadelake_r'] } } } };
    expect(await create(specs, createPhysicalHost())).toMatchObject({
      allowed: true,
      changed: false,
      lease: createPhysicalHost().lease,
    });
  });

  // A text that ends with a period is the whole reason.
  it.each<[string, Record<string, object>, CreateRequest, string | null]>([
    [
      ...(['another value, with place, allowed values and policy', TYPES, createPhysicalHost()] as const),
      'reservations[0].resource_properties node_type: expected skylake or haswell, got "compute_cascadelake_r" (scheduling policy types).',
    ],
    [
      ...(['a property that no policy mentions, with the allowed ones', GPU, createPhysicalHost()] as const),
      'reservations[0].resource_properties node_type: expected nothing, got "compute_cascadelake_r"; allowed labels: gpu and zone (scheduling policy gpu).',
    ],
    ['no required property', TYPED, demanding(''), NO_TYPE],
    ['no required property', TYPED, demanding(undefined), NO_TYPE],
    ['another instead of the required property', TYPED, demanding(equals('gpu', 'True')), NO_TYPE],
    ['the required property', TYPED, demanding(equals('node_type', 'any')), null],
    ['= as ==', GPU, demanding('["=", "$gpu", "True"]'), null],
    ['= as ==', GPU, demanding('["=", "$gpu", "Maybe"]'), 'expected True or False'],
    ['a list as its text', GPU, demanding(['==', '$gpu', 'True']), null],
    ['a list as its text', GPU, demanding(['=', '$gpu', 'Maybe']), 'expected True or False'],
    ['each part of an "and"', GPU, demanding(and(equals('zone', 'any'), equals('gpu', 'True'))), null],
    [
      'each part of an "and"',
      GPU,
      demanding(and(equals('zone', 'x'), equals('gpu', 'Maybe'))),
      'got "Maybe"',
    ],
    ['undefined as no properties', GPU, demanding(undefined, undefined), null],
    ['null as no properties', GPU, demanding(null, null), null],
    ['lists as no properties', GPU, demanding([], '[]'), null],
    ['a lease without reservations', GPU_NEEDED, withReservations(undefined), null],
    ['null as no reservations', GPU_NEEDED, withReservations(null), null],
    ['an empty list of reservations', GPU_NEEDED, withReservations([]), null],
    // hypervisor_properties: names that are no capacities are looked up as in resource_properties.
    [
      ...(['them in hypervisor_properties', GPU] as const),
      demanding('', and('[">=", "$vcpus", "16"]', equals('gpu', 'Maybe'))),
      'gpu: expected True or False, got "Maybe"',
    ],
    ['a hypervisor_hostname', GPU, demanding('', equals('hypervisor_hostname', 'h1')), 'got "h1"'],
    ['them in hypervisor_properties', GPU, demanding('', equals('gpu', 'True')), null],
    ['required ones there', GPU_NEEDED, demanding('', equals('gpu', 'True')), null],
    ['required ones there', GPU_NEEDED, demanding('', equals('gpu', 'False')), 'expected True'],
    ['a captured GPU host with many processors and an address', GPU, createGpuAndFloatingIp(), null],
    ['an inequality beside', GPU, demanding(and(equals('gpu', 'True'), '["!=", "$gpu", "x"]')), 'got != "x"'],
  ])('%s', async (_, specs, request, expected) => {
    const reason = await refusal(specs, request);
    if (expected?.endsWith('.') === false) {
      expect(reason).toContain(expected);
    } else {
      expect(reason).toBe(expected);
    }
  });

  it('checks every reservation and every comparison, and names them', async () => {
    const wrong = and(equals('gpu', 'True'), equals('gpu', 'Maybe'), equals('rack', '1'));
    const message = await refusal(
      GPU,
      leaseOf({ resource_properties: equals('gpu', 'True') }, { resource_properties: wrong }),
    );
    expect(message).toContain('reservations[1].resource_properties gpu: ');
    expect(message).toContain('; reservations[1].resource_properties rack: ');
    expect(message).not.toContain('reservations[0]');
    expect(message?.split('; reservations')).toHaveLength(2);
  });

  it.for(['vcpus', 'memory_mb', 'local_gb', 'cpu_info', 'hypervisor_type', 'hypervisor_version'])(
    'does not check the capacity %s in hypervisor_properties, but the same name in resource_properties',
    async (capacity) => {
      for (const operator of ['>=', '==']) {
        const written = JSON.stringify([operator, `$${capacity}`, '16']);
        expect(await refusal(GPU, demanding('', written))).toBeNull();
        expect(await refusal(GPU, demanding(written))).toContain(
          `reservations[0].resource_properties ${capacity}: expected nothing`,
        );
      }
    },
  );

  it.for(['virtual:floatingip', 'network'])('does not check a reservation of %s', async (resource_type) => {
    const specs = {
      gpu: { required: { nodeSelectors: { gpu: [] } }, default: { nodeSelector: { gpu: 'True' } } },
    };
    const request = leaseOf({ resource_type, resource_properties: 'no JSON', hypervisor_properties: 7 });
    expect(await create(specs, request)).toMatchObject({ allowed: true, changed: false });
  });

  it.for(['physical:host', 'virtual:instance', 'something:else', 'flavor:Instance'])(
    'checks a reservation of %s',
    async (resource_type) => {
      const request = leaseOf({ resource_type, resource_properties: equals('rack', '1') });
      expect(await refusal(GPU, request)).toContain('reservations[0].resource_properties rack');
    },
  );

  it.for(['!=', '>=', '<=', '>', '<'])('allows %s only if any value is allowed', async (operator) => {
    expect(await refusal(GPU, demanding([operator, '$zone', 'x']))).toBeNull();
    expect(await refusal(GPU, demanding([operator, '$gpu', 'True']))).toBe(
      `reservations[0].resource_properties gpu: expected True or False, got ${operator} "True" (scheduling policy gpu).`,
    );
    expect(await refusal(GPU, demanding('', JSON.stringify([operator, '$gpu', 'True'])))).toContain(
      `got ${operator} "True"`,
    );
  });
});

describe('SchedulingPolicyFilter refuses properties that it cannot read:', () => {
  it.for<[string, unknown, string]>([
    ['cut-off JSON', '["==", "$gpu", "Tru', 'expected a list in JSON such as ["==", "$gpu", "True"]'],
    ['invalid JSON', 'gpu', 'expected a list in JSON'],
    ['a mapping', '{"gpu": "True"}', 'expected a list in JSON'],
    ['a number', 7, 'expected a list in JSON'],
    ['null as text', 'null', 'expected a list in JSON'],
    ['an "and" of nothing', '["and"]', 'expected something behind "and"'],
    ['an "and" in an "and"', '["and", ["and", ["==", "$gpu", "True"]]]', 'expected no "and" there'],
    ['an "or"', '["or", ["==", "$gpu", "True"], ["==", "$gpu", "x"]]', 'expected no "or" there'],
    ['a "not" in an "and"', '["and", ["not", ["==", "$gpu", "True"]]]', 'expected no "not" there'],
    ['a blank in a name', '["==", "$g pu", "True"]', 'expected a property such as $gpu, without blanks'],
    ['no dollar', '["==", "gpu", "True"]', 'expected a property such as $gpu'],
    ['a dollar alone', '["==", "$", "True"]', 'expected a property such as $gpu'],
    ['a value that is not a text', '["==", "$gpu", true]', 'expected a text that is not empty'],
    ['an empty value', '["==", "$gpu", ""]', 'expected a text that is not empty'],
    ['an unknown operator', '["=~", "$gpu", "True"]', 'expected one of =, ==, !=, >=, <=, >, <'],
    ['two texts', '["==", "$gpu"]', 'expected comparisons of three texts'],
  ])('%s, and names the place', async ([, written, expected]) => {
    const anything = { anything: { allowed: { nodeSelectors: {} } } };
    const request = leaseOf({}, { resource_properties: written });
    expect(await refusal(anything, request)).toContain(`reservations[1].resource_properties: ${expected}`);
    const hidden = leaseOf({}, { resource_properties: '', hypervisor_properties: written });
    expect(await refusal(anything, hidden)).toContain(`reservations[1].hypervisor_properties: ${expected}`);
  });

  it.for(['==', '!='])('without repeating long values, after %s', async (operator) => {
    const request = demanding([operator, `$${'n'.repeat(5000)}`, 'v'.repeat(5000)]);
    expect((await refusal(GPU, request))?.length).toBeLessThan(1000);
  });

  it('and limits the number of reasons in the message', async () => {
    const demands = Array.from({ length: 100 }, (_, index) => ['==', `$rack${index}`, '1']);
    const message = await refusal(GPU, demanding(['and', ...demands]));
    expect(message).toContain('reservations[0].resource_properties rack0: expected nothing');
    expect(message?.length).toBeLessThan(5000);
  });
});

describe('SchedulingPolicyFilter uses the policies of the user of a lease, who', () => {
  const rules = (subject: object, binding = {}) =>
    temporaryFile(
      'policies.yaml',
      asYaml([
        schedulingPolicy('gpu', { allowed: { nodeSelectors: { gpu: ['True'] } } }),
        ...grantDocuments('gpu', subject, binding),
      ]),
    );
  const { context, lease } = demanding(equals('gpu', 'True'));
  const mayUse = async (subject: object, who = {}, binding = {}) => {
    const enforcement = await loadFilter(rules(subject, binding));
    const decision = await enforcement.checkCreate({ context: { ...context, ...who }, lease });
    expect(decision.failed).toBe(false);
    return decision.allowed;
  };

  const IN_NAMESPACE = { kind: 'RoleBinding', metadata: { name: 'gpu', namespace: 'default' } };
  it.each<[string, object, object, boolean, object?]>([
    ['has this user id', { kind: 'User', name: USER }, {}, true],
    ['has another user id', { kind: 'User', name: USER }, { user_id: 'another' }, false],
    ['is no project', { kind: 'User', name: PROJECT }, {}, false],
    ['is in the group of the project', { kind: 'Group', name: `project:${PROJECT}` }, {}, true],
    ['is in another project', { kind: 'Group', name: `project:${PROJECT}` }, { project_id: 'x' }, false],
    ['is in no group of that name', { kind: 'Group', name: PROJECT }, {}, false],
    ['is in system:authenticated', EVERYBODY, {}, true],
    ['is no service account', { kind: 'Group', name: 'system:serviceaccounts' }, {}, false],
    ['is not unauthenticated', { kind: 'Group', name: 'system:unauthenticated' }, {}, false],
    ['is in no namespace: a RoleBinding grants nothing', EVERYBODY, {}, false, IN_NAMESPACE],
    ['is in no namespace', { kind: 'User', name: USER }, {}, false, IN_NAMESPACE],
  ])('%s', async (_, subject, who, isGranted, binding) => {
    expect(await mayUse(subject, who, binding)).toBe(isGranted);
  });

  it('may use no properties without a binding, but may lease without properties', async () => {
    const enforcement = await loadFilter(rules({ kind: 'User', name: 'another' }));
    expect(await enforcement.checkCreate({ context, lease })).toMatchObject(
      rejectedWith(
        `${REJECTED}reservations[0].resource_properties gpu: expected nothing, got "True" (no scheduling policy of the account mentions it).`,
      ),
    );
    expect(await enforcement.checkCreate(demanding(''))).toMatchObject(ALLOWED);
  });
});

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
