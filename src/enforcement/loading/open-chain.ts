/** The filters of a configuration, in order: constructed and opened when it is loaded, closed at the end. */

import { ConfigurationError, errorText } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { withOrigin } from '../../config/option-groups.ts';
import type { FilterServices } from '../../filter/services.ts';
import type { ChainedFilter } from '../chain/hook.ts';
import type { Configuration } from '../configuration.ts';
import type { Occupation } from '../occupation.ts';

/** Throws `ConfigurationError` if a filter refuses its options. The filters before it are then closed. */
export async function openChain(
  { filters, settings }: Configuration,
  services: FilterServices,
  occupation: Occupation,
): Promise<ChainedFilter[]> {
  const chain: ChainedFilter[] = [];
  for (const { installed, options, audit } of filters) {
    const { name, filterClass } = installed;
    const execution = occupation.executionOf(name);
    try {
      execution.begin();
      const filter = new filterClass(options as never, services);
      chain.push({ name, audit, filter, execution });
      const opened = filter.open();
      execution.end();
      await opened;
    } catch (thrown) {
      await closeChain(chain, services.logger);
      if (thrown instanceof ConfigurationError) {
        throw new ConfigurationError(thrown.problems.map((problem) => withOrigin(problem, settings)));
      }
      const message = `${name} could not be set up: ${errorText(thrown)}`;
      throw new ConfigurationError([
        { severity: 'error', section: 'enforcement', option: 'enabled_filters', message },
      ]);
    }
  }
  return chain;
}

/** Closes every filter, even if some of them fail. */
export async function closeChain(chain: readonly ChainedFilter[], logger: Logger): Promise<void> {
  await Promise.all(
    chain.map(async ({ name, filter, execution }) => {
      try {
        execution.begin();
        const closed = filter.close();
        execution.end();
        await closed;
      } catch (thrown) {
        logger.error({ filter: name, error: errorText(thrown) }, 'filter could not be closed');
      }
    }),
  );
}
