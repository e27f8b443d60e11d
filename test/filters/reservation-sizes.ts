/** Shared by the tests of MaxReservationSizeFilter: requests with reservations, and the filter with its limits. */
import type { Context, CreateRequest, Reservation, UsageEnforcement } from '../../src/index.ts';
import { createPhysicalHost } from '../support/requests.ts';
import { loadFilter, type Setup } from './loaded.ts';

export function load(lines: readonly string[], setup?: Setup): Promise<UsageEnforcement> {
  return loadFilter('MaxReservationSizeFilter', lines, setup);
}

/** The captured request with other reservations, of alice in the project climate. */
export function reserving(
  reservations: readonly unknown[] | null | undefined,
  context: Partial<Context> = {},
): CreateRequest {
  const request = createPhysicalHost();
  const lease = { ...request.lease, reservations: reservations as Reservation[] };
  return { context: { ...request.context, user_id: 'alice', project_id: 'climate', ...context }, lease };
}

export const hosts = (max: unknown, more: object = {}) => ({
  resource_type: 'physical:host',
  min: 1,
  max,
  ...more,
});

export const of = (resource_type: string, amount: unknown) => ({ resource_type, amount });
