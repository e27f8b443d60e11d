import type { Rule } from './rule.ts';

/** What of a rule only Keystone can tell, such as `Project.name`; `undefined` = nothing. */
export function needsNames({ match, allow, message, exempt }: Rule): string | undefined {
  for (const part of [match, allow, message]) {
    if (typeof part === 'object' && part.readName !== undefined) {
      return part.readName;
    }
  }
  return exempt.needsNames ? 'exempt by tag' : undefined;
}
