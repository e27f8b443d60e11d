/** Limits and exemptions by a name that Keystone does not have: they would never apply. */
import type { Logger } from '../../base/logger.ts';
import { accountNames } from '../../config/names.ts';
import type { Generation } from './generation.ts';

/** Logs a warning for each. Never rejects: a Keystone that does not answer is reported elsewhere. */
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
