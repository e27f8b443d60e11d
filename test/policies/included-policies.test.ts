import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { optionPrefix } from '../../src/plugin/class-names.ts';
import { contextRegistryOf } from '../../src/skypilot/index.ts';
import { loadPolicies, policyOf } from '../../src/skypilot/policies/policy-loader.ts';
import { pageNamed, tableUnder } from '../docs/markdown.ts';
import { projectFile } from '../support/files.ts';

const FILES = readdirSync(projectFile('policies')).filter((file) => file.endsWith('-policy.ts'));
const PAGE = pageNamed('docs/reference/skypilot-policies.md');
const NAMES = tableUnder(PAGE, 'Policies').map(([name = '']) => name.replaceAll('`', ''));

describe('the included policies', () => {
  it('are those of the page, one in each file', async () => {
    expect(NAMES).toEqual(NAMES.toSorted());
    expect(NAMES).toHaveLength(FILES.length);
    for (const name of NAMES) {
      expect((await policyOf(name)).name).toBe(name);
    }
  });

  it('declare options of different names, and the page has the first of each', async () => {
    expect((await loadPolicies(NAMES, 'skypilot', [])).problems).toEqual([]);
    for (const [name = '', , options = ''] of tableUnder(PAGE, 'Policies')) {
      const { options: declared } = await policyOf(name.replaceAll('`', ''));
      const prefix = optionPrefix(name.replaceAll('`', ''));
      expect(options !== '', name).toBe(Object.keys(declared.shape).length > 0);
      expect(options === '' || options.includes(`\`${prefix}`), name).toBe(true);
    }
  });
});

it('the page tells what each of them leaves open', () => {
  expect(tableUnder(PAGE, 'Policies').every(([, , , open = '']) => open !== '')).toBe(true);
});

it('the registry of the page is read', () => {
  const registry = PAGE.blocks.find(({ text }) => text.startsWith('users:'))?.text ?? '';
  expect(contextRegistryOf(registry)).toEqual({
    users: { lee: ['gpu-east', 'gpu-west'] },
    workspaces: { research: ['gpu-west'] },
    default: ['cpu'],
  });
});
