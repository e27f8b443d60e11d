/** Where the policies of a configuration for cases are: its relative paths are meant for the folder of its file. */
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Origin } from '../../base/errors.ts';
import type { ConfigSources } from '../../config/sources.ts';
import { readConfiguration } from '../../enforcement/configuration.ts';
import { skypilotSection } from '../../skypilot/section.ts';

/** The names of policies, with the place where they are written. */
export interface PlacedPolicies {
  readonly policies: readonly string[];
  readonly origin: Origin;
}

/** The path of a policy as seen from a folder; a name of the library or of a package stays. */
export function policyFrom(folder: string, policy: string): string {
  return /^\.{1,2}\//.test(policy) ? resolve(folder, policy) : policy;
}

/**
 * The policies of a file of configuration whose paths lead to files from its folder, as `skypilot init` writes them. `undefined` = they are
 * as good as they are written.
 */
export async function policiesBesideTheirFile(sources: ConfigSources): Promise<PlacedPolicies | undefined> {
  // What is wrong with it is told by whoever reads it next.
  const { settings } = await readConfiguration(sources, [skypilotSection]);
  const { value, origin } = settings.find(({ option }) => option.name === 'admin_policies') ?? {};
  if (origin?.kind !== 'file' || !Array.isArray(value)) {
    return undefined;
  }
  const folder = dirname(origin.file);
  const policies = value.map((policy) => {
    const beside = policyFrom(folder, String(policy));
    return existsSync(beside.replace(/#[^#]*$/, '')) ? beside : String(policy);
  });
  return policies.some((policy, index) => policy !== value[index]) ? { policies, origin } : undefined;
}
