/** Names in lists and dictionaries: ids and resource types. A limit for an unknown name would never apply. */

import { isMapping } from '../base/yaml/tree.ts';
import { shownName } from './layer.ts';
import { nearestName } from './nearest.ts';
import type { NameKind, Option } from './option.ts';
import { showText } from './secret.ts';
import { MismatchError } from './typed.ts';

/**
 * The types of Blazar's plug-ins, and of network and device plug-ins of sites. `[enforcement] resource_types`
 * adds others. Source: Blazar, `RESOURCE_TYPE` of each plug-in.
 */
export const RESOURCE_TYPES = [
  'physical:host',
  'virtual:instance',
  'flavor:instance',
  'virtual:floatingip',
  'network',
  'device',
] as const;

/** Blanks, invisible characters and wildcards: ids of Keystone and Blazar never contain them. */
const NO_ID = /[\s\p{C}*]/u;

/**
 * Throws a `MismatchError` with all wrong names. `secret`: they are not shown. `isContinued`: one may be an
 * option on an indented line, and is shown without the value.
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
  const wrong = namesIn(value).flatMap((name) => {
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
  const account = kinds.includes('name@domain') ? whyNoAccount : whyNoId;
  if (slash > 0 && (kinds.includes('id/resource type') || kinds.includes('tag/resource type'))) {
    const whyWrongHolder = kinds.includes('tag/resource type') ? whyNoTag : account;
    return whyWrongHolder(name.slice(0, slash)) ?? whyNoType(name.slice(slash + 1), resourceTypes);
  }
  if (kinds.includes('resource type')) {
    return whyNoType(name, resourceTypes);
  }
  if (slash > 0 && resourceTypes.includes(name.slice(slash + 1))) {
    return 'ends with a resource type, and this option is not for single types';
  }
  return kinds.includes('tag') ? whyNoTag(name) : account(name);
}

function whyNoId(id: string): string | undefined {
  if (!NO_ID.test(id)) {
    return undefined;
  }
  return id.includes('*')
    ? 'is not an id: wildcards are not supported'
    : 'is not an id: it contains a blank or an invisible character; separate ids by commas';
}

/** Blanks other than the space, invisible characters and wildcards. */
const NO_NAME = /[^\S ]|[\p{C}*]/u;
/** Matches a missing comma: the end of a pair or a name, then a blank. */
const MISSING_COMMA = /(?::\s*[+-]?\d+|@\S*)\s/;

/** An id, or `name@domain`. The last `@` separates them; spaces are allowed only within them. */
function whyNoAccount(account: string): string | undefined {
  const at = account.lastIndexOf('@');
  if (at < 0) {
    return whyNoId(account);
  }
  const name = account.slice(0, at);
  const domain = account.slice(at + 1);
  if (name === '' || domain === '') {
    return 'is neither an id nor name@domain: a part is empty';
  }
  if (NO_NAME.test(account)) {
    return account.includes('*')
      ? 'is neither an id nor name@domain: wildcards are not supported'
      : 'is neither an id nor name@domain: it contains a line break, a tab or an invisible character; separate names by commas';
  }
  if (name.trim() !== name || domain.trim() !== domain) {
    return 'is neither an id nor name@domain: there is a blank beside its "@"';
  }
  return MISSING_COMMA.test(name)
    ? 'is neither an id nor name@domain: is a comma missing before the blank? If not, use the id'
    : undefined;
}

/** Keystone accepts any text without commas and slashes. */
function whyNoTag(tag: string): string | undefined {
  if (NO_NAME.test(tag)) {
    return tag.includes('*')
      ? 'is not a tag: wildcards are not supported'
      : 'is not a tag: it contains a line break, a tab or an invisible character; separate tags by commas';
  }
  if (/[,/]/.test(tag)) {
    return 'is not a tag: tags contain no commas and no slashes';
  }
  return MISSING_COMMA.test(tag) ? 'is not a tag: is a comma missing before the blank?' : undefined;
}

/** A name or tag in the value of an option, which only Keystone can verify; `undefined` = all are ids. */
export function firstKeystoneName(value: unknown, { names: kinds }: Option): string | undefined {
  const names = namesIn(value);
  if (kinds.includes('tag') || kinds.includes('tag/resource type')) {
    return names[0];
  }
  return kinds.includes('name@domain') ? names.find((name) => name.includes('@')) : undefined;
}

/** The projects and users in a value, each as an id or `name@domain`. */
export function accountsIn(value: unknown, { names: kinds }: Option): string[] {
  const isOfType = kinds.includes('id/resource type');
  return kinds.includes('name@domain')
    ? namesIn(value).map((name) => (isOfType ? name.replace(/\/[^/]*$/, '') : name))
    : [];
}

function namesIn(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : isMapping(value) ? Object.keys(value) : [];
}

/** Completes `"host" …`; `undefined` = the type is known. */
export function whyNoType(type: string, resourceTypes: readonly string[]): string | undefined {
  if (resourceTypes.includes(type)) {
    return undefined;
  }
  // `host` means `physical:host`, although other names are closer by letters.
  const whole = resourceTypes.find((one) => one.split(':').includes(type.toLowerCase().replace(/s$/, '')));
  const nearest = whole === undefined ? nearestName(type, resourceTypes) : nearestName(whole, [whole]);
  return `is not a resource type${nearest}; types of other plug-ins belong in [enforcement] resource_types`;
}
