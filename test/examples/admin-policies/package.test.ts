import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { projectFile } from '../../support/files.ts';
import { importExample } from './helpers.ts';

const FOLDER = projectFile('examples/admin-policies');
const README = readFileSync(join(FOLDER, 'README.md'), 'utf8');
const REGISTRY = /^```yaml\n(.*?)^```$/ms.exec(README)?.[1] ?? '';

describe('the package of the example policies', () => {
  it('exports exactly the policies of its README', async () => {
    const named = [...README.matchAll(/^\| `(\w+Policy)` +\|/gm)].map(([, name]) => name);
    expect(named).toHaveLength(8);
    expect(Object.keys(await importExample<object>('index.js')).sort()).toEqual(named.sort());
  });

  it('depends on the tested version of yaml', () => {
    const read = (path: string) => JSON.parse(readFileSync(projectFile(path), 'utf8'));
    const { dependencies, peerDependencies } = read('examples/admin-policies/package.json');
    expect(dependencies).toEqual({ yaml: expect.stringMatching(/^\^2\./) });
    expect(read('package.json').dependencies.yaml).toMatch(/^2\./);
    expect(Object.keys(peerDependencies).sort()).toEqual(['blazar-enforcement', 'zod']);
  });

  it('reads the registry of its README', async () => {
    const { registryOf } = await importExample<{ registryOf(text: string): unknown }>(
      'kubernetes-contexts.js',
    );
    expect(registryOf(REGISTRY)).toEqual({
      users: { lee: ['gpu-east', 'gpu-west'] },
      workspaces: { research: ['gpu-west'] },
      default: ['cpu'],
    });
  });
});
