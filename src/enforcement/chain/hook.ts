/**
 * A request in a chain, and the call of a filter's hook. Any error is a failure; a failed check refuses the
 * lease.
 */
import { hash, randomUUID } from 'node:crypto';
import { type Deadline, inHalfTheTime, inTime, type Wait, waitFor } from '../../base/deadline.ts';
import { errorText, InvalidRequestError } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { inSpan, isTraced } from '../../base/tracing.ts';
import type { BaseFilter } from '../../filter/base-filter.ts';
import {
  allow,
  type Call,
  type Decision,
  isVerdict,
  type Repetition,
  type RequestNames,
  reject,
  type Verdict,
} from '../../filter/verdict.ts';
import type { Context, CreateRequest, EndRequest, Lease, UpdateRequest } from '../../lease/lease.ts';
import { readOnly, withoutViews } from '../../lease/read-only.ts';
import { parseCreateRequest, parseUpdateRequest } from '../../lease/request.ts';
import type { Execution } from '../execution-tracker.ts';
import { failureVerdict, type LoggedRequest, logFailure, shownAnswer } from './messages.ts';

/** `undefined` is the same as leaving an option out. Unknown names are refused, whatever their value. */
export interface CheckOptions {
  /** Ends the wait: filters that have not answered by then have failed. Passed to every filter. */
  readonly signal?: AbortSignal | undefined;
  /** Cheaper alternative to `signal`: its signal is created only if something waits for it. */
  readonly deadline?: Deadline | undefined;
  /** Call all filters, even after the first rejection. Default false. */
  readonly explain?: boolean | undefined;
  /**
   * Whether the caller can use a lease that filters changed. If not, a change is a rejection that names the
   * values to set. Default true.
   */
  readonly acceptsChanges?: boolean | undefined;
  /** Decide, but record nothing. Default false. */
  readonly dryRun?: boolean | undefined;
  /** For the log, and the ledger. */
  readonly requestId?: string | undefined;
  /**
   * For a new lease: the same if a request is repeated, different for every other request. The lease is then
   * recorded once. Without a key, requests that look the same are for different leases. 1 to 255 visible
   * ASCII characters.
   */
  readonly idempotencyKey?: string | undefined;
}

export interface ChainedFilter {
  readonly name: string;
  readonly filter: BaseFilter;
  readonly audit: boolean;
  /** Runs each call of the filter, up to its first `await`. */
  readonly execution: Execution;
}

interface AnyHookRequest extends LoggedRequest {
  readonly wait: Wait;
  /** The same object for every filter. */
  readonly call: Call;
  /** The view of `context` for filters. */
  readonly seenContext: Context;
}

/** A request to a hook that returns a verdict. The filter's lease may have been changed by an earlier filter. */
export type HookRequest = AnyHookRequest & { readonly operation: Decision['operation'] } & (
    | { readonly hook: 'checkCreate' | 'commitCreate' }
    | {
        readonly hook: 'checkUpdate' | 'commitUpdate';
        readonly currentLease: Lease;
        /** The view of `currentLease` for filters. */
        readonly seenCurrent: Lease;
      }
  );

/** A request to `onEnd`. */
export interface EndHookRequest extends AnyHookRequest {
  readonly operation: 'end';
  /** The view of the lease for all filters: one object, by which the ledger recognizes the same end. */
  readonly seenLease: Lease;
}

/**
 * The verdict of one filter. With `failed`, the chain made it: the filter threw, was too late or returned no
 * verdict.
 */
export interface HookResult {
  readonly verdict: Verdict;
  readonly failed: boolean;
}

type Options = Pick<CheckOptions, 'signal' | 'deadline' | 'requestId' | 'idempotencyKey'>;

/** A request to the check of every filter. @throws InvalidRequestError for an invalid idempotency key */
export function checkRequest(
  operation: Decision['operation'],
  request: CreateRequest | UpdateRequest,
  options: Options,
  names: RequestNames | undefined,
): HookRequest {
  const { context, lease } = request;
  const { requestId, idempotencyKey } = options;
  const wait = waitOf(options);
  const seenContext = readOnly(context);
  if (!('currentLease' in request)) {
    const call = new RequestCall(wait, idempotencyKey, [context, lease], names);
    return { operation, hook: 'checkCreate', context, seenContext, requestId, lease, wait, call };
  }
  const { currentLease } = request;
  const seenCurrent = readOnly(currentLease);
  const call = new RequestCall(wait, idempotencyKey, [context, lease, currentLease], names);
  // Not a spread: V8 would make a hidden class per request, which costs as much as the rest of a check.
  return {
    operation,
    hook: 'checkUpdate',
    context,
    seenContext,
    requestId,
    lease,
    wait,
    call,
    currentLease,
    seenCurrent,
  };
}

/** The same request for the commit hooks. Use it only with filters that have the hook. */
export function commitRequest(request: HookRequest): HookRequest {
  return 'currentLease' in request && 'seenCurrent' in request
    ? { ...request, hook: 'commitUpdate' }
    : { ...request, hook: 'commitCreate' };
}

export function endRequest(
  { context, lease }: EndRequest,
  options: Options,
  names: RequestNames | undefined,
): EndHookRequest {
  const wait = waitOf(options);
  const call = new RequestCall(wait, undefined, [context, lease], names);
  const { requestId } = options;
  const seenContext = readOnly(context);
  const seenLease = readOnly(lease);
  return { operation: 'end', context, seenContext, requestId, lease, seenLease, wait, call };
}

function waitOf({ signal, deadline }: Options): Wait {
  return deadline ?? waitFor(signal);
}

/** The `Call` of one request. Its parts are computed when a filter first reads them. */
export class RequestCall implements Call {
  readonly wait: Wait;
  readonly names: RequestNames | undefined;
  readonly #idempotencyKey: string | undefined;
  readonly #request: readonly [Context, ...Lease[]];
  #requestKey: string | undefined;
  #repetition: Repetition | undefined;

  /** `idempotencyKey`: as received. `request`: all its parts. @throws InvalidRequestError */
  constructor(
    wait: Wait,
    idempotencyKey: string | undefined,
    request: readonly [Context, ...Lease[]],
    names?: RequestNames,
  ) {
    if (idempotencyKey !== undefined && !KEY.test(idempotencyKey)) {
      throw new InvalidRequestError('Idempotency-Key', 'expected 1 to 255 visible characters of ASCII');
    }
    this.wait = wait;
    this.names = names;
    this.#idempotencyKey = idempotencyKey;
    this.#request = request;
  }

  get signal(): AbortSignal | undefined {
    return this.wait.signal;
  }

  get requestKey(): string {
    this.#requestKey ??= this.#idempotencyKey ?? randomUUID();
    return this.#requestKey;
  }

  get repetition(): Repetition | undefined {
    if (this.#idempotencyKey !== undefined) {
      this.#repetition ??= { key: this.#idempotencyKey, content: contentOf(this.#request) };
    }
    return this.#repetition;
  }
}

/** Fits into a header, and into a database index. */
const KEY = /^[\x21-\x7e]{1,255}$/;

/** Omits lease ids: a lease may have none when it is checked, and one when it is recorded. */
function contentOf([{ user_id }, ...leases]: readonly [Context, ...Lease[]]): string {
  return hash(
    'sha256',
    JSON.stringify([user_id, leases.map((lease) => ({ ...lease, id: undefined }))]),
    'base64url',
  );
}

/** Calls the hook for this request. */
export function invokeHook(filter: BaseFilter, lease: Lease, request: HookRequest): unknown {
  const { seenContext, call } = request;
  switch (request.hook) {
    case 'checkCreate':
      return filter.checkCreate(seenContext, lease, call);
    case 'checkUpdate':
      return filter.checkUpdate(seenContext, request.seenCurrent, lease, call);
    case 'commitCreate':
      return filter.commitCreate?.(seenContext, lease, call);
    case 'commitUpdate':
      return filter.commitUpdate?.(seenContext, request.seenCurrent, lease, call);
  }
}

/**
 * The verdict of one filter on a lease. Never throws. A promise only if the hook returned one: always
 * awaiting costs a tenth of a check. `invoke`: calls the hook in another way, and returns the filter's
 * result.
 */
export function callHook(
  member: ChainedFilter,
  lease: Lease,
  request: HookRequest,
  logger: Logger,
  invoke: typeof invokeHook = invokeHook,
): HookResult | Promise<HookResult> {
  return isTraced()
    ? inSpan(spanOf(member, request.hook), () => hookResult(member, lease, request, logger, invoke), spanEnd)
    : hookResult(member, lease, request, logger, invoke);
}

function hookResult(
  member: ChainedFilter,
  lease: Lease,
  request: HookRequest,
  logger: Logger,
  invoke: typeof invokeHook,
): HookResult | Promise<HookResult> {
  const { filter, execution } = member;
  const { wait } = request;
  try {
    wait.throwIfOver();
    const returned = execution.run(() => invoke(filter, lease, request));
    if (isThenable(returned)) {
      return awaitedResult(member, returned, request, logger);
    }
    wait.throwIfOver();
    return validResult(returned, request, 'returned');
  } catch (thrown) {
    return failedResult(member, request, logger, thrown);
  }
}

async function awaitedResult(
  member: ChainedFilter,
  returned: PromiseLike<unknown>,
  request: HookRequest,
  logger: Logger,
): Promise<HookResult> {
  try {
    // An audited filter that hangs must not take the time of those that are enforced: it would refuse the lease.
    const within = member.audit ? inHalfTheTime : inTime;
    return validResult(await within(returned, request.wait), request, 'resolved to');
  } catch (thrown) {
    return failedResult(member, request, logger, thrown);
  }
}

function failedResult(
  { name }: ChainedFilter,
  request: HookRequest,
  logger: Logger,
  thrown: unknown,
): HookResult {
  logFailure(logger, name, request, thrown);
  return { verdict: failureVerdict(thrown), failed: true };
}

/** Calls `onEnd` of one filter. Never throws, so that the other filters are called too. */
export function callOnEnd(
  member: ChainedFilter,
  request: EndHookRequest,
  logger: Logger,
): Promise<HookResult> {
  const { name, filter, execution } = member;
  const tell = async (): Promise<HookResult> => {
    try {
      const returned: unknown = execution.run(() =>
        filter.onEnd(request.seenContext, request.seenLease, request.call),
      );
      if (isThenable(returned)) {
        await inTime(returned, request.wait);
      }
      return { verdict: allow(), failed: false };
    } catch (thrown) {
      logFailure(logger, name, request, thrown);
      return { verdict: reject(`${name} could not be told that the lease has ended.`), failed: true };
    }
  };
  return inSpan(spanOf(member, 'onEnd'), tell, spanEnd);
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

/** The returned value as a verdict. Throws if it is not a verdict, or contains an invalid lease. */
function validResult(returned: unknown, request: HookRequest, verb: 'returned' | 'resolved to'): HookResult {
  const { hook } = request;
  if (!isVerdict(returned)) {
    throw new TypeError(
      `${hook} ${verb} ${shownAnswer(returned)}; expected allow(), allow(lease) or reject(message)`,
    );
  }
  if (!returned.allowed || returned.lease === undefined) {
    return { verdict: returned, failed: false };
  }
  const lease = withoutViews(returned.lease);
  try {
    refuseUnusable(lease, request);
    // Circular, or with a BigInt: neither a caller nor the ledger could write it.
    JSON.stringify(lease);
  } catch (thrown) {
    throw new TypeError(`${hook} ${verb} a changed lease that cannot be used: ${errorText(thrown)}`, {
      cause: thrown,
    });
  }
  return { verdict: { ...returned, lease }, failed: false };
}

/** Throws if a filter has made the lease invalid. */
function refuseUnusable(lease: Lease, request: HookRequest): void {
  const { context } = request;
  switch (request.hook) {
    case 'checkCreate':
      parseCreateRequest({ context, lease });
      return;
    case 'checkUpdate':
      parseUpdateRequest({ context, currentLease: request.currentLease, lease });
      return;
    case 'commitCreate':
    case 'commitUpdate':
      throw new TypeError('the lease cannot be changed any more');
  }
}

function spanOf({ name, audit }: ChainedFilter, hook: string) {
  return {
    name: `filter ${name}`,
    attributes: {
      'blazar_enforcement.filter.name': name,
      'blazar_enforcement.filter.hook': hook,
      'blazar_enforcement.filter.audit': audit,
    },
  };
}

function spanEnd({ verdict, failed }: HookResult) {
  return {
    attributes: {
      'blazar_enforcement.filter.verdict': failed ? 'failed' : verdictWord(verdict),
      'blazar_enforcement.filter.failed': failed,
    },
    errorType: failed ? '_OTHER' : undefined,
  };
}

function verdictWord(verdict: Verdict): 'allowed' | 'changed' | 'rejected' | 'allowed-on-error' {
  if (!verdict.allowed) {
    return 'rejected';
  }
  return verdict.onError === true ? 'allowed-on-error' : verdict.lease === undefined ? 'allowed' : 'changed';
}
