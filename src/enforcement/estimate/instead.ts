/** What would be allowed instead of a lease that is refused, and what was looked for. */
import { LedgerUnavailableError } from '../../errors.ts';
import type { Decision } from '../../filter/verdict.ts';
import type { Foreseen } from '../../ledger/foreseen.ts';
import type { Estimate, Suggestion } from './contract.ts';
import { LATEST, SHORTEST } from './dates.ts';
import { type Candidate, halves, search } from './search.ts';
import { type Trial, TrialFailedError, TrialOverError } from './trial.ts';

type Instead = Pick<Estimate, 'suggestions' | 'searched'>;

const CHANGES = ['shorter', 'smaller', 'later'] as const;

const FAILED = 'A filter could not decide, so nothing else was looked for.';
const LOOKED = `Looked for the nearest lease that is shorter (at least ${SHORTEST} minutes, or less if less was asked for), smaller (not below min, and at least 1) or later (by up to ${LATEST} days).`;

/** Every suggestion was allowed by every filter, after the ledger was read once more. */
export async function instead(trial: Trial, decision: Decision, foreseen: Foreseen): Promise<Instead> {
  const { lease, outcomes } = decision;
  const enforced = outcomes.filter(({ audit }) => !audit);
  if (decision.failed || enforced.some(({ failed }) => failed)) {
    return { suggestions: [], searched: FAILED };
  }
  const refusers = new Set(enforced.filter(({ allowed }) => !allowed).map(({ filter }) => filter));
  if (decision.filter !== null) {
    refusers.add(decision.filter);
  }
  const elsewhere = [...refusers].filter((name) => trial.isElsewhere(name));
  const suggestions: Suggestion[] = [];
  const said: string[] = [];
  try {
    if (elsewhere.length === refusers.size) {
      said.push(
        `${elsewhere.join(', ')} does not answer here: it was asked only about half the time, and about half the resources.`,
      );
      await confirm(trial, halves(lease, foreseen), suggestions, said);
    } else {
      const { candidates, isCutShort } = await search(trial, lease, foreseen, refusers);
      said.push(LOOKED, ...(isCutShort ? ['The search ended before everything was looked at.'] : []));
      const missing = CHANGES.filter((change) => !candidates.some((one) => one.change === change));
      said.push(...missing.map((change) => `Found none that is ${change}.`));
      await confirm(trial, candidates, suggestions, said);
    }
  } catch (thrown) {
    if (thrown instanceof TrialFailedError || thrown instanceof LedgerUnavailableError) {
      said.push('A filter failed meanwhile.');
    } else if (thrown instanceof TrialOverError) {
      said.push('The time was over before everything was looked at.');
    } else {
      throw thrown;
    }
  }
  return { suggestions, searched: said.join(' ') };
}

/** Adds those that every filter allows. */
async function confirm(
  trial: Trial,
  candidates: readonly Candidate[],
  suggestions: Suggestion[],
  said: string[],
): Promise<void> {
  for (const [index, { change, lease, text }] of candidates.entries()) {
    if (index === 0) {
      trial.refresh(lease);
    }
    const allowed = await trial.isAllowed(lease);
    if (allowed === undefined) {
      const rest = candidates.slice(index).map((one) => `a ${one.change} one`);
      said.push(`Another service was not asked about ${rest.join(' and ')}: it was asked often enough.`);
      return;
    }
    if (allowed) {
      const { charges } = await trial.foresee(lease);
      suggestions.push({ change, lease, text, charges });
    } else {
      said.push(`One that is ${change} was refused in the end.`);
    }
  }
}
