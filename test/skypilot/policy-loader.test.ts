import { writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadPolicies } from '../../src/skypilot/policy-loader.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { policyFiles, policySource } from '../support/skypilot.ts';

const RESERVED = ['admin_policies', 'path', 'tokens', 'isolation', 'deadline'];
const load = (...specifiers: string[]) => loadPolicies(specifiers, 'skypilot', RESERVED);

const WITH_OPTION = (name: string, option: string) =>
  policySource(name, '', {
    imports: "import { z } from 'zod';",
    extra: `static options = z.object({ ${option}: z.int().default(1).meta({ description: 'x' }) });`,
  });

function fileOf(source: string): string {
  const path = join(temporaryFolder(), 'policy.js');
  writeFileSync(path, source);
  return path;
}

/** What is wrong with the one policy that is named. */
async function problemOf(specifier: string): Promise<string> {
  const { policies, problems } = await load(specifier);
  expect(policies).toEqual([]);
  expect(problems).toHaveLength(1);
  return problems[0] ?? '';
}

describe('a policy', () => {
  it('is named by its file and its class', async () => {
    const { folder, specifiers } = policyFiles({ OnePolicy: '', TwoPolicy: '' });
    const fromHere = `./${relative(process.cwd(), join(folder, 'TwoPolicy.js'))}#TwoPolicy`;
    const { policies, problems } = await load(specifiers[0] ?? '', fromHere);
    expect(problems).toEqual([]);
    expect(policies.map(({ specifier, policyClass }) => [specifier, policyClass.name])).toEqual([
      [specifiers[0], 'OnePolicy'],
      [fromHere, 'TwoPolicy'],
    ]);
  });

  it('may share a file with others', async () => {
    const file = fileOf(`${policySource('OnePolicy')}export class TwoPolicy extends OnePolicy {}\n`);
    const { policies, problems } = await load(`${file}#OnePolicy`, `${file}#TwoPolicy`);
    expect(problems).toEqual([]);
    expect(policies.map(({ policyClass }) => policyClass.name)).toEqual(['OnePolicy', 'TwoPolicy']);
  });

  it.for(['RejectAll', 'UseSpotForGpu', 'GPUPolicy'])(
    'may have a name that does not end in Policy: %s',
    async (name) => {
      const { problems } = await load(`${fileOf(policySource(name))}#${name}`);
      expect(problems).toEqual([]);
    },
  );

  it('has options that begin with its name', async () => {
    const { policies, problems } = await load(
      `${fileOf(WITH_OPTION('RateLimitPolicy', 'rate_limit_per_hour'))}#RateLimitPolicy`,
    );
    expect(problems).toEqual([]);
    expect(policies[0]?.options.map(({ section, name }) => [section, name])).toEqual([
      ['skypilot', 'rate_limit_per_hour'],
    ]);
  });
});

describe('reports an invalid policy:', () => {
  it.for([
    '',
    'MyPolicy',
    '#MyPolicy',
    './policy.js',
    './policy.js#',
    './policy.js#myPolicy',
    'policy.js#A B',
    './p.py#MyPolicy',
    'sky.policies.MyPolicy',
    'https://example.org/p.js#MyPolicy',
    'data:text/javascript,1#MyPolicy',
    'node:fs#Stats',
    '../#MyPolicy',
  ])('an invalid name: %j', async (specifier) => {
    expect(await problemOf(specifier)).toBe(
      `the policy ${JSON.stringify(specifier)} cannot be used: expected package#Policy or ./file.js#Policy`,
    );
  });

  it.for([
    [
      'a class of another kind',
      'export class MyPolicy {}',
      'exports no class MyPolicy that extends AdminPolicy',
    ],
    ['a function', 'export function MyPolicy() {}', 'exports no class MyPolicy that extends AdminPolicy'],
    ['an object', 'export const MyPolicy = {};', 'exports no class MyPolicy that extends AdminPolicy'],
    ['another class', policySource('OtherPolicy'), 'exports no class MyPolicy that extends AdminPolicy'],
    [
      'a default export',
      `${policySource('P').replace('export class', 'export default class')}`,
      'exports no class',
    ],
    [
      'AdminPolicy itself',
      "export { AdminPolicy as MyPolicy } from 'blazar-enforcement/skypilot';",
      'exports no class',
    ],
    [
      'a class under another name',
      `${policySource('InnerPolicy')}export { InnerPolicy as MyPolicy };`,
      'the class exported as MyPolicy is named InnerPolicy',
    ],
    [
      'a class without the method',
      "import { AdminPolicy } from 'blazar-enforcement/skypilot';\nexport class MyPolicy extends AdminPolicy {}",
      'MyPolicy does not implement validateAndMutate',
    ],
    ['a file that throws', "throw new Error('out of order');", 'it could not be loaded: out of order'],
    ['an import of nothing', "import './nowhere.js';", 'it could not be loaded: '],
    [
      'options that are none',
      policySource('MyPolicy', '', { extra: 'static options = {};' }),
      'no zod object',
    ],
    ['an option of the section', WITH_OPTION('MyPolicy', 'deadline'), 'declares the option deadline'],
    ['an option of another name', WITH_OPTION('MyPolicy', 'other_limit'), 'must be my or start with my_'],
  ] as const)('of %s', async ([, source, said]) => {
    expect(await problemOf(`${fileOf(source)}#MyPolicy`)).toContain(said);
  });

  it('a missing file and a missing package', async () => {
    expect(await problemOf('./nowhere/policy.js#MyPolicy')).toContain('there is no such file');
    expect(await problemOf('not-installed-anywhere#MyPolicy')).toContain('it could not be loaded');
  });

  it('an option that belongs to the section', async () => {
    expect(await problemOf(`${fileOf(WITH_OPTION('AdminThing', 'admin_policies'))}#AdminThing`)).toContain(
      "it declares the option admin_policies, which is the section's own",
    );
  });

  it('a second policy with the same name, and a duplicate option', async () => {
    const one = fileOf(policySource('MyPolicy'));
    const two = fileOf(policySource('MyPolicy', 'task.two = 2;'));
    const twice = await load(`${one}#MyPolicy`, `${two}#MyPolicy`, `${one}#MyPolicy`);
    expect(twice.policies.map(({ specifier }) => specifier)).toEqual([`${one}#MyPolicy`]);
    expect(twice.problems).toEqual([
      expect.stringContaining('there are two policies named MyPolicy'),
      expect.stringContaining('there are two policies named MyPolicy'),
    ]);
    const shared = await load(
      `${fileOf(WITH_OPTION('MaxCostPolicy', 'max_cost_limit'))}#MaxCostPolicy`,
      `${fileOf(WITH_OPTION('MaxPolicy', 'max_cost_limit'))}#MaxPolicy`,
    );
    expect(shared.problems).toEqual([
      expect.stringContaining("it declares the option max_cost_limit, which is MaxCostPolicy's"),
    ]);
  });

  it('each of them, and loads the others', async () => {
    const { specifiers } = policyFiles({ GoodPolicy: '' });
    const { policies, problems } = await load('bad', specifiers[0] ?? '', './worse.js#WorsePolicy');
    expect(policies.map(({ policyClass }) => policyClass.name)).toEqual(['GoodPolicy']);
    expect(problems).toHaveLength(2);
  });
});
