import type { BudgetWatch } from '../ledger/outbox/crossings.ts';
import { type Configuration, sectionOf } from './configuration.ts';
import { hasReceiver, notificationsSection } from './notifications/options.ts';

/** What announces events, and its options; `undefined`, and nothing is loaded, without a receiver in `[notifications]`. */
export async function notificationsOf(configuration: Configuration) {
  const options = sectionOf(configuration, notificationsSection);
  if (!hasReceiver(options)) {
    return undefined;
  }
  const { Notifications, budgetWatch } = await import('./notifications/notifications.ts');
  return { Notifications, options, watch: budgetWatch(options) };
}

/** The ledger's watch for budget events; `undefined` = nothing is announced. */
export async function watchOf(configuration: Configuration): Promise<BudgetWatch | undefined> {
  return (await notificationsOf(configuration))?.watch;
}
