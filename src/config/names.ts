/** Names in lists and dictionaries: ids, and resource types. One that nothing has is a limit that nobody comes to. */

import { isMapping } from '../yaml/tree.ts';
import { shownName } from './layer.ts';
import { nearestName } from './nearest.ts';
import type { NameKind, Option } from './option.ts';
import { showText } from './secret.ts';
import { MismatchError } from './typed.ts';

/**
 * Those of Blazar's own plug-ins, and of those for networks and devices that sites use with it. Others are named by
 * `[enforcement] resource_types`. Source: Blazar, `RESOURCE_TYPE` of each plug-in.
 */
export const RESOURCE_TYPES = [
  'physical:host',
  'virtual:instance',
  'flavor:instance',
  'virtual:floatingip',
  'network',
  'device',
] as const;

/** Blanks, what nobody sees, and wildcards, which there are none of. No id of Keystone or Blazar has them. */
const NO_ID = /[\s\p{C}*]/u;

/**
 * Throws a `MismatchError` that names all of the names that are wrong. `secret` = they are not shown. `isContinued` = one may be
 * an option of its own on an indented line, and is shown up to where its value would begin.
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
    // What stands behind it may be a secret.
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
    ? 'is no id: there are no wildcards'
    : 'is no id: it has a blank or an invisible character in it; ids are separated by commas';
}

function whyNoType(type: string, resourceTypes: readonly string[]): string | undefined {
  if (resourceTypes.includes(type)) {
    return undefined;
  }
  // Half of a name is nearer to the whole than to another that is as short.
  const whole = resourceTypes.find((one) => one.split(':').includes(type.toLowerCase().replace(/s$/, '')));
  const nearest = whole === undefined ? nearestName(type, resourceTypes) : nearestName(whole, [whole]);
  return `is no resource type${nearest}; types of other plug-ins belong in [enforcement] resource_types`;
}
