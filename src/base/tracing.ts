/**
 * OpenTelemetry spans, for operators who load its SDK with `node --import`. Without an SDK nothing is loaded
 * or measured. Names and attributes follow OpenTelemetry's semantic conventions 1.40; our own attributes
 * begin with `blazar_enforcement.`.
 */
import { createRequire } from 'node:module';
import type { Attributes, Context, Span, SpanKind, SpanOptions, Tracer } from '@opentelemetry/api';
import { lookInto } from './errors.ts';
import { packageVersion } from './version.ts';
import { visibleText } from './visible-text.ts';

/** The OpenTelemetry API, and the tracer of our spans. */
export interface Tracing {
  readonly api: typeof import('@opentelemetry/api');
  readonly tracer: Tracer;
}

export interface SpanFacts {
  /** From a small fixed set: no user names, no ids. */
  readonly name: string;
  /** Default: `internal`. */
  readonly kind?: 'internal' | 'client' | undefined;
  readonly attributes: Attributes;
  /** Only as part of a trace: traces of periodic work would fill the trace storage. Default: false. */
  readonly onlyWithin?: boolean | undefined;
}

export interface SpanOutcome {
  readonly attributes?: Attributes | undefined;
  /** Class of the error, from a small set, never a message. Set = the work failed, even if it returned. */
  readonly errorType?: string | undefined;
}

/**
 * Where an SDK registers itself, with any copy of the API. Source: the specification of the API's JavaScript
 * package.
 */
const REGISTERED = Symbol.for('opentelemetry.js.api.1');
const SCOPE = 'blazar-enforcement';
/** Causes may quote requests and addresses, so they are only in the log. */
const FAILED = 'failed; the log has the cause';
/** For errors of unknown class. Source: semantic conventions, `error.type`. */
const OTHER = '_OTHER';
/** The `error.type` of work that is cut off when the process ends. */
const STOPPED = 'stopped';
const CLASS_NAME = /^[A-Za-z_]\w{0,63}$/;
const MAX_TEXT = 255;

const require = createRequire(import.meta.url);
/** Spans that have not ended. */
const open = new Set<Span>();
/** `undefined` = not looked up; `null` = no SDK. */
let found: Tracing | null | undefined;

/** Whether an SDK is registered. Looked up once, at the first call. */
export function isTraced(): boolean {
  if (found === undefined) {
    found = find();
  }
  return found !== null;
}

/** `undefined` = no SDK is registered. */
export function tracing(): Tracing | undefined {
  return isTraced() ? (found ?? undefined) : undefined;
}

function find(): Tracing | null {
  // Loading the API takes longer than most commands should.
  if (!(REGISTERED in globalThis)) {
    return null;
  }
  try {
    const api = require('@opentelemetry/api') as Tracing['api'];
    const provider = api.trace.getTracerProvider();
    const tracer =
      provider instanceof api.ProxyTracerProvider
        ? provider.getDelegateTracer(SCOPE, packageVersion())
        : provider.getTracer(SCOPE, packageVersion());
    return tracer === undefined ? null : { api, tracer };
  } catch {
    return null;
  }
}

/**
 * Runs the work in a span, which ends when the work or its promise does. `outcomeOf` reads the outcome from
 * the result, `failureOf` from a thrown error; errors are passed on. Without an SDK, or if the trace is not
 * sampled, only runs the work. Errors of an SDK never reach the caller.
 */
export function inSpan<Result>(
  facts: SpanFacts,
  work: () => Result,
  outcomeOf: (result: Awaited<Result>) => SpanOutcome = noOutcome,
  failureOf: (thrown: unknown) => SpanOutcome = classOf,
): Result {
  const started = startSpan(facts);
  if (started === undefined) {
    return work();
  }
  const { span, context, listening } = started;
  const failed = (thrown: unknown) => {
    endSpan(listening, span, () => failureOf(thrown));
    throw thrown;
  };
  const done = (result: Awaited<Result>) => {
    endSpan(listening, span, () => outcomeOf(result));
    return result;
  };
  let result: Result;
  try {
    result = within(listening, context, work);
  } catch (thrown) {
    return failed(thrown);
  }
  return result instanceof Promise
    ? (result.then(done, failed) as Result)
    : (done(result as Awaited<Result>) as Result);
}

/** Runs the work once, in that context if the SDK can, and returns or throws what the work does. */
export function within<Result>({ api }: Tracing, context: Context, work: () => Result): Result {
  let ended: (() => Result) | undefined;
  const once = () => {
    ended ??= endOf(work);
  };
  try {
    api.context.with(context, once);
  } catch {
    // Not from the work: it throws nothing here.
  }
  ended ??= endOf(work);
  return ended();
}

/** For work that a request starts and that outlives it: not part of the request's trace. */
export function outsideTraces<Result>(work: () => Result): Result {
  const listening = tracing();
  return listening === undefined ? work() : within(listening, listening.api.ROOT_CONTEXT, work);
}

/** Runs the work; the result returns or throws its outcome. */
function endOf<Result>(work: () => Result): () => Result {
  try {
    const result = work();
    return () => result;
  } catch (thrown) {
    return () => {
      throw thrown;
    };
  }
}

interface StartedSpan {
  readonly listening: Tracing;
  readonly span: Span;
  readonly context: Context;
}

function startSpan({ name, kind, attributes, onlyWithin }: SpanFacts): StartedSpan | undefined {
  const listening = tracing();
  if (listening === undefined) {
    return undefined;
  }
  const { api } = listening;
  try {
    const active = api.context.active();
    const parent = api.trace.getSpan(active);
    if (parent === undefined ? onlyWithin === true : !isSampled(parent)) {
      return undefined;
    }
    const span = openSpan(listening, name, { kind: kindOf(listening, kind), attributes }, active);
    return { listening, span, context: api.trace.setSpan(active, span) };
  } catch {
    return undefined;
  }
}

/** A span that `endSpan` ends, at the latest `endTracing`. @throws whatever the SDK throws */
export function openSpan({ tracer }: Tracing, name: string, options: SpanOptions, parent: Context): Span {
  const span = tracer.startSpan(name, options, parent);
  open.add(span);
  return span;
}

function kindOf({ api }: Tracing, kind: SpanFacts['kind']): SpanKind {
  return kind === 'client' ? api.SpanKind.CLIENT : api.SpanKind.INTERNAL;
}

/** A span that has ended no longer records, and may still get children. */
export function isSampled(span: Span): boolean {
  return (span.spanContext().traceFlags & 1) === 1 || span.isRecording();
}

/** Ends a span, once; `outcomeOf` is called only if the span is recorded. Never throws. */
export function endSpan({ api }: Tracing, span: Span, outcomeOf: () => SpanOutcome): void {
  if (!open.delete(span)) {
    return;
  }
  withSpan(span, () => {
    if (span.isRecording()) {
      const { attributes, errorType } = outcomeOf();
      span.setAttributes(attributes ?? {});
      if (errorType !== undefined) {
        span.setAttribute('error.type', errorType);
        span.setStatus({ code: api.SpanStatusCode.ERROR, message: FAILED });
      }
    }
  });
  withSpan(span, () => span.end());
}

/**
 * Calls `does` with the span, if there is one. Never throws: an incomplete trace is no reason to refuse a
 * request.
 */
export function withSpan<Result>(span: Span | undefined, does: (span: Span) => Result): Result | undefined {
  try {
    return span === undefined ? undefined : does(span);
  } catch {
    return undefined;
  }
}

/** The current span. `undefined` = none, or no SDK. */
export function activeSpan(): Span | undefined {
  try {
    return tracing()?.api.trace.getActiveSpan();
  } catch {
    return undefined;
  }
}

function noOutcome(): SpanOutcome {
  return {};
}

function classOf(thrown: unknown): SpanOutcome {
  return { errorType: errorTypeOf(thrown) };
}

/** The name of the error's class, for `error.type`. Messages may contain anything. */
export function errorTypeOf(thrown: unknown): string {
  const name = lookInto(() => (thrown instanceof Error ? thrown.constructor.name : ''));
  return name !== undefined && CLASS_NAME.test(name) ? name : OTHER;
}

/** User text, for an attribute. */
export function shownAttribute(text: string): string {
  return visibleText(text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text);
}

/** Starts exporting the spans that have ended. Duration and failure do not matter. */
export function flushTracing(): void {
  toldProvider('forceFlush').catch(() => undefined);
}

/**
 * Ends and exports all spans before the process ends, and shuts the SDK down: only a shutdown also waits for
 * exports in progress. Never waits longer than `milliseconds`; never throws.
 */
export async function endTracing(milliseconds: number): Promise<void> {
  const listening = tracing();
  if (listening === undefined) {
    return;
  }
  for (const span of open) {
    endSpan(listening, span, () => ({ errorType: STOPPED }));
  }
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  // On failure the trace storage is down, which the SDK has logged.
  await Promise.race([toldProvider('shutdown').catch(() => undefined), late]);
  clearTimeout(timer);
}

/** `async`, so that errors thrown by the provider are rejections too. */
async function toldProvider(method: 'forceFlush' | 'shutdown'): Promise<unknown> {
  const registered: unknown = tracing()?.api.trace.getTracerProvider();
  const provider = hasMethod(registered, 'getDelegate') ? registered.getDelegate() : registered;
  return hasMethod(provider, method) ? provider[method]() : undefined;
}

/** By name: the SDK may use another copy of the API and its classes. */
function hasMethod<Name extends string>(value: unknown, name: Name): value is Record<Name, () => unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as Record<string, unknown>)[name] === 'function'
  );
}
