/** A filter's own checks of its options. A check that throws is reported as one more mistake. */

import type { OptionsCheck } from '../config/option-groups.ts';
import type { Setting } from '../config/resolve.ts';
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
  return async (values, settings) => {
    try {
      const problems = (await filterClass.check?.(values, settings)) ?? [];
      const what = incomplete ? undefined : filterClass.limitsNothing?.(values);
      return what === undefined ? problems : [...problems, warning(named, `${name} ${what}`)];
    } catch (thrown) {
      return [{ option: named, message: `${name} could not check its options: ${errorText(thrown)}` }];
    }
  };
}

/** A filter that sends tokens of Keystone, without a `[keystone]` to take them from. `options`: those of the filter, if they are valid. */
export function keystoneProblem(
  { filterClass }: InstalledFilter,
  options: unknown,
  settings: readonly Setting[],
): Problem[] {
  const needed = options === undefined ? undefined : filterClass.needsKeystone?.(options as never);
  const isSet = settings.some(
    ({ option: { section, name }, input }) =>
      section === 'keystone' && (name === 'auth_url' || name === 'cloud') && input !== undefined,
  );
  return needed === undefined || isSet
    ? []
    : [
        {
          severity: 'error',
          section: 'enforcement',
          option: needed,
          message: 'needs an account at Keystone: set [keystone] auth_url or cloud',
        },
      ];
}

function warning(option: string, message: string): Problem {
  return { severity: 'warning', section: 'enforcement', option, message };
}
