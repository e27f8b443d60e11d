/** Limits and exemptions for projects and users that Keystone does not have: they never apply. */
import type { Logger } from '../../base/logger.ts';
import { accountsIn } from '../../config/names.ts';
import type { Keystone } from '../../openstack/contract.ts';
import type { Generation } from './generation.ts';

/** Logs a warning for each. Never rejects: a Keystone that does not answer is reported elsewhere. */
export async function warnOfUnknownNames(
  { configuration, enforcement: { keystone, names } }: Pick<Generation, 'configuration' | 'enforcement'>,
  logger: Pick<Logger, 'warn'>,
): Promise<void> {
  if (keystone === undefined || names === undefined) {
    return;
  }
  for (const { option, value } of configuration.settings) {
    for (const name of accountsIn(value, option)) {
      try {
        if (!(await isKnown(keystone, 'project', name)) && !(await isKnown(keystone, 'user', name))) {
          logger.warn(
            { option: `[${option.section}] ${option.name}`, name },
            'Keystone finds no project or user of this id or name: what the option says of it never applies',
          );
        }
      } catch {
        return;
      }
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
