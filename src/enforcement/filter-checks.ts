/** A filter's own checks of its options. A check that throws is reported as one more mistake. */

import type { OptionsCheck } from '../config/option-groups.ts';
import { errorText, type Problem } from '../errors.ts';
import type { InstalledFilter } from './filter-catalog.ts';

/**
 * `named`: the option that names the filter; mistakes that do not belong to one option are reported there. `incomplete`: some
 * options are wrong, so there is no warning that they limit nothing.
 */
export function filterCheck(
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
