import { describe, expect, it } from 'vitest';
import type { CreateRequest } from '../../src/index.ts';
import { ALLOWED, rejectedWith } from '../support/decisions.ts';
import { temporaryFile } from '../support/files.ts';
import { createGpuAndFloatingIp, createPhysicalHost } from '../support/requests.ts';
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
  PROJECT,
  policiesForAll,
  policyDocument,
  REJECTED,
  USER,
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

describe('SchedulingPolicyFilter checks the properties of a lease', () => {
  it('allows values that a policy allows', async () => {
    const specs = { types: { allowed: { nodeSelectors: { node_type: ['compute_cascadelake_r'] } } } };
    expect(await create(specs, createPhysicalHost())).toMatchObject({
      allowed: true,
      changed: false,
      lease: createPhysicalHost().lease,
    });
  });

  it('refuses another value, and names the place, the allowed values and the policy', async () => {
    const specs = { types: { allowed: { nodeSelectors: { node_type: ['skylake', 'haswell'] } } } };
    expect(await refusal(specs, createPhysicalHost())).toBe(
      'reservations[0].resource_properties node_type: expected skylake or haswell, got "compute_cascadelake_r" (scheduling policy types).',
    );
  });

  it('refuses a property that no policy mentions, and names the allowed ones', async () => {
    expect(await refusal(GPU, createPhysicalHost())).toBe(
      'reservations[0].resource_properties node_type: expected nothing, got "compute_cascadelake_r"; allowed labels: gpu and zone (scheduling policy gpu).',
    );
  });

  it('refuses a lease without a required property, whatever else it has', async () => {
    const specs = { types: { required: { nodeSelectors: { node_type: [] } }, ...GPU.gpu } };
    for (const request of [demanding(''), demanding(equals('gpu', 'True')), demanding(undefined)]) {
      expect(await refusal(specs, request)).toBe(
        'reservations[0].resource_properties node_type: expected a value, got nothing (scheduling policy types).',
      );
    }
    expect(await refusal(specs, demanding(equals('node_type', 'any')))).toBeNull();
  });

  it('reads = as ==, and a list as its text', async () => {
    for (const written of ['["=", "$gpu", "True"]', '["==", "$gpu", "True"]', ['==', '$gpu', 'True']]) {
      expect(await refusal(GPU, demanding(written))).toBeNull();
    }
    expect(await refusal(GPU, demanding('["=", "$gpu", "Maybe"]'))).toContain('expected True or False');
    expect(await refusal(GPU, demanding(['=', '$gpu', 'Maybe']))).toContain('expected True or False');
  });

  it('checks each comparison of an "and"', async () => {
    const written = (zone: string, gpu: string) =>
      `["and", ["==", "$zone", "${zone}"], ["==", "$gpu", "${gpu}"]]`;
    expect(await refusal(GPU, demanding(written('any', 'True')))).toBeNull();
    expect(await refusal(GPU, demanding(written('any', 'Maybe')))).toContain('got "Maybe"');
    const twice = '["and", ["==", "$gpu", "True"], ["==", "$gpu", "Maybe"], ["==", "$rack", "1"]]';
    expect((await refusal(GPU, demanding(twice)))?.split('; reservations')).toHaveLength(2);
  });

  it('checks every reservation, and names it', async () => {
    const request = leaseOf(
      { resource_properties: equals('gpu', 'True') },
      { resource_properties: equals('gpu', 'Maybe') },
      { resource_properties: equals('rack', '1') },
    );
    const message = await refusal(GPU, request);
    expect(message).toContain('reservations[1].resource_properties gpu: ');
    expect(message).toContain('; reservations[2].resource_properties rack: ');
    expect(message).not.toContain('reservations[0]');
  });

  it.for([undefined, null, [], ''])('reads %j as no properties', async (nothing) => {
    expect(await refusal(GPU, demanding(nothing, nothing))).toBeNull();
    expect(await refusal(GPU, demanding('[]', '[]'))).toBeNull();
  });

  it.for([undefined, null, []])('allows a lease with %j as its reservations', async (none) => {
    const { context, lease } = createPhysicalHost();
    const { reservations: _, ...rest } = lease;
    const request = { context, lease: { ...rest, ...(none !== undefined && { reservations: none }) } };
    expect(
      await refusal({ types: { required: { nodeSelectors: { gpu: [] } } } }, request as CreateRequest),
    ).toBe(null);
  });
});

describe('SchedulingPolicyFilter reads hypervisor_properties', () => {
  it.for(['vcpus', 'memory_mb', 'local_gb', 'cpu_info', 'hypervisor_type', 'hypervisor_version'])(
    'does not check the capacity %s, but checks the same name in resource_properties',
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

  it('checks any other name there as in resource_properties, since Blazar looks up both the same way', async () => {
    const written = `["and", [">=", "$vcpus", "16"], ${equals('gpu', 'Maybe')}]`;
    expect(await refusal(GPU, demanding('', written))).toContain('gpu: expected True or False, got "Maybe"');
    expect(await refusal(GPU, demanding('', equals('hypervisor_hostname', 'h1')))).toContain('got "h1"');
    expect(await refusal(GPU, demanding('', equals('gpu', 'True')))).toBeNull();
  });

  it('finds a required property there', async () => {
    const specs = { gpu: { required: { nodeSelectors: { gpu: ['True'] } } } };
    expect(await refusal(specs, demanding('', equals('gpu', 'True')))).toBeNull();
    expect(await refusal(specs, demanding('', equals('gpu', 'False')))).toContain('expected True');
  });

  it('allows the captured lease of a GPU host with many processors and an address', async () => {
    expect(await refusal(GPU, createGpuAndFloatingIp())).toBeNull();
  });
});

describe('SchedulingPolicyFilter ignores reservations without a machine', () => {
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
});

describe('SchedulingPolicyFilter treats other operators than equality as any value', () => {
  it.for(['!=', '>=', '<=', '>', '<'])('allows %s only if any value is allowed', async (operator) => {
    expect(await refusal(GPU, demanding([operator, '$zone', 'x']))).toBeNull();
    expect(await refusal(GPU, demanding([operator, '$gpu', 'True']))).toBe(
      `reservations[0].resource_properties gpu: expected True or False, got ${operator} "True" (scheduling policy gpu).`,
    );
    expect(await refusal(GPU, demanding('', JSON.stringify([operator, '$gpu', 'True'])))).toContain(
      `got ${operator} "True"`,
    );
  });

  it('refuses them even next to an equality', async () => {
    const written = '["and", ["==", "$gpu", "True"], ["!=", "$gpu", "Maybe"]]';
    expect(await refusal(GPU, demanding(written))).toContain('got != "Maybe"');
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
        policyDocument('gpu', { allowed: { nodeSelectors: { gpu: ['True'] } } }),
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

  it('is identified by the user id', async () => {
    expect(await mayUse({ kind: 'User', name: USER })).toBe(true);
    expect(await mayUse({ kind: 'User', name: USER }, { user_id: 'another' })).toBe(false);
    expect(await mayUse({ kind: 'User', name: PROJECT })).toBe(false);
  });

  it('is in a group with the id of the project', async () => {
    expect(await mayUse({ kind: 'Group', name: `project:${PROJECT}` })).toBe(true);
    expect(await mayUse({ kind: 'Group', name: `project:${PROJECT}` }, { project_id: 'x' })).toBe(false);
    expect(await mayUse({ kind: 'Group', name: PROJECT })).toBe(false);
  });

  it('is in system:authenticated', async () => {
    expect(await mayUse(EVERYBODY)).toBe(true);
    expect(await mayUse({ kind: 'Group', name: 'system:serviceaccounts' })).toBe(false);
    expect(await mayUse({ kind: 'Group', name: 'system:unauthenticated' })).toBe(false);
  });

  it('is in no namespace: a RoleBinding grants nothing', async () => {
    const inNamespace = { kind: 'RoleBinding', metadata: { name: 'gpu', namespace: 'default' } };
    expect(await mayUse(EVERYBODY, {}, inNamespace)).toBe(false);
    expect(await mayUse({ kind: 'User', name: USER }, {}, inNamespace)).toBe(false);
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
