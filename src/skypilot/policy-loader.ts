/** Finds the class of a name in `admin_policies`. */
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Option } from '../config/option.ts';
import { systemErrorText } from '../config/read-file.ts';
import { showText } from '../config/secret.ts';
import { declaredOptions } from '../plugin/declared-options.ts';
import { importFile, importPackage } from '../plugin/importing.ts';
import { makePackagesResolvable } from '../plugin/packages.ts';
import { isPolicyClass, type PolicyClass } from './admin-policy.ts';

/** A policy, ready to construct. */
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
 * Loads policies: `my-package#MyPolicy`, `./policies/my-policy.js#MyPolicy`. No policy may declare one of the
 * `reserved` options, which belong to the section. Returns each problem as a sentence.
 */
export async function loadPolicies(
  specifiers: readonly string[],
  section: string,
  reserved: readonly string[],
): Promise<{ policies: NamedPolicy[]; problems: string[] }> {
  const policies: NamedPolicy[] = [];
  const problems: string[] = [];
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
    }
  }
  return { policies, problems };
}

/** The class of one policy. @throws Error whose message completes "… cannot be used: …" */
export async function policyOf(specifier: string): Promise<PolicyClass> {
  const hash = specifier.lastIndexOf('#');
  const [place, name] = [specifier.slice(0, Math.max(hash, 0)), specifier.slice(hash + 1)];
  const isPackage = PACKAGE.test(place);
  if (hash === -1 || !CLASS_NAME.test(name) || (!isPackage && !FILE.test(place))) {
    throw new Error('expected package#Policy or ./file.js#Policy');
  }
  makePackagesResolvable();
  const exported = await (isPackage ? importPackage(place) : importExisting(resolve(place)));
  const found = exported[name];
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

/** A missing file is reported as such, and not as a module that Node cannot find. */
async function importExisting(file: string): Promise<Readonly<Record<string, unknown>>> {
  await stat(file);
  return importFile(file);
}
