/** Shared by the tests of UsageBudgetFilter: leases that cost something, and a chain with budgets. */
import type { Context, CreateRequest, Lease, Reservation, UpdateRequest } from '../../src/index.ts';
import type { BudgetText } from '../support/ledgers.ts';
import { createHost } from '../support/requests.ts';
import { type LedgerSetup, onLedger } from './on-ledger.ts';

export async function withBudgets(
  budgets: readonly (string | BudgetText)[],
  options: Readonly<Record<string, unknown>> = {},
  setup: Partial<LedgerSetup> = {},
) {
  const chain = await onLedger({ enabled: ['UsageBudgetFilter'], ...setup, options });
  for (const budget of budgets) {
    await chain.budget(typeof budget === 'string' ? { amount: budget } : budget);
  }
  return chain;
}

/** The cost of a lease of ten hours with these reservations: the smallest sufficient budget, as text. */
export async function refusal(
  reservations: readonly unknown[],
  options: Readonly<Record<string, unknown>> = {},
): Promise<string | null> {
  const { enforcement } = await withBudgets(['0.000001'], options);
  const { message } = await enforcement.checkCreate(
    lasting(10, { reservations: reservations as Reservation[] }),
  );
  return message;
}

const START = Date.UTC(2026, 11, 1, 9);

/** The end of a lease of this many hours. */
export const endAfter = (hours: number): string => new Date(START + hours * 3_600_000).toISOString();

/** A lease of one host from 2026-12-01 09:00 on, of alice in the project climate. */
export function lasting(hours: number, lease: Lease = {}, context: Partial<Context> = {}): CreateRequest {
  const start_date = new Date(START).toISOString();
  const request = createHost({ start_date, end_date: endAfter(hours), reservations: [hosts(1)], ...lease });
  return { ...request, context: { ...request.context, ...context } };
}

export function change({ context, lease }: CreateRequest, changes: Lease): UpdateRequest {
  return { context, currentLease: { ...lease, id: '1' }, lease: changes };
}

export const hosts = (max: unknown, more: object = {}) =>
  ({ id: 'r', resource_type: 'physical:host', min: 1, max, ...more }) as Reservation;

/** Allocated hosts, each with this factor. */
export const found = (...factors: unknown[]) => ({
  allocations: factors.map((su_factor, index) => ({ id: `${index}`, su_factor })),
});
