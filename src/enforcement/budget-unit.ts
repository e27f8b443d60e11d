import type { Configuration } from './configuration.ts';

/** The unit of budgets: `usage_budget_unit`, whether or not its filter is enabled. */
export function budgetUnit({ settings }: Pick<Configuration, 'settings'>): string {
  const setting = settings.find(
    ({ option }) => option.section === 'enforcement' && option.name === 'usage_budget_unit',
  );
  return typeof setting?.value === 'string' ? setting.value : 'unit-hours';
}
