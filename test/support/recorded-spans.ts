/** The SDK of OpenTelemetry in this process, which keeps the spans that have ended. */
import { context, propagation, trace } from '@opentelemetry/api';
import { NodeTracerProvider, type ReadableSpan } from '@opentelemetry/sdk-trace-node';
import { afterAll, beforeAll, vi } from 'vitest';

const open = new Set<string>();
let ended: ReadableSpan[] = [];

/**
 * Call it at the top of a file: for its tests the SDK is registered. The project looks for one once, so import what is tested afterwards,
 * in `load`: files share what they import.
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

/** Those since the last call, by their ends. */
export function spansSince(): ReadableSpan[] {
  const spans = ended;
  ended = [];
  return spans;
}

/** How many have begun and not ended. */
export function openSpans(): number {
  return open.size;
}

/** Names, each with those of its children, by their ends. `parent`: the id of a span, perhaps of another process. */
export function treeOf(spans: readonly ReadableSpan[], parent: string): unknown[] {
  return spans
    .filter(({ parentSpanContext }) => parentSpanContext?.spanId === parent)
    .map((span) => [span.name, ...treeOf(spans, span.spanContext().spanId)]);
}
