/** The result of a hook → an `Outcome`, the report on one filter in a decision. */
import type { Outcome, Verdict } from '../filter/verdict.ts';
import type { ChainedFilter } from './chain.ts';

/** The verdict of one filter. With `failed`, the chain made the verdict: the filter threw, was too late or returned no verdict. */
export interface HookResult {
  readonly verdict: Verdict;
  readonly failed: boolean;
}

/** `changed`: whether the verdict holds a lease that differs from the one that the filter was given. */
export function outcomeOf(
  { name, audit }: Pick<ChainedFilter, 'name' | 'audit'>,
  { verdict, failed }: HookResult,
  milliseconds: number,
  changed = false,
): Outcome {
  const outcome = {
    filter: name,
    allowed: verdict.allowed,
    message: verdict.allowed ? null : verdict.message,
    failed,
    onError: verdict.allowed && verdict.onError === true,
    audit,
    changed,
    milliseconds,
  };
  return verdict.rules === undefined ? outcome : { ...outcome, rules: verdict.rules };
}

/** After another round of checks the latest verdict counts. `changed` and `onError` of earlier rounds are kept. */
export function afterRound(before: Outcome | undefined, latest: Outcome): Outcome {
  return before === undefined
    ? latest
    : {
        ...latest,
        onError: before.onError || latest.onError,
        changed: before.changed || latest.changed,
        milliseconds: before.milliseconds + latest.milliseconds,
      };
}

/** A commit may add a rejection or a failure to the outcome of the check. It removes nothing. */
export function afterCommit(before: Outcome | undefined, commit: Outcome): Outcome {
  return before === undefined
    ? commit
    : {
        ...(commit.allowed ? before : commit),
        failed: before.failed || commit.failed,
        onError: before.onError || commit.onError,
        changed: before.changed,
        milliseconds: before.milliseconds + commit.milliseconds,
      };
}
