/** An OpenTelemetry collector: accepts spans as OTLP in JSON over HTTP, as the SDK's exporter sends them. */
import { z } from 'zod';
import { policyServer } from './policy-server.ts';

export interface CollectedSpan {
  readonly service: string;
  readonly name: string;
  readonly kind: 'internal' | 'server' | 'client' | 'other';
  readonly traceId: string;
  readonly spanId: string;
  /** Empty = the root of its trace. */
  readonly parentSpanId: string;
  readonly traceState: string;
  readonly isError: boolean;
  readonly message: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly milliseconds: number;
}

const valueSchema = z.record(z.string(), z.unknown());
const attributesSchema = z.array(z.object({ key: z.string(), value: valueSchema })).default([]);
const requestSchema = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes: attributesSchema }),
      scopeSpans: z.array(
        z.object({
          spans: z.array(
            z.object({
              traceId: z.string(),
              spanId: z.string(),
              parentSpanId: z.string().default(''),
              traceState: z.string().default(''),
              name: z.string(),
              kind: z.int(),
              startTimeUnixNano: z.string(),
              endTimeUnixNano: z.string(),
              attributes: attributesSchema,
              status: z.object({ code: z.int().default(0), message: z.string().default('') }),
            }),
          ),
        }),
      ),
    }),
  ),
});

/** The span kinds of OTLP. */
const KINDS = ['other', 'internal', 'server', 'client'] as const;
const ERROR = 2;

/** Started for one test; `url` is the value for `OTEL_EXPORTER_OTLP_ENDPOINT`. */
export async function spanCollector() {
  const server = await policyServer({
    status: 200,
    body: '{}',
    headers: { 'Content-Type': 'application/json' },
  });
  const spans = () =>
    server.requests.filter(({ url }) => url === '/v1/traces').flatMap(({ body }) => spansIn(body));
  return { url: server.url, server, spans };
}

function spansIn(body: string): CollectedSpan[] {
  return requestSchema.parse(JSON.parse(body)).resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = String(plain(resource.attributes)['service.name']);
    return scopeSpans.flatMap(({ spans }) =>
      spans.map(({ kind, status, startTimeUnixNano, endTimeUnixNano, attributes, ...span }) => ({
        ...span,
        service,
        kind: KINDS[kind] ?? 'other',
        isError: status.code === ERROR,
        message: status.message,
        attributes: plain(attributes),
        milliseconds: Number(BigInt(endTimeUnixNano) - BigInt(startTimeUnixNano)) / 1e6,
      })),
    );
  });
}

function plain(attributes: z.infer<typeof attributesSchema>): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
