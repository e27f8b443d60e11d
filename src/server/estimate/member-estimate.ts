/** What a member sees of an estimate: as of a decision, nothing of filters that are only tried, and not which let it through by failing. */
import type { Estimate, EstimatedCharge } from '../../enforcement/estimate/contract.ts';

export function memberEstimate(estimate: Estimate): Estimate {
  const { decision, charges, suggestions } = estimate;
  const tried = new Set(decision.outcomes.filter(({ audit }) => audit).map(({ filter }) => filter));
  const seen = (all: readonly EstimatedCharge[]) => all.filter(({ filter }) => !tried.has(filter));
  return {
    ...estimate,
    decision: {
      ...decision,
      warnings: [],
      outcomes: decision.outcomes
        .filter(({ audit }) => !audit)
        .map((one) => (one.onError ? { ...one, onError: false, message: null } : one)),
    },
    charges: seen(charges),
    suggestions: suggestions.map((one) => ({ ...one, charges: seen(one.charges) })),
  };
}
