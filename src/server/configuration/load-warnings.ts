/** Warnings about a configuration that has just been loaded. */
import type { Logger } from '../../base/logger.ts';
import { accountNames } from '../../config/names.ts';
import type { UsageEnforcement } from '../../enforcement/enforcement.ts';
import { readLedger } from '../metrics/cached.ts';
import type { Generation } from './generation.ts';

/**
 * Of limits and exemptions by a name that Keystone does not have: they would never apply. Never rejects: a
 * Keystone that does not answer is reported elsewhere.
 */
export async function warnOfUnknownNames(
  { configuration, enforcement: { keystone, names } }: Pick<Generation, 'configuration' | 'enforcement'>,
  logger: Pick<Logger, 'warn'>,
): Promise<void> {
  if (keystone === undefined || names === undefined) {
    return;
  }
  const { accountIdOf } = await import('../../openstack/identity-records.ts');
  for (const { option, value } of configuration.settings) {
    for (const name of accountNames(value, option)) {
      try {
        const id =
          (await accountIdOf(keystone, 'project', name)) ?? (await accountIdOf(keystone, 'user', name));
        if (id === undefined) {
          logger.warn(
            { option: `[${option.section}] ${option.name}`, name },
            'Keystone finds no project or user of this name: what the option says of it never applies',
          );
        }
      } catch {
        return;
      }
    }
  }
}

type Deliverer = Pick<UsageEnforcement, 'ledger' | 'outbox' | 'delivers'>;

/**
 * Of messages without delivery, by sender: a reload removed their filter, its durable delivery or
 * `[notifications]`. `before`: the old configuration, whose ledger may differ.
 */
export async function warnOfUndelivered(
  current: Deliverer,
  before: Deliverer | undefined,
  logger: Pick<Logger, 'warn'>,
): Promise<void> {
  const ledger = current.outbox ?? current.ledger ?? before?.outbox ?? before?.ledger;
  if (ledger === undefined) {
    return;
  }
  const { waitingBySender } = await import('../../ledger/outbox/reports.ts');
  // An unavailable ledger is reported elsewhere.
  for (const [sender, messages] of (await readLedger(ledger, waitingBySender)) ?? []) {
    if (!current.delivers(sender)) {
      logger.warn(
        { filter: sender, messages },
        'messages wait in the outbox, and nothing delivers them with this configuration: see blazar-enforcement outbox list',
      );
    }
  }
}
