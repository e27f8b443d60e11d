/** `skypilot policies`: lists the admin policies to choose from. */
import { Command } from 'commander';
import { ExitCode, printJson, printProblems, printTable } from '../output.ts';
import { addSourceFlags, formatFlag, type SourceFlags } from '../sources.ts';
import { reviewSources } from './reviewer.ts';

interface PoliciesFlags extends SourceFlags {
  readonly format: 'table' | 'json';
}

interface ListedPolicy {
  readonly name: string;
  readonly enabled: boolean;
  /** Whether it is only tried. */
  readonly audit: boolean;
  /** What `admin_policies` names: the class of an included policy, otherwise as it is written there. */
  readonly specifier: string;
  readonly options: readonly string[];
}

export function skypilotPoliciesCommand(): Command {
  const command = new Command('policies').description(
    'List the policies that [skypilot] admin_policies names, in their order, and all other included ones: name, use, how to name it, options.',
  );
  return addSourceFlags(command).addOption(formatFlag('table', 'json')).action(list);
}

async function list(flags: PoliciesFlags): Promise<void> {
  const { readConfiguration, sectionOf } = await import('../../enforcement/configuration.ts');
  const { SECTIONS } = await import('../../server/configuration/sections.ts');
  const { skypilotSection } = await import('../../skypilot/section.ts');
  const configuration = await readConfiguration(reviewSources(flags), SECTIONS);
  const problems = configuration.problems.filter(({ section }) => section !== 'enforcement');
  printProblems(problems);
  if (problems.some(({ severity }) => severity === 'error')) {
    process.exitCode = ExitCode.usage;
    return;
  }
  const { admin_policies, audit_policies } = sectionOf(configuration, skypilotSection);
  const policies = await listed(admin_policies, audit_policies);
  if (flags.format === 'json') {
    printJson(policies);
    return;
  }
  await printTable(
    ['NAME', 'USE', 'SPECIFIER', 'OPTIONS'],
    policies.flatMap(({ name, enabled, audit, specifier, options: [first = '', ...others] }) => [
      [name, enabled ? 'enabled' : audit ? 'audit' : 'not enabled', specifier, first],
      ...others.map((option) => ['', '', '', option]),
    ]),
  );
}

async function listed(specifiers: readonly string[], audited: readonly string[]): Promise<ListedPolicy[]> {
  const { policyOf } = await import('../../skypilot/policies/policy-loader.ts');
  const { includedPolicies } = await import('../../skypilot/policies/included-policies.ts');
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
