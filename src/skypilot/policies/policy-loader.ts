/** Finds the class of a name in `admin_policies`. */
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Option } from '../../config/option.ts';
import { systemErrorText } from '../../config/read-file.ts';
import { showText } from '../../config/secret.ts';
import { classFileName, prefixOfNamed } from '../../plugin/class-names.ts';
import { declaredOptions } from '../../plugin/declared-options.ts';
import { importFile, importPackage } from '../../plugin/importing.ts';
import { makePackagesResolvable } from '../../plugin/packages.ts';
import { isPolicyClass, type PolicyClass } from '../admin-policy.ts';

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

/** The included policies: `.ts` in the source tree, `.js` in the build. */
export const INCLUDED_FOLDER = fileURLToPath(new URL('../../../policies', import.meta.url));
/** Of their files. */
export const INCLUDED_EXTENSION = import.meta.url.endsWith('.ts') ? '.ts' : '.js';
const INCLUDED = { folder: INCLUDED_FOLDER, extension: INCLUDED_EXTENSION };

/**
 * Loads policies: `AddLabelsPolicy` of this package, `my-package#MyPolicy`, `./policies/my-policy.js#MyPolicy`. No policy may declare one of the
 * `reserved` options, which belong to the section. Returns each problem as a sentence, and the prefixes of the options that are missing for it.
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
  const [place, name] = [specifier.slice(0, Math.max(hash, 0)), specifier.slice(hash + 1)];
  const isOwn = hash === -1 && CLASS_NAME.test(name);
  const isPackage = PACKAGE.test(place);
  if (!isOwn && (!CLASS_NAME.test(name) || (!isPackage && !FILE.test(place)))) {
    const { malformedName } = await import('./policy-names.ts');
    throw new Error(await malformedName(specifier, INCLUDED));
  }
  const exported = await (isOwn ? importOwn(name) : importForeign(place, isPackage));
  const found = exported[name];
  if (isOwn && (!isPolicyClass(found) || found.name !== name)) {
    return unknown(name);
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
  const file = join(INCLUDED_FOLDER, `${classFileName(name)}${INCLUDED_EXTENSION}`);
  if (!existsSync(file)) {
    return unknown(name);
  }
  return importFile(file);
}

async function unknown(name: string): Promise<never> {
  const { unknownName } = await import('./policy-names.ts');
  throw new Error(await unknownName(name, INCLUDED));
}

function importForeign(place: string, isPackage: boolean): Promise<Readonly<Record<string, unknown>>> {
  makePackagesResolvable();
  return isPackage ? importPackage(place) : importExisting(resolve(place));
}

/** A missing file is reported as such, and not as a module that Node cannot find. */
async function importExisting(file: string): Promise<Readonly<Record<string, unknown>>> {
  await stat(file);
  return importFile(file);
}
