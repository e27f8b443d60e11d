/** Builds the filters of a configuration and what they need. */

import { withinAMinute } from '../../base/deadline.ts';
import { ConfigurationError, errorText, isInstance } from '../../base/errors.ts';
import { LimitedLogger } from '../../base/limited-logger.ts';
import type { Logger } from '../../base/logger.ts';
import { mistakesAt } from '../../config/option-groups.ts';
import { isLedgerFilter } from '../../filter/base-filter.ts';
import type { Clock, FilterServices } from '../../filter/services.ts';
import { ledgerSection } from '../../ledger/options.ts';
import { ChainOutbox } from '../../ledger/outbox/chain-outbox.ts';
import { ChainLedger } from '../../ledger/service.ts';
import type { Keystone } from '../../openstack/contract.ts';
import type { Names } from '../../openstack/names.ts';
import { placeOf } from '../../plugin/import-errors.ts';
import { Exemptions } from '../chain/chain.ts';
import type { Commits } from '../chain/commit.ts';
import type { ChainedFilter } from '../chain/hook.ts';
import { RecentChanges } from '../chain/recent-changes.ts';
import { type Configuration, sectionOf } from '../configuration.ts';
import { notificationsOf } from '../configured-notifications.ts';
import { ExecutionTracker } from '../execution-tracker.ts';
import { keystoneOf, NO_KEYSTONE, namesOf } from '../keystone.ts';
import type { Notifications } from '../notifications/notifications.ts';
import { createSharedServices, type WatchedServices } from '../services.ts';

export interface Parts {
  readonly chain: readonly ChainedFilter[];
  readonly ledger: ChainLedger;
  readonly keystone: Keystone | undefined;
  readonly names: Names | undefined;
  readonly outbox: ChainOutbox;
  readonly notifications: Notifications | undefined;
  /** Limited for each filter: users cause its lines. */
  readonly logger: LimitedLogger;
  readonly clock: Clock;
  readonly exemptions: Exemptions;
  /** `undefined` = no filter records leases. */
  readonly commits: Commits | undefined;
  /** Whether a check records the lease that it allows. */
  readonly commitsChecks: boolean;
  /** `undefined` = the ledger refuses changes of a lease that is being changed. */
  readonly changes: RecentChanges | undefined;
}

/** Constructs and opens everything. On failure, closes what was opened. @throws ConfigurationError */
export async function openParts(configuration: Configuration, services: WatchedServices): Promise<Parts> {
  const shared = createSharedServices(services);
  const { logger, clock } = shared;
  const limited = new LimitedLogger(logger, 'filter');
  const ledgerOptions = sectionOf(configuration, ledgerSection);
  const keystone = await keystoneOf(configuration, shared, services.keystone);
  const namesParts = { logger, clock, observer: services.namesObserver };
  const names = await namesOf(configuration, keystone, namesParts, services.earlierNames);
  const { ledgerObserver: observer } = services;
  const notices = await notificationsOf(configuration);
  const ledger = new ChainLedger(ledgerOptions, {
    logger,
    clock,
    observer,
    watch: notices?.watch,
  });
  const outbox = new ChainOutbox({ ledger, logger, observer });
  const chain = await openChain(
    configuration,
    { ...shared, logger: limited, ledger, outbox, keystone: keystone ?? NO_KEYSTONE },
    services.executions ?? new ExecutionTracker(),
  ).catch(async (thrown: unknown) => {
    await ledger.close();
    await keystone?.close();
    throw thrown;
  });
  const notifications = await notices?.Notifications.open({
    ledger,
    outbox,
    services: shared,
    options: notices.options,
    dropped: (event) => observer?.noticeDropped?.(event),
  }).catch(async (thrown: unknown) => {
    await closeChain(chain, logger);
    await ledger.close();
    await keystone?.close();
    throw thrown;
  });
  const commits = chain.some(recordsLeases)
    ? new (await import('../chain/commit.ts')).Commits({ chain, ledger, outbox, logger: limited })
    : undefined;
  const exemptions = new Exemptions(configuration.exemptProjects, logger);
  const commitsChecks = ledgerOptions.commit === 'check' && commits !== undefined;
  return {
    chain,
    ledger,
    outbox,
    keystone,
    names,
    logger: limited,
    clock,
    exemptions,
    commits,
    commitsChecks,
    changes:
      commitsChecks && chain.some(({ filter, audit }) => !audit && isLedgerFilter(filter))
        ? undefined
        : new RecentChanges(),
    notifications,
  };
}

function recordsLeases({ filter }: ChainedFilter): boolean {
  return isLedgerFilter(filter) || filter.commitCreate !== undefined || filter.commitUpdate !== undefined;
}

/** Throws `ConfigurationError` if a filter refuses its options. Filters before it are then closed. */
export async function openChain(
  { filters, settings }: Configuration,
  services: FilterServices,
  executions: ExecutionTracker,
): Promise<ChainedFilter[]> {
  const chain: ChainedFilter[] = [];
  for (const { installed, options, audit } of filters) {
    const { name, file, filterClass } = installed;
    const execution = executions.executionOf(name);
    try {
      await withinAMinute(() =>
        execution.run(() => {
          const filter = new filterClass(options as never, services);
          chain.push({ name, audit, filter, execution });
          return filter.open();
        }),
      );
    } catch (thrown) {
      await closeChain(chain, services.logger);
      if (isInstance(thrown, ConfigurationError)) {
        throw mistakesAt(thrown.problems, settings);
      }
      const option = audit ? 'audit_filters' : 'enabled_filters';
      const message = `${name} could not be set up: ${errorText(thrown)}${placeOf(thrown, file)}`;
      throw mistakesAt([{ severity: 'error', section: 'enforcement', option, message }], settings);
    }
  }
  return chain;
}

/** Closes every filter, even if some of them fail. */
export async function closeChain(chain: readonly ChainedFilter[], logger: Logger): Promise<void> {
  await Promise.all(
    chain.map(async ({ name, filter, execution }) => {
      try {
        await withinAMinute(() => execution.run(() => filter.close()));
      } catch (thrown) {
        logger.error({ filter: name, error: errorText(thrown) }, 'filter could not be closed');
      }
    }),
  );
}
