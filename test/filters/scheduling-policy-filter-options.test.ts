import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../src/index.ts';
import { ALLOWED, REJECTED } from '../support/decisions.ts';
import { confFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { recordingLogger } from '../support/logger.ts';
import { runCommand } from '../support/run-command.ts';
import { runService } from '../support/running-service.ts';
import {
  asYaml,
  demanding,
  EVERYBODY,
  equals,
  grantDocuments,
  leaseOf,
  loadFilter,
  PROJECT,
  policiesForAll,
  propertiesOf,
} from './lease-policies.ts';

/** A folder with a policy in one file, and its role and binding in another. */
function policyFolder(policy: string): string {
  const folder = join(temporaryFolder(), 'policies');
  mkdirSync(folder);
  writeFileSync(join(folder, 'policy.yaml'), policy);
  writeFileSync(join(folder, 'roles.yaml'), asYaml(grantDocuments('gpu', EVERYBODY)));
  writeFileSync(join(folder, 'notes.txt'), 'no policy');
  return folder;
}

const WRITTEN = `apiVersion: scheduling.blazar-enforcement/v1alpha1
kind: SchedulingPolicy
metadata:
  name: gpu
spec:
  allowed:
    nodeSelectors:
      gpu: ['True']
`;
const GPU = demanding(equals('gpu', 'True'));

describe('scheduling_policy_path', () => {
  it('can be a file or a folder of files', async () => {
    const folder = policyFolder(WRITTEN);
    expect(await (await loadFilter(folder)).checkCreate(GPU)).toMatchObject(ALLOWED);
    const alone = await loadFilter(join(folder, 'policy.yaml'));
    expect(await alone.checkCreate(GPU)).toMatchObject(REJECTED);
  });

  it('is required if the filter is enabled', async () => {
    const conf = confFile('[enforcement]\nenabled_filters = SchedulingPolicyFilter\n');
    expect(await runCommand(['config', 'validate', '--config-file', conf])).toEqual({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(
        /^error: (\S+ )?\[enforcement\] scheduling_policy_path: expected a file or a folder, got nothing\n$/,
      ),
    });
    const other = confFile('[enforcement]\nenabled_filters = MaxLeaseDurationFilter\n');
    expect((await runCommand(['config', 'validate', '--config-file', other])).code).toBe(0);
  });

  it('with a mistake in a file is reported by config validate with file and line, and prevents the start of a service', async () => {
    const folder = policyFolder(WRITTEN.replace('nodeSelectors', 'nodeSelector'));
    const expected = `${join(folder, 'policy.yaml')}:7: spec.allowed.nodeSelector: unknown field; the nearest right name is "nodeSelectors"`;
    const conf = confFile(
      `[enforcement]\nenabled_filters = SchedulingPolicyFilter\nscheduling_policy_path = ${folder}\n`,
    );
    const { code, stdout, stderr } = await runCommand(['config', 'validate', '--config-file', conf]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(`error: ${expected}`);
    const enforcement = { enabled_filters: ['SchedulingPolicyFilter'], scheduling_policy_path: folder };
    await expect(runService({ enforcement })).rejects.toThrow(ConfigurationError);
    await expect(loadFilter(folder)).rejects.toThrow(expected);
  });

  it.for(['/nowhere', ''])('that does not exist is a mistake: "%s"', async (path) => {
    await expect(loadFilter(path)).rejects.toThrow(ConfigurationError);
  });

  it('warns of a role for a missing policy, and continues', async () => {
    const folder = policyFolder(WRITTEN);
    writeFileSync(
      join(folder, 'more.yaml'),
      asYaml(grantDocuments('gpus', EVERYBODY, { metadata: { name: 'b' } })),
    );
    const logger = recordingLogger();
    expect(await (await loadFilter(folder, {}, logger)).checkCreate(GPU)).toMatchObject(ALLOWED);
    const warnings = logger.lines.filter(({ level }) => level === 'warn').map(({ message }) => message);
    expect(warnings).toEqual([expect.stringContaining('there is no SchedulingPolicy "gpus"')]);
  });
});

describe('scheduling_policy_merge_strategy', () => {
  const A = {
    required: { nodeSelectors: { gpu: ['False'] } },
    allowed: { nodeSelectors: { rack: ['1'] } },
    default: { nodeSelector: { gpu: 'False' } },
  };
  const B = {
    required: { nodeSelectors: { gpu: ['True', 'False'], zone: ['a'] } },
    allowed: { nodeSelectors: { rack: ['2'] } },
    default: { nodeSelector: { gpu: 'True', zone: 'a' } },
  };
  const demand = (label: string, value: string) =>
    demanding(`["and", ${equals('gpu', 'False')}, ${equals('zone', 'a')}, ${equals(label, value)}]`);
  const judge = async (strategy: Record<string, string>, specs: Record<string, object> = { a: A, b: B }) => {
    const enforcement = await loadFilter(policiesForAll(specs), strategy);
    const allowed = async (request: ReturnType<typeof demanding>) =>
      (await enforcement.checkCreate(request)).allowed;
    return {
      rack1: await allowed(demand('rack', '1')),
      rack2: await allowed(demand('rack', '2')),
      gpu: await allowed(demand('gpu', 'True')),
      zone: await allowed(demand('zone', 'a')),
      added: propertiesOf(await enforcement.checkCreate(demanding('')))[0],
    };
  };
  const BOTH = `["and",["==","$gpu","False"],["==","$zone","a"]]`;

  it('is deep by default: the first policy wins for each part, and allowed values are combined', async () => {
    const deep = { rack1: true, rack2: true, gpu: false, zone: true, added: BOTH };
    expect(await judge({})).toEqual(deep);
    expect(await judge({ scheduling_policy_merge_strategy: 'deep' })).toEqual(deep);
  });

  it('can be first: only the first policy counts', async () => {
    expect(await judge({ scheduling_policy_merge_strategy: 'first' })).toEqual({
      ...{ rack1: false, rack2: false, gpu: false, zone: false },
      added: '["==","$gpu","False"]',
    });
  });

  it('can be simple: each field comes from the first policy that has it', async () => {
    const { required, default: defaults } = A;
    const specs = { a: { required, default: defaults }, b: B };
    expect(await judge({ scheduling_policy_merge_strategy: 'simple' }, specs)).toEqual({
      ...{ rack1: false, rack2: false, gpu: false, zone: false },
      added: '["==","$gpu","False"]',
    });
    const onlyAllowed = { a: { allowed: { nodeSelectors: { rack: ['1'] } } }, b: B };
    expect(await judge({ scheduling_policy_merge_strategy: 'simple' }, onlyAllowed)).toMatchObject({
      ...{ rack1: true, rack2: false, gpu: true, zone: true },
    });
  });

  it('can be intersection: every policy must allow the lease', async () => {
    const wide = { allowed: { nodeSelectors: { gpu: [], zone: [], rack: ['2'] } } };
    const intersection = await judge(
      { scheduling_policy_merge_strategy: 'intersection' },
      { a: { ...A, allowed: { nodeSelectors: { rack: ['1', '2'], zone: [] } } }, b: wide },
    );
    expect(intersection).toEqual({
      ...{ rack1: false, rack2: true, gpu: false, zone: true },
      added: '["==","$gpu","False"]',
    });
  });

  it('names both policies if two of an intersection contradict each other', async () => {
    const specs = {
      a: { required: { nodeSelectors: { gpu: ['True'] } } },
      b: { required: { nodeSelectors: { gpu: ['False'] } } },
    };
    const enforcement = await loadFilter(policiesForAll(specs), {
      scheduling_policy_merge_strategy: 'intersection',
    });
    for (const properties of ['', equals('gpu', 'True'), equals('gpu', 'False')]) {
      expect((await enforcement.checkCreate(demanding(properties))).message).toContain(
        'gpu: conflicting requirements: a requires True and b requires False (scheduling policies a and b)',
      );
    }
  });

  it('ignores rules about schedulers and priority classes in an intersection', async () => {
    const nodeSelectors = { gpu: ['True'] };
    const specs = {
      a: { required: { schedulerNames: ['x'], priorityClassNames: ['low'] }, allowed: { nodeSelectors } },
      b: { required: { schedulerNames: ['y'], priorityClassNames: ['high'] }, allowed: { nodeSelectors } },
    };
    const enforcement = await loadFilter(policiesForAll(specs), {
      scheduling_policy_merge_strategy: 'intersection',
    });
    expect((await enforcement.checkCreate(GPU)).message).toBeNull();
  });

  it('refuses other values', async () => {
    const options = { scheduling_policy_merge_strategy: 'union' };
    await expect(loadFilter(policiesForAll({}), options)).rejects.toThrow(
      /scheduling_policy_merge_strategy: .*deep.*"union"/,
    );
  });
});

describe('SchedulingPolicyFilter with the options of all filters', () => {
  const specs = { none: { required: { nodeSelectors: { gpu: ['False'] } }, default: { nodeSelector: {} } } };

  it('rejects nothing if it is audited', async () => {
    const enforcement = await loadFilter(policiesForAll(specs), { audit_filters: 'SchedulingPolicyFilter' });
    const decision = await enforcement.checkCreate(GPU);
    expect(decision).toMatchObject({ allowed: true, changed: false, lease: GPU.lease });
    expect(decision.warnings).toEqual([
      expect.stringMatching(
        /^SchedulingPolicyFilter \(tried, not enforced\) would have rejected: .*gpu: expected False/,
      ),
    ]);
  });

  it('adds no defaults if it is audited', async () => {
    const file = policiesForAll({ none: { default: { nodeSelector: { gpu: 'False' } } } });
    const enforcement = await loadFilter(file, { audit_filters: 'SchedulingPolicyFilter' });
    const decision = await enforcement.checkCreate(demanding(''));
    expect(decision).toMatchObject({ allowed: true, changed: false });
    expect(propertiesOf(decision)).toEqual(['']);
    expect(decision.warnings).toEqual([
      'SchedulingPolicyFilter (tried, not enforced) would have changed the lease.',
    ]);
  });

  it('is not called for exempt projects', async () => {
    const enforcement = await loadFilter(policiesForAll(specs), { exempt_projects: PROJECT });
    expect(await enforcement.checkCreate(GPU)).toMatchObject({ allowed: true, exempt: true });
    const { context, lease } = GPU;
    const other = { context: { ...context, project_id: 'other' }, lease };
    expect(await enforcement.checkCreate(other)).toMatchObject({ allowed: false, exempt: false });
  });

  it('passes the lease with the defaults to the filters after it', async () => {
    const enforcement = await loadFilter(
      policiesForAll({ d: { allowed: { nodeSelectors: {} }, default: { nodeSelector: { gpu: 'False' } } } }),
      { enabled_filters: 'SchedulingPolicyFilter, MaxLeaseDurationFilter', max_lease_duration: '172800' },
    );
    const decision = await enforcement.checkCreate(leaseOf({ resource_properties: '' }));
    expect(decision).toMatchObject({ allowed: true, changed: true });
    expect(decision.outcomes.map(({ filter, changed }) => [filter, changed])).toEqual([
      ['SchedulingPolicyFilter', true],
      ['MaxLeaseDurationFilter', false],
    ]);
  });
});
