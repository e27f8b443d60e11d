/** What a filter itself has against its options. A filter may be anybody's: what it throws is one more mistake, and hides no other. */

import type { OptionsCheck } from '../config/option-groups.ts';
import { errorText, type Problem } from '../errors.ts';
import type { InstalledFilter } from './filter-loader.ts';

/**
 * `named` = the option that names the filter, for what is no single option's. `incomplete` = its options are not all known: it is
 * not said that they limit nothing.
 */
export function checkOf(
  { name, filterClass }: InstalledFilter,
  named: string,
  incomplete: boolean,
): OptionsCheck {
  return async (values) => {
    try {
      const problems = (await filterClass.check?.(values)) ?? [];
      const what = incomplete ? undefined : filterClass.limitsNothing?.(values);
      return what === undefined ? problems : [...problems, warning(named, `${name} ${what}`)];
    } catch (thrown) {
      return [{ option: named, message: `${name} could not check its options: ${errorText(thrown)}` }];
    }
  };
}

function warning(option: string, message: string): Problem {
  return { severity: 'warning', section: 'enforcement', option, message };
}
