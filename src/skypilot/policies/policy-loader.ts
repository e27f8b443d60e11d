/** Loads the class of a name in `admin_policies`, and checks `audit_policies`. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { nearestName } from '../../config/nearest.ts';
import type { Option } from '../../config/option.ts';
import type { ExtensionProblem } from '../../config/option-groups.ts';
import { systemErrorText } from '../../config/read-file.ts';
import { showText } from '../../config/secret.ts';
import { declaredOptions, prefixOfNamed } from '../../plugin/class-names.ts';
import { importFile, importPackage, makePackagesResolvable } from '../../plugin/importing.ts';
import { isPolicyClass, type PolicyClass } from '../admin-policy.ts';
import type { SkypilotOptions } from '../options.ts';
import { includedFile, malformedName, unknownName } from './included-policies.ts';

export interface NamedPolicy {
  /** As written in the configuration. */
  readonly specifier: string;
  readonly policyClass: PolicyClass;
  readonly options: readonly Option[];
}

const CLASS_NAME = /^[A-Z][A-Za-z0-9]*$/;
const PACKAGE = /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/;
const FILE = /^(?:\.{0,2}\/|\.\.?\/).*\.m?[jt]s$/;

/**
 * Loads policies: `AddLabelsPolicy` of this package, `my-package#MyPolicy`,
 * `./policies/my-policy.js#MyPolicy`. No policy may declare one of the `reserved` options, which belong to
 * the section. Returns each problem as a sentence, and the option prefixes of the policies that were not
 * loaded.
 */
export async function loadPolicies(
  specifiers: readonly string[],
  section: string,
  reserved: readonly string[],
): Promise<{ policies: NamedPolicy[]; problems: string[]; unloaded: string[] }> {
  const policies: NamedPolicy[] = [];
  const problems: string[] = [];
  const unloaded: string[] = [];
  const owners = new Map(reserved.map((name) => [name, `the section's own`]));
  for (const specifier of specifiers) {
    try {
      const policyClass = await policyOf(specifier);
      const { name } = policyClass;
      if (policies.some((other) => other.policyClass.name === name)) {
        throw new Error(`there are two policies named ${name}`);
      }
      const options = declaredOptions(section, policyClass);
      for (const option of options) {
        const owner = owners.get(option.name);
        if (owner !== undefined) {
          throw new Error(`it declares the option ${option.name}, which is ${owner}`);
        }
      }
      for (const option of options) {
        owners.set(option.name, `${name}'s`);
      }
      policies.push({ specifier, policyClass, options });
    } catch (thrown) {
      problems.push(`the policy ${showText(specifier)} cannot be used: ${systemErrorText(thrown)}`);
      unloaded.push(prefixOfNamed(specifier));
    }
  }
  return { policies, problems, unloaded };
}

/** The class of one policy. @throws Error whose message completes "… cannot be used: …" */
export async function policyOf(specifier: string): Promise<PolicyClass> {
  const hash = specifier.lastIndexOf('#');
  const place = specifier.slice(0, Math.max(hash, 0));
  const name = specifier.slice(hash + 1);
  const isOwn = hash === -1 && CLASS_NAME.test(name);
  const isPackage = PACKAGE.test(place);
  if (!isOwn && (!CLASS_NAME.test(name) || (!isPackage && !FILE.test(place)))) {
    throw new Error(await malformedName(specifier));
  }
  const exported = await (isOwn ? importOwn(name) : importForeign(place, isPackage));
  const found = exported[name];
  if (isOwn && (!isPolicyClass(found) || found.name !== name)) {
    throw new Error(await unknownName(name));
  }
  if (!isPolicyClass(found)) {
    throw new Error(
      `${isPackage ? 'the package' : 'the file'} exports no class ${name} that extends AdminPolicy`,
    );
  }
  if (found.name !== name) {
    throw new Error(`the class exported as ${name} is named ${found.name}`);
  }
  if (typeof (found.prototype as Record<string, unknown>).validateAndMutate !== 'function') {
    throw new Error(`${name} does not implement validateAndMutate`);
  }
  return found;
}

async function importOwn(name: string): Promise<Readonly<Record<string, unknown>>> {
  const file = includedFile(name);
  if (!existsSync(file)) {
    throw new Error(await unknownName(name));
  }
  return importFile(file);
}

function importForeign(place: string, isPackage: boolean): Promise<Readonly<Record<string, unknown>>> {
  makePackagesResolvable();
  return isPackage ? importPackage(place) : importFile(resolve(place));
}

/** `./policies/my-policy.js#MyPolicy` → `MyPolicy`; a name of an included policy is returned unchanged. */
function classNameOf(specifier: string): string {
  return specifier.slice(specifier.lastIndexOf('#') + 1);
}

/** Every mistake in `audit_policies`, and a warning for each policy that is not enforced. */
export function auditProblems({
  admin_policies,
  audit_policies,
}: Pick<SkypilotOptions, 'admin_policies' | 'audit_policies'>): ExtensionProblem[] {
  const policies = [...new Set(admin_policies.map(classNameOf))];
  const audited = new Set<string>();
  const problems: ExtensionProblem[] = [];
  const report = (message: string, severity: 'error' | 'warning' = 'error') =>
    problems.push({ severity, option: 'audit_policies', message });
  for (const name of audit_policies) {
    if (audited.has(name)) {
      report(`${showText(name)} is named twice`);
    } else if (policies.includes(name)) {
      report(`${name} is tried, not enforced: it rejects and changes no request`, 'warning');
    } else {
      const className = classNameOf(name);
      report(
        name !== className && policies.includes(className)
          ? `expected the name of a class, got ${showText(name)}: write ${className}`
          : `there is no policy ${showText(name)} in admin_policies${nearestName(className, policies)}`,
      );
    }
    audited.add(name);
  }
  if (policies.length > 0 && policies.every((name) => audited.has(name))) {
    report('no policy is enforced: every request is allowed as it is', 'warning');
  }
  return problems;
}
