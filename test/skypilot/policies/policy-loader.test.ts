import { join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadPolicies, policyOf } from '../../../src/skypilot/policies/policy-loader.ts';
import { isIsolated } from '../../../src/skypilot/policies/policy-runner.ts';
import { temporaryFile } from '../../support/files.ts';
import { policyFiles, policySource } from '../../support/skypilot.ts';

const RESERVED = ['admin_policies', 'path', 'tokens', 'isolation', 'deadline'];
const load = (...specifiers: string[]) => loadPolicies(specifiers, 'skypilot', RESERVED);

const WITH_OPTION = (name: string, option: string) =>
  policySource(name, '', {
    imports: "import { z } from 'zod';",
    extra: `static options = z.object({ ${option}: z.int().default(1).meta({ description: 'x' }) });`,
  });

const fileOf = (source: string) => temporaryFile('policy.js', source);

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
  it.for(['', 'data:text/javascript,1#MyPolicy', '../#MyPolicy'])(
    'an invalid name: %j',
    async (specifier) => {
      expect(await problemOf(specifier)).toBe(
        `the policy ${JSON.stringify(specifier)} cannot be used: expected the name of an included policy, package#Policy, or ./file.js#Policy`,
      );
    },
  );

  const SNAKE = 'this is how SkyPilot names a policy in Python; write';
  const OWN = './my-policy.js#MyPolicy or my-package#MyPolicy';
  it.for([
    ['sky.policies.MyPolicy', `${SNAKE} ${OWN} for your own`],
    ['example_policy.AddLabelsPolicy', `${SNAKE} AddLabelsPolicy, which is included`],
    ['example_policy.skypilot_policy.UseSpotForGPUPolicy', `${SNAKE} UseSpotForGpuPolicy, which is included`],
    ['./policy.js', 'write the name of its class too: ./policy.js#MyPolicy'],
    ['policies/mine.js#', 'write the name of its class too: ./policies/mine.js#MyPolicy'],
    ['policies/mine.js#MyPolicy', 'write a file with its folder: ./policies/mine.js#MyPolicy'],
    ['./p.py#MyPolicy', `a policy in Python cannot be called; write one in JavaScript: ${OWN}`],
    ...['https://example.org/admin-policy', 'http://u:p@h/p.js#MyPolicy'].map((url) => [
      url,
      `a URL belongs into SkyPilot's own admin_policy; here, write the class of a policy: ${OWN}`,
    ]),
    ['addLabelsPolicy', 'the nearest right name is "AddLabelsPolicy"'],
  ])('an invalid name, with what to write instead: %j', async ([specifier = '', hint]) => {
    expect(await problemOf(specifier)).toMatch(
      new RegExp(
        `cannot be used: expected the name of an included policy, .*; ${hint?.replace(/[.#]/g, '[.#]')}$`,
      ),
    );
  });

  it('a misspelt name of an included policy', async () => {
    expect(await problemOf('AddLabelPolicy')).toContain(
      'no included policy has this name; the nearest right name is "AddLabelsPolicy"; write package#Policy',
    );
    expect(await problemOf('UseSpotForGPUPolicy')).toContain('UseSpotForGpuPolicy');
    expect(await problemOf('x'.repeat(100_000))).not.toContain('nearest');
  });

  it('a name that no included policy has', async () => {
    expect(await problemOf('MyPolicy')).toEqual(
      expect.stringMatching(
        /^the policy "MyPolicy" cannot be used: no included policy has this name; .*write package#Policy or \.\/file\.js#Policy for your own$/,
      ),
    );
  });

  it.for([
    [
      'a class of another kind',
      'export class MyPolicy {}',
      'exports no class MyPolicy that extends AdminPolicy',
    ],
    ['another class', policySource('OtherPolicy'), 'exports no class MyPolicy that extends AdminPolicy'],
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

it.each([
  ['of a file', './own-policy.js#OwnPolicy', { foreign: true, worker: true, none: false }],
  ['that is included', 'AddLabelsPolicy', { foreign: false, worker: true, none: false }],
  [
    'that is included and parses large files',
    'DynamicKubernetesContextsUpdatePolicy',
    { foreign: true, worker: true, none: false },
  ],
  [
    'that is included and records launches',
    'UsageBudgetPolicy',
    { foreign: false, worker: false, none: false },
  ],
])('isolation gives a policy %s a thread as documented', async (_, specifier, expected) => {
  const own = policyFiles({ OwnPolicy: '' }).specifiers[0] ?? '';
  const policyClass = await policyOf(specifier.startsWith('.') ? own : specifier);
  const named = { specifier, policyClass, options: [] };
  const isolated = (['foreign', 'worker', 'none'] as const).map((isolation) => [
    isolation,
    isIsolated(named, isolation),
  ]);
  expect(Object.fromEntries(isolated)).toEqual(expected);
});
