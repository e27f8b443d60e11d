/** Shared by the tests of LeaseDatesFilter: the filter with its options, and requests with other dates. */
import type { Lease, UsageEnforcement } from '../../src/index.ts';
import { createPhysicalHost } from '../support/requests.ts';
import { loadFilter, type Setup } from './loaded.ts';

export const DAY = 86_400;

export function load(lines: readonly string[], setup?: Setup): Promise<UsageEnforcement> {
  return loadFilter('LeaseDatesFilter', lines, setup);
}

/** A captured request with other dates. */
export async function create(lines: readonly string[], dates: Partial<Lease>, setup?: Setup) {
  const { context, lease } = createPhysicalHost();
  return (await load(lines, setup)).checkCreate({ context, lease: { ...lease, ...dates } });
}

export function starting(lines: readonly string[], start_date: Lease['start_date'], setup?: Setup) {
  return create(lines, { start_date, end_date: '9999-12-31' } as Lease, setup);
}

export function ending(lines: readonly string[], end_date: Lease['end_date'], setup?: Setup) {
  return create(lines, { start_date: '2026-11-21T09:00', end_date } as Lease, setup);
}
