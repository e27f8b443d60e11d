/** Whether the ledger is used, and for what. */

import type { StoredKind } from '../decisions/store/queue.ts';
import { type Configuration, sectionOf } from '../enforcement/configuration.ts';
import { serviceSection } from './options.ts';

/** Whether an enabled filter needs the ledger. */
export function filtersUseLedger(configuration: Configuration): boolean {
  return configuration.filters.some(
    ({ installed: { filterClass }, options }) =>
      'claims' in filterClass.prototype || filterClass.needsLedger?.(options as never) === true,
  );
}

/** Which decisions are stored in it. */
export function storedKind(configuration: Configuration): StoredKind {
  const { decision_store: kind } = sectionOf(configuration, serviceSection);
  return kind ?? (filtersUseLedger(configuration) ? 'refused' : 'none');
}
