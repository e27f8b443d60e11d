// Sends the spans of blazar-enforcement to an OpenTelemetry collector. Load it before everything else:
//
//   NODE_OPTIONS=--import=/opt/blazar-tracing/opentelemetry.mjs blazar-enforcement serve
//
// OpenTelemetry's own variables set the rest: OTEL_EXPORTER_OTLP_ENDPOINT (default: http://localhost:4318), OTEL_TRACES_SAMPLER,
// OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES.
import { isMainThread } from 'node:worker_threads';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';

// Policies that run in threads have their spans in the main thread.
if (isMainThread) {
  const provider = new NodeTracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'blazar-enforcement' }))
      .merge(detectResources({ detectors: [envDetector] })),
    // A collector that is slow or away costs no request: spans wait in a queue, and are dropped when it is full.
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  });
  provider.register();
}
