import type { SharedServices } from '../filter/services.ts';
import type { LedgerObserver } from '../ledger/observer.ts';
import type { ChainOutbox } from '../ledger/outbox/chain-outbox.ts';
import type { BudgetWatch } from '../ledger/outbox/crossings.ts';
import type { ChainLedger } from '../ledger/service.ts';
import { type Configuration, sectionOf } from './configuration.ts';
import type { Notifications } from './notifications/notifications.ts';
import { hasReceiver, notificationsSection } from './notifications/options.ts';

interface Notices {
  /** For the ledger; `undefined` = nothing about budgets is announced. */
  readonly watch: BudgetWatch | undefined;
  /** Resolves to `undefined` without a receiver. @throws ConfigurationError if there is no usable ledger */
  open(parts: {
    readonly ledger: ChainLedger;
    readonly outbox: ChainOutbox;
    readonly services: SharedServices;
    readonly observer: LedgerObserver | undefined;
  }): Promise<Notifications | undefined>;
}

/** `undefined`, and nothing is loaded, without a receiver in `[notifications]`. */
export async function noticesOf(configuration: Configuration): Promise<Notices | undefined> {
  const options = sectionOf(configuration, notificationsSection);
  if (!hasReceiver(options)) {
    return undefined;
  }
  const { budgetWatch, Notifications } = await import('./notifications/notifications.ts');
  return {
    watch: budgetWatch(options),
    open: ({ observer, ...parts }) =>
      Notifications.open({ ...parts, options, dropped: (event) => observer?.noticeDropped?.(event) }),
  };
}

/** What the ledger of a command says about budgets. */
export async function watchOf(configuration: Configuration): Promise<BudgetWatch | undefined> {
  return (await noticesOf(configuration))?.watch;
}
