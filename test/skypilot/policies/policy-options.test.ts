import { beforeAll, describe, expect, it } from 'vitest';
import { formatProblem } from '../../../src/base/errors.ts';
import { knownOptions } from '../../../src/cli/common/known-options.ts';
import { readConfiguration } from '../../../src/enforcement/configuration.ts';
import { includedPolicies } from '../../../src/skypilot/policies/included-policies.ts';
import { skypilotSection } from '../../../src/skypilot/section.ts';
import { confFile } from '../../support/files.ts';
import { temporaryPolicy } from './temporary-policy.ts';

/** A configuration with these lines in `[skypilot]`, and its problems there. */
async function read(lines: string) {
  const file = confFile(`[skypilot]\n${lines}\n`);
  const { settings, problems } = await readConfiguration({ environment: {}, configFiles: [file] }, [
    skypilotSection,
  ]);
  return {
    names: settings.filter(({ option }) => option.section === 'skypilot').map(({ option }) => option.name),
    problems: problems
      .filter(({ section }) => section === 'skypilot')
      .map((problem) => formatProblem(problem).replace(file, 'site.conf')),
  };
}

describe('a policy that cannot be loaded', () => {
  it.each([
    ['./nowhere/lab-a100-policy.js#LabA100Policy', 'lab_a100_max = 4'],
    ['LabA100Policy', 'lab_a100_max = 4'],
    ['site.policies.LabA100Policy', 'lab_a100_max = 4'],
  ])('is the only mistake, not the options that it would declare: %s', async (specifier, option) => {
    const { problems } = await read(`admin_policies = ${specifier}\n${option}`);
    expect(problems).toEqual([
      expect.stringContaining(`admin_policies: the policy "${specifier}" cannot be used`),
    ]);
  });

  it.each(['lab_a100x = 1', 'lab_max = 1', '_lab = 1', 'typo = 1'])(
    'hides no mistake in other options: %s',
    async (line) => {
      const specifiers = './lab-a100-policy.js#LabA100Policy, ./policy.js#Policy, ./policy.js, -, #';
      const { problems } = await read(`admin_policies = ${specifiers}\n${line}`);
      expect(problems.filter((problem) => problem.includes('unknown option'))).toHaveLength(1);
    },
  );
});

describe('an option of an included policy that is not enabled', () => {
  it('is known and has no effect', async () => {
    expect((await read('add_labels = app:x')).problems).toEqual([
      'site.conf:2: [skypilot] add_labels: has no effect: AddLabelsPolicy is not in admin_policies',
    ]);
    expect((await read('admin_policies = RejectAllPolicy\nrate_limit_launch = 5')).problems).toEqual([
      'site.conf:3: [skypilot] rate_limit_launch: has no effect: RateLimitLaunchPolicy is not in admin_policies',
    ]);
  });

  it('is told from a typing mistake, with and without policies', async () => {
    for (const lines of ['add_lables = app:x', 'admin_policies = RejectAllPolicy\nadd_lables = app:x']) {
      const { problems } = await read(lines);
      expect(problems).toHaveLength(1);
      expect(problems[0]).toMatch(/^site\.conf:[23]: \[skypilot\] add_lables: unknown option.*add_labels/);
    }
  });

  it('may be the option of an enabled policy of another place', async () => {
    const policy = temporaryPolicy('AddLabelsPolicy', "add_labels: z.string().default('x')");
    expect((await read(`admin_policies = ${policy}\nadd_labels = any text`)).problems).toEqual([]);
    const { problems } = await read(`admin_policies = ${policy}\nadd_labels = x\nrate_limit_launch = 5`);
    expect(problems).toHaveLength(1);
  });
});

it('the policies that are not enabled are not loaded while all options are known', async () => {
  const { names } = await read('admin_policies = AddLabelsPolicy\nadd_labels = a:b\ndeadline = 5');
  expect(names).toContain('add_labels');
  expect(names).not.toContain('rate_limit_launch');
  expect((await read('deadline = 5')).names).not.toContain('add_labels');
});

describe('lists of all options', () => {
  let options: readonly string[];
  beforeAll(async () => {
    options = (await knownOptions()).options
      .filter(({ section }) => section === 'skypilot')
      .map(({ name }) => name);
  });

  it('have those of every included policy, each once', async () => {
    const declared = (await includedPolicies()).flatMap(({ policyClass }) =>
      Object.keys(policyClass.options.shape),
    );
    expect(declared).toContain('add_labels');
    expect(options.filter((name) => !Object.hasOwn(skypilotSection.schema.shape, name))).toEqual(declared);
    expect(new Set(options).size).toBe(options.length);
  });
});

it.each([
  ['1', []],
  ['29', []],
  ['30', [expect.stringContaining('deadline')]],
  ['0', [expect.stringContaining('deadline')]],
])(
  'the deadline of policies is shorter than the 30 seconds that SkyPilot waits: %s',
  async (deadline, wrong) => {
    expect((await read(`deadline = ${deadline}`)).problems).toEqual(wrong);
  },
);
