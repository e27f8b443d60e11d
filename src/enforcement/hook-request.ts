/** A request as it goes through the chain: the hook that it is for, the arguments, and how long to wait for an answer. */
import { type Wait, waitFor } from '../deadline.ts';
import type { BaseFilter } from '../filter/base-filter.ts';
import type { Call } from '../filter/call.ts';
import type { RequestNames } from '../filter/request-names.ts';
import type { LeaseRequest } from '../filter/services.ts';
import type { Decision } from '../filter/verdict.ts';
import type { Context, CreateRequest, EndRequest, Lease, UpdateRequest } from '../lease/lease.ts';
import { parseCreateRequest, parseUpdateRequest } from '../lease/request.ts';
import { readOnly } from '../lease/read-only.ts';
import type { CheckOptions } from './check-options.ts';
import type { LoggedRequest } from './log-lines.ts';
import { RequestCall } from './request-call.ts';

/** A request to a hook that answers with a verdict. */
export interface HookRequest extends LoggedRequest {
  readonly operation: Decision['operation'];
  readonly wait: Wait;
  /** The same object for every filter. */
  readonly call: Call;
  /** The name of the hook. */
  readonly hook: string;
  /** Calls the hook of a filter with a lease: the one of the request, or as an earlier filter has changed it. */
  readonly invoke: (filter: BaseFilter, lease: Lease) => unknown;
  /** Throws if a filter has changed the lease into one that cannot be judged. */
  readonly validate: (changed: Lease) => unknown;
}

/** A request to `onEnd`. */
export interface EndHookRequest extends LoggedRequest {
  readonly operation: 'end';
  readonly wait: Wait;
  readonly invoke: (filter: BaseFilter) => unknown;
}

type Options = Pick<CheckOptions, 'signal' | 'deadline' | 'requestId' | 'idempotencyKey'>;
type MaybeNames = RequestNames | undefined;

export function createRequest(
  { context, lease }: CreateRequest,
  operation: Decision['operation'],
  options: Options,
  names: MaybeNames,
): HookRequest {
  const seenContext = readOnly(context);
  const wait = waitOf(options);
  const call = new RequestCall(wait, options.idempotencyKey, [context, lease], names);
  return {
    operation,
    context,
    requestId: options.requestId,
    lease,
    wait,
    call,
    hook: 'checkCreate',
    invoke: (filter, seenLease) => filter.checkCreate(seenContext, seenLease, call),
    validate: (changed) => parseCreateRequest({ context, lease: changed }),
  };
}

export function updateRequest(
  { context, currentLease, lease }: UpdateRequest,
  operation: Decision['operation'],
  options: Options,
  names: MaybeNames,
): HookRequest {
  const seenContext = readOnly(context);
  const seenCurrent = readOnly(currentLease);
  const wait = waitOf(options);
  const call = new RequestCall(wait, options.idempotencyKey, [context, lease, currentLease], names);
  return {
    operation,
    context,
    requestId: options.requestId,
    lease,
    currentLease,
    wait,
    call,
    hook: 'checkUpdate',
    invoke: (filter, seenLease) => filter.checkUpdate(seenContext, seenCurrent, seenLease, call),
    validate: (changed) => parseUpdateRequest({ context, currentLease, lease: changed }),
  };
}

/** The same request for the commit hooks. Use it only with filters that have the hook. */
export function commitRequest(request: HookRequest, { context, currentLease }: LeaseRequest): HookRequest {
  const { call } = request;
  const seenContext = readOnly(context);
  const validate = refuseChange;
  if (currentLease === undefined) {
    return {
      ...request,
      hook: 'commitCreate',
      invoke: (filter, seenLease) => filter.commitCreate?.(seenContext, seenLease, call),
      validate,
    };
  }
  const seenCurrent = readOnly(currentLease);
  return {
    ...request,
    hook: 'commitUpdate',
    invoke: (filter, seenLease) => filter.commitUpdate?.(seenContext, seenCurrent, seenLease, call),
    validate,
  };
}

function refuseChange(): never {
  throw new TypeError('the lease cannot be changed any more');
}

export function endRequest(
  { context, lease }: EndRequest,
  options: Options,
  names: MaybeNames,
): EndHookRequest {
  const seenContext: Context = readOnly(context);
  const seenLease = readOnly(lease);
  const wait = waitOf(options);
  const call = new RequestCall(wait, undefined, [context, lease], names);
  return {
    operation: 'end',
    context,
    requestId: options.requestId,
    lease,
    wait,
    invoke: (filter) => filter.onEnd(seenContext, seenLease, call),
  };
}

function waitOf({ signal, deadline }: Options): Wait {
  return deadline ?? waitFor(signal);
}
