/** Opens the configured ledger for commands. */
import { userInfo } from 'node:os';
import { waitFor } from '../../base/deadline.ts';
import { ConfigurationError, errorText, LedgerUnavailableError } from '../../base/errors.ts';
import type { Configuration } from '../../enforcement/configuration.ts';
import { SYSTEM_CLOCK } from '../../filter/services.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { LedgerOptions } from '../../ledger/options.ts';
import type { Connection } from '../../ledger/storage/connection.ts';
import { fail, printWarnings } from '../common/output.ts';
import { type SourceFlags, sourcesOf } from '../common/sources.ts';

interface ConfiguredLedger {
  readonly configuration: Configuration;
  readonly options: LedgerOptions;
  readonly connection: Connection;
}

export interface LedgerAccess extends ConfiguredLedger {
  readonly ledger: Ledger;
}

/** Commands have no deadline: `[ledger] timeout` bounds each transaction. */
export const NO_DEADLINE = waitFor(undefined);

/** Reads `[ledger]`. Throws `ConfigurationError`; prints warnings. */
export async function configuredLedger(flags: SourceFlags): Promise<ConfiguredLedger> {
  const { requireConfiguration, sectionOf } = await import('../../enforcement/configuration.ts');
  const { SECTIONS } = await import('../../server/configuration/sections.ts');
  const { ledgerSection } = await import('../../ledger/options.ts');
  const { connectionOf } = await import('../../ledger/open.ts');
  const configuration = await requireConfiguration(sourcesOf(flags), SECTIONS);
  printWarnings(configuration.problems);
  const options = sectionOf(configuration, ledgerSection);
  return { configuration, options, connection: connectionOf(options) };
}

/** Opens the ledger for some work. If it cannot be read or written, prints one line and sets exit code 3. */
export async function withLedger(
  flags: SourceFlags,
  work: (access: LedgerAccess) => Promise<void>,
): Promise<void> {
  const configured = await configuredLedger(flags);
  const { openLedger } = await import('../../ledger/open.ts');
  const { watchOf } = await import('../../enforcement/configured-notifications.ts');
  const watch = await watchOf(configured.configuration);
  await reportingFailures(configured, async () => {
    const opened = openLedger(configured.options, { clock: SYSTEM_CLOCK, observer: undefined, watch });
    try {
      await opened.verify();
      await work({ ...configured, ledger: opened.ledger });
    } finally {
      await opened.ledger.close();
    }
  });
}

/** A mistake in the configuration is thrown with its place; a failure of the database is printed. */
export async function reportingFailures(
  { configuration, connection }: ConfiguredLedger,
  work: () => Promise<void>,
): Promise<void> {
  const { describeConnection } = await import('../../ledger/storage/connection.ts');
  try {
    await work();
  } catch (thrown) {
    if (thrown instanceof ConfigurationError) {
      const { mistakesAt } = await import('../../config/option-groups.ts');
      throw mistakesAt(thrown.problems, configuration.settings);
    }
    if (!(thrown instanceof LedgerUnavailableError)) {
      throw thrown;
    }
    fail(`${describeConnection(connection)}: ${errorText(thrown)}`);
  }
}

export function authorOf({ who, reason }: { readonly who?: string; readonly reason?: string }) {
  return { who: who ?? systemUser(), reason: reason ?? null };
}

export function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
