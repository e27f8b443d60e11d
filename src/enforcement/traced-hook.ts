/** A span for each call of a filter. */
import type { Outcome } from '../filter/verdict.ts';
import { inSpan } from '../tracing.ts';
import type { ChainedFilter } from './chain.ts';
import type { HookResult } from './outcomes.ts';

/** The word for what a filter said, as the decision log has it. */
type Verdict = 'allowed' | 'changed' | 'rejected' | 'failed' | 'allowed-on-error';

/** Calls the hook within a span. The result is a promise only if the hook returned one. */
export function tracedHook<Result extends HookResult | Promise<HookResult>>(
  member: ChainedFilter,
  hook: string,
  call: () => Result,
): Result {
  return inSpan(factsOf(member, hook), call, ({ verdict, failed }) => {
    const changed = verdict.allowed && verdict.lease !== undefined;
    const onError = verdict.allowed && verdict.onError === true;
    return answer(failed, verdict.allowed, changed, onError);
  });
}

/** As `tracedHook`, for `onEnd`. */
export function tracedEnd(member: ChainedFilter, call: () => Promise<Outcome>): Promise<Outcome> {
  return inSpan(factsOf(member, 'onEnd'), call, ({ failed, allowed }) => answer(failed, allowed));
}

function factsOf({ name, audit }: ChainedFilter, hook: string) {
  return {
    name: `filter ${name}`,
    attributes: {
      'blazar_enforcement.filter.name': name,
      'blazar_enforcement.filter.hook': hook,
      'blazar_enforcement.filter.audit': audit,
    },
  };
}

function answer(failed: boolean, allowed: boolean, changed = false, onError = false) {
  const verdict: Verdict = failed
    ? 'failed'
    : !allowed
      ? 'rejected'
      : onError
        ? 'allowed-on-error'
        : changed
          ? 'changed'
          : 'allowed';
  return {
    attributes: {
      'blazar_enforcement.filter.verdict': verdict,
      'blazar_enforcement.filter.failed': failed,
    },
    errorType: failed ? '_OTHER' : undefined,
  };
}
