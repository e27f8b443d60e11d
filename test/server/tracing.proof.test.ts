/** Spans of real services, by the SDK of OpenTelemetry and `examples/tracing`, at a collector. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { type Serving, serve as serving } from '../e2e/serving.ts';
import { confFile, projectFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { jsonLines } from '../support/json-lines.ts';
import { ADMISSION, creating } from '../support/kubernetes-service.ts';
import { giveBudgets, newLedger } from '../support/ledgers.ts';
import { createLasting } from '../support/requests.ts';
import { policyFiles, body as skypilotBody } from '../support/skypilot.ts';
import { PATH as SKYPILOT } from '../support/skypilot-service.ts';
import { type CollectedSpan, spanCollector } from '../support/span-collector.ts';
import { unusedPort } from '../support/unused-port.ts';

type Collector = Awaited<ReturnType<typeof spanCollector>>;

const SDK = pathToFileURL(projectFile('examples/tracing/opentelemetry.mjs')).href;
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';
const SAMPLED = `00-${TRACE}-${PARENT}-01`;
const REQUEST_ID = 'req-7b1c5f2e-94a1-4a5e-9d5b-2f2c3f1d8e60';

interface Traced extends Serving {
  /** Ends with SIGTERM, which sends the spans that are left. */
  stop(): Promise<{ code: number | null; stderr: string }>;
}

/** `serve` with the SDK, or without if `collector` is not given. */
async function serve(
  conf: string,
  collector?: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Traced> {
  const running = await serving(['--config-file', confFile(conf)], {
    env: {
      ...(collector !== undefined && {
        NODE_OPTIONS: `--import=${SDK}`,
        OTEL_EXPORTER_OTLP_ENDPOINT: collector,
        OTEL_BSP_SCHEDULE_DELAY: '50',
      }),
      ...env,
    },
  });
  return {
    ...running,
    stop: () => {
      running.process.kill('SIGTERM');
      return running.ended;
    },
  };
}

const limit = (more = '', filters = 'MaxLeaseDurationFilter') =>
  `[service]\nport = 0\ndecision_store = none\n[enforcement]\nenabled_filters = ${filters}\n${filters.includes('MaxLeaseDuration') ? 'max_lease_duration = 172800\n' : ''}${more}`;

/** Waits for the spans of so many requests, and then for what the end of the service sends. A request's span is the last of its trace. */
async function untilServed({ spans }: Collector, requests: number): Promise<void> {
  await expect.poll(() => spans().filter(({ kind }) => kind === 'server').length).toBe(requests);
}

function tree(spans: readonly CollectedSpan[], parent: string): unknown[] {
  return spans
    .filter(({ parentSpanId }) => parentSpanId === parent)
    .map(({ service, name, spanId }) => [`${service}: ${name}`, ...tree(spans, spanId)]);
}

/** All that left the process in spans. */
const textOf = (spans: readonly CollectedSpan[]) => JSON.stringify(spans);

describe('with the SDK of OpenTelemetry', () => {
  it('a lease that a second service is asked about is one trace through both, and in both logs', async () => {
    const collector = await spanCollector();
    const log = join(temporaryFolder(), 'decisions.jsonl');
    const tokens = `[service]\ntokens = s3cret-0123456789abcdef\n`;
    const second = await serve(limit(tokens), collector.url, { OTEL_SERVICE_NAME: 'second' });
    const first = await serve(
      limit(
        `external_service_base_endpoint = ${second.url}\nexternal_service_token = s3cret-0123456789abcdef\n[service]\ndecision_log = ${log}\n`,
        'ExternalServiceFilter, MaxLeaseDurationFilter',
      ),
      collector.url,
      { OTEL_SERVICE_NAME: 'first' },
    );
    const headers = {
      traceparent: SAMPLED,
      tracestate: 'vendor=1',
      baggage: 'user=alice',
      'X-Openstack-Request-Id': REQUEST_ID,
    };
    expect((await first.post('/check-create', createLasting(60), headers)).status).toBe(204);
    expect((await first.post('/check-create', createLasting(864_000), headers)).status).toBe(403);
    await untilServed(collector, 4);
    await Promise.all([first.stop(), second.stop()]);
    const spans = collector.spans();
    const call = ['first: POST', ['second: POST /check-create', ['second: filter MaxLeaseDurationFilter']]];
    const asked = ['first: filter ExternalServiceFilter', call];
    expect(tree(spans, PARENT)).toEqual([
      ['first: POST /check-create', asked, ['first: filter MaxLeaseDurationFilter']],
      ['first: POST /check-create', asked],
    ]);
    expect(new Set(spans.map(({ traceId, traceState }) => [traceId, traceState].join()))).toEqual(
      new Set([`${TRACE},vendor=1`]),
    );
    const [allowed, refused] = spans.filter(({ service, kind }) => service === 'first' && kind === 'server');
    expect(allowed).toMatchObject({
      isError: false,
      attributes: {
        'http.request.method': 'POST',
        'http.route': '/check-create',
        'http.response.status_code': 204,
        'http.response.header.x-openstack-request-id': { values: [{ stringValue: REQUEST_ID }] },
      },
    });
    expect(refused).toMatchObject({ isError: false, attributes: { 'http.response.status_code': 403 } });
    const verdicts = spans.map(({ attributes }) => attributes['blazar_enforcement.filter.verdict']);
    expect(new Set(verdicts)).toEqual(new Set([undefined, 'allowed', 'rejected']));
    expect(jsonLines(readFileSync(log, 'utf8')).map(({ trace_id }) => trace_id)).toEqual([TRACE, TRACE]);
    expect(textOf(spans)).not.toMatch(/s3cret-0123456789abcdef|alice|climate/);
  });

  it('commits, pods and policies in threads have spans', async () => {
    const collector = await spanCollector();
    const connection = await newLedger();
    await giveBudgets(connection, [{ amount: '1000', until: '2098-01-01' }]);
    const { specifiers } = policyFiles({ LabelPolicy: "task.labels = { a: 'b' };" });
    const service = await serve(
      limit(
        `[ledger]\nconnection = ${connection}\n[skypilot]\nadmin_policies = ${specifiers}\nisolation = worker\nconfig_validation = ignore\n[kubernetes]\nscheduling_policies = ${projectFile('etc/kubernetes/policies.yaml')}\n`,
        'MaxLeasesFilter',
      ).replace('[ledger]', 'max_leases_per_project = 5\n[ledger]'),
      collector.url,
    );
    expect((await service.post('/commit-create', createLasting(60))).status).toBe(204);
    expect((await service.post(ADMISSION, creating())).status).toBe(200);
    expect((await service.post(SKYPILOT, skypilotBody())).status).toBe(200);
    await untilServed(collector, 3);
    expect((await service.stop()).code).toBe(0);
    const spans = collector.spans();
    const under = (name: string) => {
      const { spanId = '-' } = spans.find((span) => span.name === name) ?? {};
      return spans.filter(({ parentSpanId }) => parentSpanId === spanId);
    };
    expect(under('POST /commit-create')).toContainEqual(
      expect.objectContaining({
        name: 'commit ledger',
        kind: 'client',
        attributes: expect.objectContaining({
          'db.system.name': 'sqlite',
          'db.operation.name': 'commit',
          'blazar_enforcement.ledger.attempts': 1,
          'blazar_enforcement.ledger.wait': expect.any(Number),
          'blazar_enforcement.ledger.refused': false,
        }),
      }),
    );
    expect(under(`POST ${ADMISSION}`)).toEqual([
      expect.objectContaining({
        name: 'admission pod',
        attributes: expect.objectContaining({
          'k8s.namespace.name': 'shop',
          'blazar_enforcement.admission.allowed': expect.any(Boolean),
        }),
      }),
    ]);
    const policies = under(`POST ${SKYPILOT}`);
    expect(policies.length).toBeGreaterThan(0);
    expect(
      policies.map(({ name, attributes }) => [name, attributes['blazar_enforcement.policy.failed']]),
    ).toEqual(policies.map(() => ['policy LabelPolicy', false]));
  });

  it('a webhook is part of the trace, without its path', async () => {
    const collector = await spanCollector();
    const connection = await newLedger();
    const service = await serve(
      limit(
        `[ledger]\nconnection = ${connection}\n[notifications]\nwebhook_url = ${collector.url}/hook/s3cret-0123456789abcdef\n`,
      ),
      collector.url,
    );
    expect((await service.post('/check-create', createLasting(864_000))).status).toBe(403);
    const called = () => collector.server.requests.find(({ url }) => url === '/hook/s3cret-0123456789abcdef');
    await expect.poll(called).toBeDefined();
    const calls = () => collector.spans().filter(({ kind, name }) => kind === 'client' && name === 'POST');
    await expect.poll(() => calls().length).toBe(1);
    await service.stop();
    const [call] = calls();
    expect(call).toMatchObject({
      name: 'POST',
      attributes: { 'url.full': `${collector.url}/REDACTED`, 'http.response.status_code': 200 },
    });
    expect(called()?.headers.traceparent).toBe(`00-${call?.traceId}-${call?.spanId}-01`);
    expect(textOf(collector.spans())).not.toContain('s3cret-0123456789abcdef');
  });

  it('what breaks is an error without its cause, which the log has with the id of the trace', async () => {
    const collector = await spanCollector();
    const port = await unusedPort();
    const service = await serve(
      limit(`external_service_base_endpoint = http://127.0.0.1:${port}/pa/th\n`, 'ExternalServiceFilter'),
      collector.url,
    );
    expect((await service.post('/check-create', createLasting(60), { traceparent: SAMPLED })).status).toBe(
      403,
    );
    await untilServed(collector, 1);
    const { stderr } = await service.stop();
    const spans = collector.spans();
    expect(spans.find(({ kind }) => kind === 'client')).toMatchObject({
      isError: true,
      message: 'failed; the log has the cause',
      attributes: { 'error.type': 'connect', 'url.full': `http://127.0.0.1:${port}/pa/th/check-create` },
    });
    expect(spans.find(({ name }) => name === 'filter ExternalServiceFilter')).toMatchObject({
      isError: true,
      attributes: { 'blazar_enforcement.filter.failed': true, 'blazar_enforcement.filter.verdict': 'failed' },
    });
    expect(textOf(spans)).not.toContain('ECONNREFUSED');
    const lines = stderr
      .trim()
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line));
    expect(lines.find(({ error }) => error?.includes('ECONNREFUSED'))).toMatchObject({ trace_id: TRACE });
  });

  it('headers of hostile clients begin a new trace and do no harm', async () => {
    const collector = await spanCollector();
    const service = await serve(limit(), collector.url);
    const hostile: Record<string, string>[] = [
      { traceparent: `00-${'0'.repeat(32)}-${PARENT}-01` },
      { traceparent: `ff-${TRACE}-${PARENT}-01` },
      { traceparent: `${SAMPLED}, ${SAMPLED}` },
      { traceparent: SAMPLED.toUpperCase() },
      { traceparent: `${SAMPLED}-more` },
      { traceparent: 'x'.repeat(8000), tracestate: 'y=1,'.repeat(1000), baggage: 'z=1,'.repeat(500) },
      { traceparent: '__proto__', tracestate: '__proto__=1' },
    ];
    for (const headers of hostile) {
      expect((await service.post('/check-create', createLasting(60), headers)).status).toBe(204);
    }
    const path = '/nothing/s3cret-token?t=s3cret-0123456789abcdef';
    expect((await service.post(path, {}, { 'User-Agent': '\u009b' })).status).toBe(404);
    await untilServed(collector, hostile.length + 1);
    await service.stop();
    const spans = collector.spans().filter(({ kind }) => kind === 'server');
    expect(spans.map(({ parentSpanId }) => parentSpanId)).toEqual([...hostile.map(() => ''), '']);
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(spans.length);
    expect(spans.at(-1)).toMatchObject({ name: 'POST', attributes: { 'url.path': 'REDACTED' } });
    expect(textOf(spans)).not.toContain('s3cret-0123456789abcdef');
  });

  it('a trace that is not sampled has no spans, and the next service is told so', async () => {
    const collector = await spanCollector();
    const log = join(temporaryFolder(), 'decisions.jsonl');
    const second = await serve(limit(), collector.url);
    const first = await serve(
      limit(
        `external_service_base_endpoint = ${second.url}\n[service]\ndecision_log = ${log}\n`,
        'ExternalServiceFilter',
      ),
      collector.url,
    );
    const headers = { traceparent: `00-${TRACE}-${PARENT}-00` };
    expect((await first.post('/check-create', createLasting(60), headers)).status).toBe(204);
    await Promise.all([first.stop(), second.stop()]);
    expect(collector.spans()).toEqual([]);
    expect(readFileSync(log, 'utf8')).not.toContain('trace_id');
  });

  it.each([
    [
      'hangs',
      async () => {
        const { url, server } = await spanCollector();
        server.answer = () => {};
        return url;
      },
    ],
    ['is away', async () => 'http://127.0.0.1:9'],
  ])('a collector that %s changes no answer, and holds up no stop', async (_how, url) => {
    const service = await serve(limit(), await url());
    const answers = await Promise.all(
      Array.from({ length: 200 }, async (_, index) => {
        const seconds = index % 2 === 0 ? 60 : 864_000;
        return (await service.post('/check-create', createLasting(seconds))).status;
      }),
    );
    expect(answers).toEqual(answers.map((_, index) => (index % 2 === 0 ? 204 : 403)));
    expect((await service.stop()).code).toBe(0);
  });
});

it('docs/operations.md names the packages in the versions that are tested here', () => {
  const { devDependencies } = JSON.parse(readFileSync(projectFile('package.json'), 'utf8'));
  const page = readFileSync(projectFile('docs/operations.md'), 'utf8');
  const named = [...page.matchAll(/(@opentelemetry\/[\w-]+)@([\d.]+)/g)].map(([, name, version]) => [
    name,
    version,
  ]);
  expect(named.length).toBe(3);
  expect(named.map(([name = '']) => [name, devDependencies[name]])).toEqual(named);
});
