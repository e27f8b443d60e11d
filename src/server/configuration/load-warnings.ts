/** Warnings about a configuration that has just been loaded. */
import type { Logger } from '../../base/logger.ts';
import { accountsIn } from '../../config/names.ts';
import type { UsageEnforcement } from '../../enforcement/enforcement.ts';
import type { Keystone } from '../../openstack/contract.ts';
import { readLedger } from '../metrics/cached.ts';
import type { Generation } from './generation.ts';

/** Keystone is not asked about further ids and names of a configuration. */
const MOST_ASKED = 1000;

/**
 * Of limits and exemptions for projects and users that Keystone does not have: they never apply. Never rejects:
 * a Keystone that does not answer is reported elsewhere.
 */
export async function warnOfUnknownNames(
  { configuration, enforcement: { keystone, names } }: Pick<Generation, 'configuration' | 'enforcement'>,
  logger: Pick<Logger, 'warn'>,
): Promise<void> {
  if (keystone === undefined || names === undefined) {
    return;
  }
  const accounts = configuration.settings.flatMap(({ option, value }) =>
    accountsIn(value, option).map((name) => ({ option: `[${option.section}] ${option.name}`, name })),
  );
  for (const account of accounts.slice(0, MOST_ASKED)) {
    try {
      const { name } = account;
      if (!(await isKnown(keystone, 'project', name)) && !(await isKnown(keystone, 'user', name))) {
        logger.warn(
          account,
          'Keystone finds no project or user of this id or name: what the option says of it never applies',
        );
      }
    } catch {
      return;
    }
  }
}

/** @throws Error if Keystone does not answer */
async function isKnown(keystone: Keystone, kind: 'project' | 'user', account: string): Promise<boolean> {
  const { accountIdOf, isPlausible, readRecord } = await import('../../openstack/identity-records.ts');
  if (account.includes('@')) {
    return (await accountIdOf(keystone, kind, account)) !== undefined;
  }
  if (!isPlausible(account)) {
    return false;
  }
  const record = await readRecord(keystone, kind, account);
  if (!('missing' in record)) {
    return true;
  }
  if (record.missing !== 'unknown') {
    throw new Error(record.error);
  }
  return false;
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
