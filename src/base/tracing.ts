/**
 * Spans of OpenTelemetry, for operators who load its SDK with `node --import`. Without an SDK nothing is loaded, and nothing is measured.
 * Names and attributes follow OpenTelemetry's semantic conventions 1.40; our own attributes begin with `blazar_enforcement.`.
 */
import { createRequire } from 'node:module';
import type { Attributes, Context, Span, SpanKind, SpanOptions, Tracer } from '@opentelemetry/api';
import { packageVersion } from './version.ts';
import { visibleText } from './visible-text.ts';

/** The API of OpenTelemetry, and where our spans come from. */
export interface Tracing {
  readonly api: typeof import('@opentelemetry/api');
  readonly tracer: Tracer;
}

export interface SpanFacts {
  /** One of few: no names of users, no ids. */
  readonly name: string;
  /** Default: `internal`. */
  readonly kind?: 'internal' | 'client' | undefined;
  readonly attributes: Attributes;
  /** Only as part of a trace: periodic work of its own would fill whatever stores traces. Default: false. */
  readonly onlyWithin?: boolean | undefined;
}

export interface SpanOutcome {
  readonly attributes?: Attributes | undefined;
  /** The class of the error; the work has then failed, though it may have returned. One of few words, never a message. */
  readonly errorType?: string | undefined;
}

/** Where an SDK registers itself, whichever copy of the API it uses. Source: the specification of the API's JavaScript package. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1');
const SCOPE = 'blazar-enforcement';
/** Causes may quote requests and addresses: only the log has them. */
const FAILED = 'failed; the log has the cause';
/** Where the class of an error is not known. Source: semantic conventions, `error.type`. */
const OTHER = '_OTHER';
/** The `error.type` of work that the end of the process breaks off. */
const STOPPED = 'stopped';
const CLASS_NAME = /^[A-Za-z_]\w{0,63}$/;
const MAX_TEXT = 255;

const require = createRequire(import.meta.url);
/** Those that have not ended. */
const open = new Set<Span>();
/** `undefined` = nobody has asked yet. */
let found: Tracing | null | undefined;

/** Whether an SDK is registered. It is looked for once, at the first call. */
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
  // Loading the API takes longer than most commands may.
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
 * Does the work within a span, which ends when the work has, or its promise. `outcomeOf` says what has come of it, and `failureOf` of what
 * it threw; errors are passed on. Without an SDK, or where the trace is not sampled, it only calls the work. Nothing that an SDK throws
 * reaches the caller.
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

/** Does the work once, in that context if the SDK is able to, and returns or throws what the work does. */
export function within<Result>({ api }: Tracing, context: Context, work: () => Result): Result {
  let ended: (() => Result) | undefined;
  const once = () => {
    ended ??= endOf(work);
  };
  try {
    api.context.with(context, once);
  } catch {
    // The work itself throws nothing here.
  }
  ended ??= endOf(work);
  return ended();
}

/** For work that a request begins, and that goes on without it: it is not part of the request's trace. */
export function outsideTraces<Result>(work: () => Result): Result {
  const listening = tracing();
  return listening === undefined ? work() : within(listening, listening.api.ROOT_CONTEXT, work);
}

/** Does the work; what is returned says again how it ended. */
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

/** A span that `endSpan` ends, or at last `endTracing`. @throws whatever the SDK throws */
export function openSpan({ tracer }: Tracing, name: string, options: SpanOptions, parent: Context): Span {
  const span = tracer.startSpan(name, options, parent);
  open.add(span);
  return span;
}

function kindOf({ api }: Tracing, kind: SpanFacts['kind']): SpanKind {
  return kind === 'client' ? api.SpanKind.CLIENT : api.SpanKind.INTERNAL;
}

/** A span that has ended is not recording, and may still get children. */
export function isSampled(span: Span): boolean {
  return (span.spanContext().traceFlags & 1) === 1 || span.isRecording();
}

/** Ends a span, once; `outcomeOf` is called only if it is recorded. Never throws. */
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

/** Does something to a span, if there is one. Never throws: a trace that is not complete is no reason to refuse anything. */
export function withSpan<Result>(span: Span | undefined, does: (span: Span) => Result): Result | undefined {
  try {
    return span === undefined ? undefined : does(span);
  } catch {
    return undefined;
  }
}

/** The span whose work this is part of. `undefined` = none, or no SDK. */
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

/** The name of its class, for `error.type`: the message may hold anything. */
export function errorTypeOf(thrown: unknown): string {
  const name = thrown instanceof Error ? thrown.constructor.name : '';
  return CLASS_NAME.test(name) ? name : OTHER;
}

/** A text of a user, as an attribute. */
export function shownAttribute(text: string): string {
  return visibleText(text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text);
}

/** Begins to hand over the spans that have ended. What it takes, or why it fails, is nobody's concern. */
export function flushTracing(): void {
  toldProvider('forceFlush').catch(() => undefined);
}

/**
 * Ends and hands over all spans, before the process ends, and shuts the SDK down: only then it also waits for what it is sending.
 * Waits no longer than this; never throws.
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
  // Where it fails, whatever stores traces is away: the SDK has said so.
  await Promise.race([toldProvider('shutdown').catch(() => undefined), late]);
  clearTimeout(timer);
}

/** `async`, so that what the provider throws is a rejection too. */
async function toldProvider(method: 'forceFlush' | 'shutdown'): Promise<unknown> {
  const registered: unknown = tracing()?.api.trace.getTracerProvider();
  const provider = hasMethod(registered, 'getDelegate') ? registered.getDelegate() : registered;
  return hasMethod(provider, method) ? provider[method]() : undefined;
}

/** The SDK may use another copy of the API, with classes of its own. */
function hasMethod<Name extends string>(value: unknown, name: Name): value is Record<Name, () => unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as Record<string, unknown>)[name] === 'function'
  );
}
