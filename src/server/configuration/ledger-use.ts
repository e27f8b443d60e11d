/** Whether the ledger is used, and for what. */

import type { StoredKind } from '../../decisions/store/queue.ts';
import { type Configuration, sectionOf } from '../../enforcement/configuration.ts';
import { skypilotSection } from '../../skypilot/section.ts';
import { serviceSection } from './options.ts';

/** Whether an enabled filter needs the ledger. */
export function filtersUseLedger(configuration: Configuration): boolean {
  return configuration.filters.some(
    ({ installed: { filterClass }, options }) =>
      'claims' in filterClass.prototype || filterClass.needsLedger?.(options as never) === true,
  );
}

/** Whether a policy for SkyPilot needs it. */
export async function policiesUseLedger(configuration: Configuration): Promise<boolean> {
  const { admin_policies: specifiers } = sectionOf(configuration, skypilotSection);
  if (specifiers.length === 0) {
    return false;
  }
  const { loadPolicies } = await import('../../skypilot/policies/policy-loader.ts');
  const { policies } = await loadPolicies(specifiers, skypilotSection.section, []);
  return policies.some(({ policyClass }) => policyClass.needs?.includes('ledger') === true);
}

/** Which decisions are stored in it. */
export async function storedKind(configuration: Configuration): Promise<StoredKind> {
  const { decision_store: kind } = sectionOf(configuration, serviceSection);
  if (kind !== undefined) {
    return kind;
  }
  const isUsed = filtersUseLedger(configuration) || (await policiesUseLedger(configuration));
  return isUsed ? 'refused' : 'none';
}
