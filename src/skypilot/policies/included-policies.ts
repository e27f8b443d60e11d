/** The policies of this package: their files, their lists, and suggestions for unknown names. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nearest } from '../../config/nearest.ts';
import { classFileName } from '../../plugin/class-names.ts';
import { importFile } from '../../plugin/importing.ts';
import { isPolicyClass, type PolicyClass } from '../admin-policy.ts';

const FOLDER = fileURLToPath(new URL('../../../policies', import.meta.url));
/** `.ts` in the source tree, `.js` in the build. */
const EXTENSION = import.meta.url.endsWith('.ts') ? '.ts' : '.js';

/** A policy that `admin_policies` may name by its class alone. */
interface IncludedPolicy {
  readonly file: string;
  readonly policyClass: PolicyClass;
}

/** Imports all included policies, sorted by file. Services load only theirs. @throws Error if one fails */
export async function includedPolicies(): Promise<IncludedPolicy[]> {
  return Promise.all(
    includedStems().map(async (stem) => {
      const file = includedFile(stem);
      const policyClass = await policyIn(stem);
      if (policyClass === undefined) {
        throw new Error(`${file}: it exports no policy of that name`);
      }
      return { file, policyClass };
    }),
  );
}

/** The file of an included policy, by the name of its class or file. */
export function includedFile(name: string): string {
  return join(FOLDER, `${classFileName(name)}${EXTENSION}`);
}

async function policyIn(stem: string): Promise<PolicyClass | undefined> {
  return Object.values(await importFile(includedFile(stem)))
    .filter(isPolicyClass)
    .find(({ name }) => classFileName(name) === stem);
}

/** The names of their files, without the extension. */
function includedStems(): string[] {
  const suffix = `-policy${EXTENSION}`;
  return readdirSync(FOLDER)
    .filter((file) => file.endsWith(suffix))
    .map((file) => file.slice(0, -EXTENSION.length))
    .sort();
}

// Suggestions for malformed names in `admin_policies`: SkyPilot names policies in other ways.

const DOTTED = /^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$/;
const OWN = './my-policy.js#MyPolicy or my-package#MyPolicy';
/** Longer texts are not names: comparing them would take long. */
const MAX_NAME = 200;

/** Policies in SkyPilot's example package → included policies with another name. */
const EXAMPLES: ReadonlyMap<string, string> = new Map([
  ['GPUStaticQuotaPolicy', 'GpuQuotaPolicy'],
  ['SlurmPartitionRoutingPolicy', 'SlurmPartitionPolicy'],
]);

/** Completes "… cannot be used: …" for a text that does not have the form of a name. */
export async function malformedName(specifier: string): Promise<string> {
  const expected = 'expected the name of an included policy, package#Policy, or ./file.js#Policy';
  const hint = await hintFor(specifier);
  return hint === undefined ? expected : `${expected}; ${hint}`;
}

async function hintFor(specifier: string): Promise<string | undefined> {
  const [place = '', name] = specifier.split('#');
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(specifier)) {
    return `a URL belongs into SkyPilot's own admin_policy; here, write the class of a policy: ${OWN}`;
  }
  if (/\.py$/.test(place)) {
    return `a policy in Python cannot be called; write one in JavaScript: ${OWN}`;
  }
  if (/\.m?[jt]s$/.test(place)) {
    return name === undefined || name === ''
      ? `write the name of its class too: ${isFolder(place) ? '' : './'}${place}#MyPolicy`
      : isFolder(place)
        ? undefined
        : `write a file with its folder: ./${specifier}`;
  }
  if (specifier.length <= MAX_NAME && DOTTED.test(specifier)) {
    const last = specifier.slice(specifier.lastIndexOf('.') + 1);
    const found = await includedClass(EXAMPLES.get(last) ?? last);
    return found === undefined
      ? `this is how SkyPilot names a policy in Python; write ${OWN} for your own`
      : `this is how SkyPilot names a policy in Python; write ${found}, which is included`;
  }
  return nearestHint(specifier);
}

function isFolder(place: string): boolean {
  return /^\.{0,2}\//.test(place);
}

/** Completes "… cannot be used: …" for a class name that no included policy has. */
export async function unknownName(name: string): Promise<string> {
  const near = await nearestHint(name);
  const own = 'write package#Policy or ./file.js#Policy for your own';
  const hint = near ?? '"blazar-enforcement skypilot policies" lists those that are included';
  return `no included policy has this name; ${hint}; ${own}`;
}

/** The policy that is most likely meant, if the name resembles one. */
async function nearestHint(name: string): Promise<string | undefined> {
  if (name.length > MAX_NAME || !/^\w+$/.test(name)) {
    return undefined;
  }
  // All names have this ending, so it is ignored.
  const bare = (stem: string) => stem.replace(/-policy$/, '');
  const stems = includedStems().map(bare);
  const stem = nearest(bare(classFileName(EXAMPLES.get(name) ?? name)), stems);
  const found = stem === undefined ? undefined : await includedClass(`${stem}-policy`);
  return found && `the nearest right name is "${found}"`;
}

/** The name of the class in a file; `undefined` = there is no such included policy. */
async function includedClass(name: string): Promise<string | undefined> {
  const stem = classFileName(name);
  return includedStems().includes(stem) ? (await policyIn(stem))?.name : undefined;
}
