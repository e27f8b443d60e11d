import type { BudgetWatch } from '../ledger/outbox/crossings.ts';
import { type Configuration, sectionOf } from './configuration.ts';
import { hasReceiver, notificationsSection } from './notifications/options.ts';

/** What announces events, and its options; `undefined`, and nothing is loaded, without a receiver in `[notifications]`. */
export async function noticesOf(configuration: Configuration) {
  const options = sectionOf(configuration, notificationsSection);
  return hasReceiver(options)
    ? { ...(await import('./notifications/notifications.ts')), options }
    : undefined;
}

/** The ledger's watch for budget events; `undefined` = nothing is announced. */
export async function watchOf(configuration: Configuration): Promise<BudgetWatch | undefined> {
  const notices = await noticesOf(configuration);
  return notices?.budgetWatch(notices.options);
}
