/** `skypilot`: tries admin policies and layered configurations without SkyPilot. */
import { Command } from 'commander';
import { printedErrors, printUses } from './common/output.ts';
import { addSourceFlags, type FormatFlags, formatFlag, sourcesOf } from './common/sources.ts';
import { exitWhenWritten } from './common/standard-streams.ts';
import { skypilotConfigCommand } from './skypilot/config.ts';
import { skypilotInitCommand } from './skypilot/init.ts';
import { reviewSources, skypilotReviewCommand } from './skypilot/review.ts';
import type { TestFlags } from './test/suites.ts';
import { filterFlag, junitFlag } from './test.ts';

export function skypilotCommand(): Command {
  return new Command('skypilot')
    .description("Try SkyPilot's admin policies and inspect its layered configuration.")
    .addCommand(skypilotReviewCommand())
    .addCommand(skypilotTestCommand())
    .addCommand(skypilotInitCommand())
    .addCommand(skypilotPoliciesCommand())
    .addCommand(skypilotConfigCommand());
}

interface ListedPolicy {
  readonly name: string;
  readonly enabled: boolean;
  /** Audit mode: the policy does not enforce. */
  readonly audit: boolean;
  /** As in `admin_policies`: the class of an included policy, otherwise the name as written. */
  readonly specifier: string;
  readonly options: readonly string[];
}

function skypilotPoliciesCommand(): Command {
  const command = new Command('policies').description(
    'List the policies that [skypilot] admin_policies names, in their order, and all other included ones: name, use, how to name it, options.',
  );
  return addSourceFlags(command).addOption(formatFlag('table', 'json')).action(list);
}

async function list(flags: FormatFlags): Promise<void> {
  const { readConfiguration, sectionOf } = await import('../enforcement/configuration.ts');
  const { SECTIONS } = await import('../server/configuration/sections.ts');
  const { skypilotSection } = await import('../skypilot/section.ts');
  const configuration = await readConfiguration(reviewSources(flags), SECTIONS);
  const problems = configuration.problems.filter(({ section }) => section !== 'enforcement');
  if (printedErrors(problems)) {
    return;
  }
  const { admin_policies, audit_policies } = sectionOf(configuration, skypilotSection);
  const policies = await listed(admin_policies, audit_policies);
  await printUses(policies, flags.format, 'SPECIFIER', ({ specifier }) => specifier);
}

async function listed(specifiers: readonly string[], audited: readonly string[]): Promise<ListedPolicy[]> {
  const { policyOf } = await import('../skypilot/policies/policy-loader.ts');
  const { includedPolicies } = await import('../skypilot/policies/included-policies.ts');
  const named = await Promise.all(
    specifiers.map(async (specifier) => ({ specifier, policyClass: await policyOf(specifier) })),
  );
  const others = (await includedPolicies())
    .map(({ policyClass }) => ({ specifier: policyClass.name, policyClass }))
    .filter(({ specifier }) => !specifiers.includes(specifier));
  return [...named, ...others].map((policy) => ({
    name: policy.policyClass.name,
    enabled: specifiers.includes(policy.specifier) && !audited.includes(policy.policyClass.name),
    audit: audited.includes(policy.policyClass.name),
    specifier: policy.specifier,
    options: Object.keys(policy.policyClass.options.shape),
  }));
}

const MORE_HELP = `
A case is a YAML file: a task or a pipeline, the configuration and the facts of a request, and what is expected:

  name: Eight GPUs are too many
  task: {resources: {accelerators: H100:8}, run: python train.py}
  request: {user: "0a1b2c3d:alice", idle_minutes: 30}
  now: 2026-11-21T09:00:00Z
  expect: {rejected: at most 4}

The policies are those of --config-file, otherwise of blazar.conf in the folder of the case or one above it, otherwise of
the case: policies, with options. Each case has new threads for its policies, and no network. docs/reference/skypilot-test.md
has all keys.

Examples:
  blazar-enforcement skypilot test cases --config-file policy-service.conf
  blazar-enforcement skypilot test cases --filter gpus --junit report.xml`;

export function skypilotTestCommand(): Command {
  const command = new Command('test')
    .description(
      'Run a folder of cases: requests, and what the policies should answer. Exit code: 0 all as expected, 1 some are not, 2 a mistake in a case, the configuration or the command, 3 a policy failed.',
    )
    .argument('<folder>', 'Its .yaml and .yml files, and those of the folders in it, are the cases.')
    .addOption(formatFlag('table', 'json', 'junit', 'tap'))
    .addOption(filterFlag())
    .addOption(junitFlag());
  return addSourceFlags(command).addHelpText('after', MORE_HELP).action(test);
}

async function test(folder: string, flags: TestFlags): Promise<void> {
  const { schemaOfTask } = await import('./test/any-case.ts');
  const options = {
    ...({ folders: [folder], files: 'all', schemaFor: schemaOfTask } as const),
    filter: flags.filter,
    flags: sourcesOf(flags),
  };
  const { runOnce } = await import('./test/suites.ts');
  await runOnce('blazar-enforcement skypilot test', options, flags);
  // A policy may leave timers and connections open.
  exitWhenWritten();
}
