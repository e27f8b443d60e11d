/** The OpenTelemetry SDK in this process; it keeps ended spans. */
import { context, propagation, trace } from '@opentelemetry/api';
import { NodeTracerProvider, type ReadableSpan } from '@opentelemetry/sdk-trace-node';
import { afterAll, beforeAll, vi } from 'vitest';

const open = new Set<string>();
let ended: ReadableSpan[] = [];

/**
 * Call it at the top of a file: registers the SDK for its tests. The project looks for an SDK once, so import
 * the tested code afterwards, in `load`: files share their imports.
 */
export function withRecordedSpans(load: () => Promise<void>): void {
  beforeAll(async () => {
    const provider = new NodeTracerProvider({
      spanProcessors: [
        {
          onStart: (span) => void open.add(span.spanContext().spanId),
          onEnd(span) {
            open.delete(span.spanContext().spanId);
            ended.push(span);
          },
          forceFlush: () => Promise.resolve(),
          shutdown: () => Promise.resolve(),
        },
      ],
    });
    provider.register();
    vi.resetModules();
    await load();
  });
  afterAll(() => {
    for (const api of [trace, context, propagation]) {
      api.disable();
    }
    vi.resetModules();
  });
}

/** The spans since the last call, by end time. */
export function spansSince(): ReadableSpan[] {
  const spans = ended;
  ended = [];
  return spans;
}

/** The number of spans that have begun and not ended. */
export function openSpans(): number {
  return open.size;
}

/** Span names with those of the children, by end time. `parent`: a span id, possibly of another process. */
export function treeOf(spans: readonly ReadableSpan[], parent: string): unknown[] {
  return spans
    .filter(({ parentSpanContext }) => parentSpanContext?.spanId === parent)
    .map((span) => [span.name, ...treeOf(spans, span.spanContext().spanId)]);
}
