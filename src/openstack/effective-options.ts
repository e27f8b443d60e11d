import type { Surroundings } from './cloud-files.ts';
import { KeystoneError } from './keystone-error.ts';
import type { KeystoneOptions } from './keystone-options.ts';

/** Options of which one replaces the others. */
const ALTERNATIVES: readonly (readonly (keyof KeystoneOptions)[])[] = [
  ['password', 'password_file'],
  ['application_credential_secret', 'application_credential_secret_file'],
  ['project_name', 'project_id'],
  ['user_domain_name', 'user_domain_id'],
  ['project_domain_name', 'project_domain_id'],
];

export interface EffectiveOptions {
  readonly options: KeystoneOptions;
  /** Where those come from that are not in `[keystone]`; `undefined` without `cloud`. */
  readonly source?: string;
  readonly warnings: readonly string[];
}

/**
 * The options with those of `cloud` below them: what `[keystone]` says itself counts. Without `cloud` nothing is read, neither variables
 * nor files of the folder or home of the process. The service and the commands all use this. @throws KeystoneError
 */
export async function effectiveOptions(
  options: KeystoneOptions,
  surroundings: Surroundings = { environment: process.env, folder: process.cwd() },
): Promise<EffectiveOptions> {
  if (options.cloud === undefined) {
    return { options, warnings: [] };
  }
  const { cloudNamed } = await import('./cloud.ts');
  const {
    options: below,
    source,
    warnings,
  } = await cloudNamed(options.cloud, options.region_name, surroundings);
  const set = new Set(
    (Object.keys(options) as (keyof KeystoneOptions)[]).filter((name) => options[name] !== undefined),
  );
  const replaced = ALTERNATIVES.filter((names) => names.some((name) => set.has(name))).flat();
  const kept = Object.entries(below).filter(
    ([name, value]) => value !== undefined && !replaced.includes(name as keyof KeystoneOptions),
  );
  const own = Object.entries(options).filter(([, value]) => value !== undefined);
  const effective = { ...Object.fromEntries(kept), ...Object.fromEntries(own) } as KeystoneOptions;
  if (effective.auth_url === undefined) {
    throw new KeystoneError('configuration', `[keystone] cloud: ${source}: there is no auth_url`);
  }
  return { options: effective, source, warnings };
}
