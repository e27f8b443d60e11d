/** Whether filters charge the budgets that rules read: where none does, `taken()` would be 0 for ever. */

import type { Problem } from '../../base/errors.ts';
import type { Setting } from '../../config/resolve.ts';
import type { Rule } from '../rule.ts';

const CHARGING = 'UsageBudgetFilter';
/** Filters of the package that charge none; others may. */
export const NOT_CHARGING: ReadonlySet<string> = new Set([
  'ExternalServiceFilter',
  'LeaseDatesFilter',
  'MaxLeaseDurationFilter',
  'MaxLeasesFilter',
  'MaxReservationSizeFilter',
  'RulesFilter',
  'SchedulingPolicyFilter',
]);
const OF_BUDGETS: ReadonlySet<string> = new Set(['taken()', 'left()']);

/** Rules that read budgets which nobody charges. `leases()` needs nothing more: leases are recorded for the rule. */
export function unchargedProblems(rules: readonly Rule[], settings: readonly Setting[]): Problem[] {
  const named = ['enabled_filters', 'audit_filters'].flatMap((name) => {
    const setting = settings.find(({ option }) => option.section === 'enforcement' && option.name === name);
    return Array.isArray(setting?.value) ? setting.value.map(String) : [];
  });
  if (named.length === 0 || named.some((name) => !NOT_CHARGING.has(name))) {
    return [];
  }
  return rules.flatMap(({ name, needs }) =>
    needs
      .filter(({ of, text }) => of === 'ledger' && OF_BUDGETS.has(text))
      .map(
        ({ text, place }): Problem => ({
          severity: 'error',
          origin: { kind: 'file', ...place },
          message: `rule ${name}: ${text} reads budgets, and nothing charges leases to them: add ${CHARGING} to [enforcement] enabled_filters; leases() counts leases without it`,
        }),
      ),
  );
}
