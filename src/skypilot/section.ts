/** The section `[skypilot]` of the configuration, with the options of policies. */
import type { FurtherSection, SectionExtension } from '../config/option-groups.ts';
import { type SkypilotOptions, skypilotOptions } from './options.ts';

const SECTION = 'skypilot';
const NO_API_SERVER =
  "expected the URL of SkyPilot's API server, got nothing: policies that charge launches learn from it which clusters are up";

/**
 * The options of the named policies. If an undeclared option or `all` is set, also those of the other
 * included policies, to distinguish typing mistakes from options without effect. Otherwise these are not
 * loaded.
 */
async function policyOptions(
  options: SkypilotOptions,
  undeclared: readonly string[],
  all = false,
): Promise<SectionExtension> {
  const { admin_policies, audit_policies, exempt_users, api_server } = options;
  const isEmpty = [admin_policies, audit_policies, exempt_users, undeclared].every(
    ({ length }) => length === 0,
  );
  if (isEmpty && !all) {
    return { schemas: [], problems: [], unloaded: [], unused: [] };
  }
  const { exemptionProblems } = await import('./policies/exemptions.ts');
  const { auditProblems, loadPolicies } = await import('./policies/policy-loader.ts');
  const own = Object.keys(skypilotOptions.shape);
  const { policies, problems, unloaded } = await loadPolicies(admin_policies, SECTION, own);
  const schemas = policies.map(({ policyClass }) => policyClass.options);
  const checks = new Map(
    policies.flatMap(({ policyClass: { options: schema, check } }) =>
      check === undefined ? [] : [[schema, check] as const],
    ),
  );
  const known = new Set([...own, ...schemas.flatMap(({ shape }) => Object.keys(shape))]);
  const isComplete = !all && undeclared.every((name) => known.has(name));
  return {
    schemas,
    unloaded,
    checks,
    problems: [
      ...problems.map((message) => ({ option: 'admin_policies', message })),
      ...auditProblems(options),
      ...exemptionProblems(options),
      ...(api_server === undefined &&
      policies.some(({ policyClass }) => policyClass.needs?.includes('ledger'))
        ? [{ option: 'api_server', message: NO_API_SERVER }]
        : []),
    ],
    unused: isComplete ? [] : await unusedOptions(known),
  };
}

async function unusedOptions(known: ReadonlySet<string>): Promise<SectionExtension['unused']> {
  const { includedPolicies } = await import('./policies/included-policies.ts');
  return (await includedPolicies())
    .map(({ policyClass }) => policyClass)
    .filter(({ options }) => !Object.keys(options.shape).some((name) => known.has(name)))
    .map(({ name, options }) => ({ schema: options, reason: `${name} is not in admin_policies` }));
}

/** The section of the configuration, including the options of the named policies. */
export const skypilotSection = {
  section: SECTION,
  schema: skypilotOptions,
  extend: (values: SkypilotOptions, undeclared: readonly string[]) => policyOptions(values, undeclared),
} as const satisfies FurtherSection;

/** The same, including the options of all included policies: for samples and lists of options. */
export const skypilotSectionWithAllPolicies = {
  ...skypilotSection,
  extend: (values: SkypilotOptions) => policyOptions(values, [], true),
} as const satisfies FurtherSection;
