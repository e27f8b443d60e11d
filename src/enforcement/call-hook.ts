/** Calls a hook of one filter. Any error is a failure, and the failure of a check refuses the lease. */

import { inTime } from '../deadline.ts';
import { errorText } from '../errors.ts';
import { allow, isVerdict, type Outcome, reject } from '../filter/verdict.ts';
import type { Lease } from '../lease/lease.ts';
import { withoutViews } from '../lease/read-only.ts';
import type { Logger } from '../logger.ts';
import { isTraced } from '../tracing.ts';
import type { ChainedFilter } from './chain.ts';
import { failureVerdict } from './failure.ts';
import type { EndHookRequest, HookRequest } from './hook-request.ts';
import { logFailure } from './log-lines.ts';
import { type HookResult, outcomeOf } from './outcomes.ts';
import { tracedEnd, tracedHook } from './traced-hook.ts';

/** The verdict of one filter on a lease. A promise only if the hook returned one: awaiting costs more than most hooks. */
export function callHook(
  member: ChainedFilter,
  lease: Lease,
  request: HookRequest,
  logger: Logger,
): HookResult | Promise<HookResult> {
  return isTraced() ? tracedResult(member, lease, request, logger) : resultOf(member, lease, request, logger);
}

/** Apart, because what a closure holds costs memory even where the closure is never made. */
function tracedResult(
  member: ChainedFilter,
  lease: Lease,
  request: HookRequest,
  logger: Logger,
): HookResult | Promise<HookResult> {
  return tracedHook(member, request.hook, () => resultOf(member, lease, request, logger));
}

function resultOf(
  member: ChainedFilter,
  lease: Lease,
  request: HookRequest,
  logger: Logger,
): HookResult | Promise<HookResult> {
  const { wait } = request;
  const { filter, turn } = member;
  const failure = (thrown: unknown): HookResult => {
    logFailure(logger, member.name, request, thrown);
    return { verdict: failureVerdict(thrown), failed: true };
  };
  try {
    wait.throwIfOver();
    turn.begin();
    const returned = request.invoke(filter, lease);
    turn.end();
    if (isThenable(returned)) {
      return inTime(returned, wait)
        .then((resolved) => validResult(resolved, request, 'resolved to'))
        .catch(failure);
    }
    wait.throwIfOver();
    return validResult(returned, request, 'returned');
  } catch (thrown) {
    return failure(thrown);
  }
}

/** Calls `onEnd` of one filter. Never throws, so that the other filters are called too. */
export function callOnEnd(member: ChainedFilter, request: EndHookRequest, logger: Logger): Promise<Outcome> {
  return isTraced()
    ? tracedEnd(member, () => endOutcome(member, request, logger))
    : endOutcome(member, request, logger);
}

async function endOutcome(member: ChainedFilter, request: EndHookRequest, logger: Logger): Promise<Outcome> {
  const { name, filter, turn } = member;
  const started = performance.now();
  let result: HookResult = { verdict: allow(), failed: false };
  try {
    turn.begin();
    const returned = request.invoke(filter);
    turn.end();
    if (isThenable(returned)) {
      await inTime(returned, request.wait);
    }
  } catch (thrown) {
    logFailure(logger, name, request, thrown);
    result = { verdict: reject(`${name} could not be told that the lease has ended.`), failed: true };
  }
  return outcomeOf(member, result, performance.now() - started);
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

/** The returned value as a verdict. Throws if it is not a verdict, or contains a lease that cannot be judged. */
function validResult(
  returned: unknown,
  { hook, validate }: HookRequest,
  verb: 'returned' | 'resolved to',
): HookResult {
  if (!isVerdict(returned)) {
    throw new TypeError(
      `${hook} ${verb} ${shown(returned)}; expected allow(), allow(lease) or reject(message)`,
    );
  }
  if (!returned.allowed || returned.lease === undefined) {
    return { verdict: returned, failed: false };
  }
  const lease = withoutViews(returned.lease);
  try {
    validate(lease);
  } catch (thrown) {
    throw new TypeError(`${hook} ${verb} a changed lease that cannot be used: ${errorText(thrown)}`, {
      cause: thrown,
    });
  }
  return { verdict: { ...returned, lease }, failed: false };
}

const MAX_SHOWN_TEXT = 40;

/** A value that is not a verdict, for the log. Of an object only the names of its attributes, because it may contain anything. */
function shown(value: unknown): string {
  if (typeof value === 'string') {
    return JSON.stringify(value.length > MAX_SHOWN_TEXT ? `${value.slice(0, MAX_SHOWN_TEXT)}…` : value);
  }
  if (typeof value !== 'object' || value === null) {
    return typeof value === 'function' ? 'a function' : String(value);
  }
  if (Array.isArray(value)) {
    return 'a list';
  }
  if ('allowed' in value && value.allowed === false) {
    return 'a rejection without a message';
  }
  const names = Object.keys(value).slice(0, 5).join(', ');
  return names === '' ? 'an object without attributes' : `an object with ${names}`.slice(0, 200);
}
