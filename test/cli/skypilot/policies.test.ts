import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { skypilotInitCommand } from '../../../src/cli/skypilot/init.ts';
import { includedPolicies } from '../../../src/skypilot/policies/included-policies.ts';
import { temporaryPolicy } from '../../skypilot/policies/temporary-policy.ts';
import { rows } from '../../support/check-command.ts';
import { runInProcess, runProgramInProcess } from '../../support/command-in-process.ts';
import { confFile, temporaryFile } from '../../support/files.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';
import { printed, refused, refusedWith } from '../../support/run-command.ts';

const list = (conf: string, ...flags: string[]) =>
  runProgramInProcess(['skypilot', 'policies', '--config-file', confFile(conf), ...flags]);

describe('skypilot policies', () => {
  it('prints the named policies in their order, then the other included ones', async () => {
    const own = temporaryPolicy('CapPolicy', 'cap: z.int().default(1), cap_note: z.string().optional()');
    const { code, stdout, stderr } = await list(
      `[skypilot]\nadmin_policies = UseSpotForGpuPolicy, ${own}, AddLabelsPolicy\naudit_policies = AddLabelsPolicy\n`,
    );
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringContaining('AddLabelsPolicy is tried'),
    });
    const table = rows(stdout);
    expect(table[0]).toEqual(['NAME', 'USE', 'SPECIFIER', 'OPTIONS']);
    const policies = table.slice(1).filter(([name]) => name !== '');
    expect(policies.slice(0, 3)).toEqual([
      ['UseSpotForGpuPolicy', 'enabled', 'UseSpotForGpuPolicy'],
      ['CapPolicy', 'enabled', own, 'cap'],
      ['AddLabelsPolicy', 'audit', 'AddLabelsPolicy', 'add_labels'],
    ]);
    expect(table).toContainEqual(['', 'cap_note']);
    const others = (await includedPolicies())
      .map(({ policyClass: { name } }) => name)
      .filter((name) => !/^(UseSpotForGpu|AddLabels)Policy$/.test(name));
    expect(policies.slice(3).map(([name, use, specifier]) => [name, use, specifier])).toEqual(
      others.map((name) => [name, 'not enabled', name]),
    );
  });

  it('prints them as JSON', async () => {
    const { stdout } = await list('[skypilot]\nadmin_policies = RejectAllPolicy\n', '--format', 'json');
    const policies = JSON.parse(stdout) as unknown[];
    expect(policies[0]).toEqual({
      name: 'RejectAllPolicy',
      enabled: true,
      audit: false,
      specifier: 'RejectAllPolicy',
      options: [],
    });
  });

  it('reports mistakes, and lists nothing then', async () => {
    expect(await list('[skypilot]\nadmin_policies = NoSuchPolicy\n')).toEqual(
      refusedWith('the policy "NoSuchPolicy" cannot be used'),
    );
  });
});

const init = (...args: string[]) => runInProcess(skypilotInitCommand(), args);

it('writes a package, and says what', async () => {
  const folder = join(temporaryFolder(), 'a', 'b');
  const stdout = printed(await init(folder, '--name', 'GPUQuotaPolicy'));
  expect(stdout.split('\n')).toContain(join(folder, 'gpu-quota-policy.js'));
  expect(readdirSync(folder).sort()).toEqual([
    'README.md',
    'blazar.conf',
    'cases',
    'gpu-quota-policy.js',
    'package-lock.json',
    'package.json',
  ]);
  expect(readFileSync(join(folder, 'gpu-quota-policy.js'), 'utf8')).toContain('gpu_quota_limit: z.int()');
});

it('overwrites nothing, and then writes nothing at all', async () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'cases'));
  writeFileSync(join(folder, 'README.md'), 'mine');
  expect(await init(folder)).toEqual(
    refused(`nothing was written, because there is already: ${join(folder, 'README.md')}`),
  );
  expect(readFileSync(join(folder, 'README.md'), 'utf8')).toBe('mine');
  expect(existsSync(join(folder, 'package.json'))).toBe(false);
});

it('says where it cannot write', async () => {
  expect(await init(temporaryFile('file', ''))).toEqual(
    refused(/^error: \S+: could not be written: [^\n]+\n$/),
  );
});

it.for(['MaxGpus', '../MaxPolicy', '__proto__Policy', `${'A'.repeat(80)}Policy`])(
  'refuses a name that is not one of a policy: %s',
  async (name) => {
    expect(await init(join(temporaryFolder(), 'x'), '--name', name)).toEqual(
      refusedWith('expected the name of a class that ends in Policy'),
    );
  },
);
