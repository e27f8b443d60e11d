/** What is told of: a budget of one day and 1 unit-hour, of which most is taken, and a request for more. */
import { expect } from 'vitest';
import type { BudgetRequest } from '../../../src/ledger/budgets/requests/rows.ts';
import type { Crossing } from '../../../src/ledger/outbox/crossings.ts';

const HOUR = 3_600_000_000n;
const DAY = { validFrom: 0n, validUntil: 86_400n };

export function aCrossing(
  budget: Partial<Crossing['budget']> = {},
  changes: Partial<Omit<Crossing, 'budget'>> = {},
): Crossing {
  return {
    budget: { id: 1n, projectId: 'climate', userId: null, ...DAY, amount: HOUR, ...budget },
    threshold: 80,
    before: 0n,
    taken: (HOUR * 8n) / 10n,
    at: 0n,
    cause: 'create',
    who: 'alice',
    requestId: 'req-1',
    ...changes,
  };
}

export function aBudgetRequest(changes: Partial<BudgetRequest> = {}): BudgetRequest {
  return {
    id: 17n,
    projectId: 'climate',
    userId: 'alice',
    amount: HOUR,
    validUntil: DAY.validUntil,
    reason: 'a workshop',
    asker: 'secret',
    asked: { at: 0n, who: 'alice' },
    endorsed: null,
    settled: null,
    granted: null,
    state: 'requested',
    ...changes,
  };
}

export const OPERATOR_TOKEN = 'of-an-operator-0123456789abcdef';

/** A call of the API for budget requests, which must succeed. */
export async function askForBudget(
  url: string,
  path: string,
  body: object,
): Promise<{ readonly id: string }> {
  const answer = await fetch(`${url}/v1/budget-requests${path}`, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'Content-Type': 'application/json', 'X-Auth-Token': OPERATOR_TOKEN },
  });
  const json: unknown = await answer.json();
  expect([200, 201], JSON.stringify(json)).toContain(answer.status);
  return json as { readonly id: string };
}
