import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { skypilotInitCommand } from '../../../src/cli/skypilot/init.ts';
import { runInProcess } from '../../support/command-in-process.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';

const init = (...args: string[]) => runInProcess(skypilotInitCommand(), args);

it('writes a package, and says what', async () => {
  const folder = join(temporaryFolder(), 'a', 'b');
  const { code, stdout, stderr } = await init(folder, '--name', 'GPUQuotaPolicy');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
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
  const { code, stderr } = await init(folder);
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: `error: nothing was written, because there is already: ${join(folder, 'README.md')}\n`,
  });
  expect(readFileSync(join(folder, 'README.md'), 'utf8')).toBe('mine');
  expect(existsSync(join(folder, 'package.json'))).toBe(false);
});

it('says where it cannot write', async () => {
  const file = join(temporaryFolder(), 'file');
  writeFileSync(file, '');
  const { code, stderr } = await init(file);
  expect(code).toBe(2);
  expect(stderr).toMatch(/^error: \S+: could not be written: [^\n]+\n$/);
});

it.for([
  'policy',
  'Policy',
  'MaxGpus',
  '../MaxPolicy',
  'Max-Policy',
  '__proto__Policy',
  `${'A'.repeat(80)}Policy`,
])('refuses a name that is not one of a policy: %s', async (name) => {
  const { code, stdout, stderr } = await init(join(temporaryFolder(), 'x'), '--name', name);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain('expected the name of a class that ends in Policy');
});
