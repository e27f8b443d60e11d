import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../src/index.ts';
import { ALLOWED, REJECTED } from '../support/decisions.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { recordingLogger } from '../support/logger.ts';
import { runService } from '../support/running-service.ts';
import {
  asYaml,
  demanding,
  EVERYBODY,
  equals,
  grantDocuments,
  loadFilter,
  policiesForAll,
  propertiesOf,
} from './lease-policies.ts';
import { mistakes } from './loaded.ts';

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
    expect(await mistakes('SchedulingPolicyFilter', [])).toEqual([
      '[enforcement] scheduling_policy_path: expected a file or a folder, got nothing',
    ]);
    expect(await mistakes('MaxLeaseDurationFilter', ['max_lease_duration = 1'])).toEqual([]);
  });

  it('with a mistake in a file is reported with file and line, and prevents the start of a service', async () => {
    const folder = policyFolder(WRITTEN.replace('nodeSelectors', 'nodeSelector'));
    const expected = `${join(folder, 'policy.yaml')}:7: spec.allowed.nodeSelector: unknown field; the nearest right name is "nodeSelectors"`;
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
      rack1: false,
      rack2: false,
      gpu: false,
      zone: false,
      added: '["==","$gpu","False"]',
    });
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
