/** Replaces `src/base/tracing.ts`: every function only does what the caller would do without tracing. */
import type { Context, Span } from '@opentelemetry/api';
import type { SpanFacts, Tracing } from '../../src/base/tracing.ts';

export function isTraced(): boolean {
  return false;
}

export function tracing(): undefined {}

export function inSpan<Result>(_facts: SpanFacts, work: () => Result): Result {
  return work();
}

export function endSpan(): void {}

export function errorTypeOf(): string {
  return '';
}

export function shownAttribute(text: string): string {
  return text;
}

export function within<Result>(_tracing: Tracing, _context: Context, work: () => Result): Result {
  return work();
}

export function outsideTraces<Result>(work: () => Result): Result {
  return work();
}

export function isSampled(): boolean {
  return false;
}

/** Never called without a listener. */
export function openSpan(): Span {
  throw new Error('expected no span to be opened');
}

export function withSpan(): undefined {}

export function activeSpan(): undefined {}

export function flushTracing(): void {}

export async function endTracing(): Promise<void> {}
