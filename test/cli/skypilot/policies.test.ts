import { describe, expect, it } from 'vitest';
import { includedPolicies } from '../../../src/skypilot/policies/included-policies.ts';
import { temporaryPolicy } from '../../skypilot/policies/temporary-policy.ts';
import { rows } from '../../support/check-command.ts';
import { runProgramInProcess } from '../../support/command-in-process.ts';
import { confFile } from '../../support/files.ts';

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

  it('needs no configuration', async () => {
    const { code, stdout } = await runProgramInProcess(['skypilot', 'policies', '--format', 'json']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toContainEqual(expect.objectContaining({ name: 'RejectAllPolicy' }));
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
    expect(policies).toContainEqual({
      name: 'AddLabelsPolicy',
      enabled: false,
      audit: false,
      specifier: 'AddLabelsPolicy',
      options: ['add_labels'],
    });
  });

  it('reports mistakes, and lists nothing then', async () => {
    const { code, stdout, stderr } = await list('[skypilot]\nadmin_policies = NoSuchPolicy\n');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('the policy "NoSuchPolicy" cannot be used');
  });
});
