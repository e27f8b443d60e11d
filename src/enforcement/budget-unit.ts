import type { Configuration } from './configuration.ts';

const OPTION = 'usage_budget_unit';

/**
 * The unit of budgets: `usage_budget_unit` in `[enforcement]`, whether or not its filter is enabled; in `[skypilot]` if only a policy there uses budgets.
 */
export function budgetUnit({ settings, filters }: Pick<Configuration, 'settings' | 'filters'>): string {
  const [own, ofLaunches] = ['enforcement', 'skypilot'].map((section) => {
    const value = settings.find(({ option }) => option.section === section && option.name === OPTION)?.value;
    return typeof value === 'string' ? value : undefined;
  });
  const isOwn = filters.some(({ installed }) => installed.options.some(({ name }) => name === OPTION));
  return (isOwn ? own : (ofLaunches ?? own)) ?? 'unit-hours';
}
