/** Names in lists and dictionaries: ids and resource types. A limit for a name that does not exist would never apply. */

import { isMapping } from '../yaml/tree.ts';
import { shownName } from './layer.ts';
import { nearestName } from './nearest.ts';
import type { NameKind, Option } from './option.ts';
import { showText } from './secret.ts';
import { MismatchError } from './typed.ts';

/**
 * The types of Blazar's own plug-ins, and of the network and device plug-ins that sites use. `[enforcement] resource_types` adds
 * others. Source: Blazar, `RESOURCE_TYPE` of each plug-in.
 */
export const RESOURCE_TYPES = [
  'physical:host',
  'virtual:instance',
  'flavor:instance',
  'virtual:floatingip',
  'network',
  'device',
] as const;

/** Blanks, invisible characters and wildcards: no id of Keystone or Blazar contains them. */
const NO_ID = /[\s\p{C}*]/u;

/**
 * Throws a `MismatchError` with all wrong names. `secret`: they are not shown. `isContinued`: one may be an option of its own on
 * an indented line, and is shown without the value.
 */
export function checkNames(
  value: unknown,
  option: Option,
  { secret, isContinued }: { readonly secret: boolean; readonly isContinued: boolean },
  resourceTypes: readonly string[],
): void {
  const { names: kinds } = option;
  if (kinds.length === 0) {
    return;
  }
  const names = Array.isArray(value) ? value.map(String) : isMapping(value) ? Object.keys(value) : [];
  const wrong = names.flatMap((name) => {
    const reason = whyWrong(name, kinds, resourceTypes);
    const shown = secret ? 'a value that is not shown' : showText(isContinued ? shownName(name) : name);
    return reason === undefined ? [] : [{ name, message: `${shown} ${reason}` }];
  });
  const [first] = wrong;
  if (first !== undefined) {
    const expected = `expected ${option.expected}`;
    throw new MismatchError(`${expected}; ${wrong.map(({ message }) => message).join('; ')}`, first.name);
  }
}

function whyWrong(
  name: string,
  kinds: readonly NameKind[],
  resourceTypes: readonly string[],
): string | undefined {
  if (name === '*' && kinds.includes('*')) {
    return undefined;
  }
  const slash = name.lastIndexOf('/');
  if (slash > 0 && kinds.includes('id/resource type')) {
    return whyNoId(name.slice(0, slash)) ?? whyNoType(name.slice(slash + 1), resourceTypes);
  }
  return kinds.includes('resource type') ? whyNoType(name, resourceTypes) : whyNoId(name);
}

function whyNoId(id: string): string | undefined {
  if (!NO_ID.test(id)) {
    return undefined;
  }
  return id.includes('*')
    ? 'is not an id: wildcards are not supported'
    : 'is not an id: it contains a blank or an invisible character; separate ids by commas';
}

function whyNoType(type: string, resourceTypes: readonly string[]): string | undefined {
  if (resourceTypes.includes(type)) {
    return undefined;
  }
  // `host` means `physical:host`, although other names are nearer letter by letter.
  const whole = resourceTypes.find((one) => one.split(':').includes(type.toLowerCase().replace(/s$/, '')));
  const nearest = whole === undefined ? nearestName(type, resourceTypes) : nearestName(whole, [whole]);
  return `is not a resource type${nearest}; types of other plug-ins belong in [enforcement] resource_types`;
}
