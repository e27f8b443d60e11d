import { describe, expect, it, vi } from 'vitest';
import { ExternalServiceFilter } from '../../../filters/external-service-filter.ts';
import { serviceOptions } from '../../../src/server/configuration/options.ts';
import { Metrics } from '../../../src/server/metrics/metrics.ts';
import { aRecord } from '../../support/decision-logs.ts';
import { filterSource } from '../../support/filter-folder.ts';
import { policyServer } from '../../support/policy-server.ts';
import { createLasting, createPhysicalHost, endActive } from '../../support/requests.ts';
import { runService } from '../../support/running-service.ts';
import { hurriedClock, readSamples, samplesIn, samplesOf } from '../../support/samples.ts';
import { startTcpService } from '../../support/services.ts';
import { unusedPort } from '../../support/unused-port.ts';

const PATIENT = { timeout: 120_000, interval: 20 };

function newMetrics() {
  const gauges = { underWay: 0, queued: 0, generation: 1, valid: true };
  const metrics = new Metrics(
    {
      underWay: () => gauges.underWay,
      queued: () => gauges.queued,
      generation: () => gauges.generation,
      configurationIsValid: () => gauges.valid,
    },
    hurriedClock(),
  );
  const read = async () => samplesIn(String((await metrics.exposition({ budgets: true })).text));
  return { metrics, gauges, read };
}

describe('decisions', () => {
  it('and what each filter took, audited ones too, are timed in seconds', async () => {
    const { metrics, read } = newMetrics();
    const said = { audit: false, message: null } as const;
    metrics.decisions.decided(
      aRecord({
        duration_ms: 30,
        filters: [
          { ...said, filter: 'QuickFilter', outcome: 'allowed', duration_ms: 0.5 },
          { ...said, filter: 'SlowFilter', outcome: 'rejected', audit: true, duration_ms: 29 },
        ],
      }),
    );
    const samples = await read();
    expect(samples['decision_duration_seconds_sum{operation="create"}']).toBeCloseTo(0.03);
    expect(samples['decision_duration_seconds_bucket{le="0.025",operation="create"}']).toBe(0);
    expect(samples['decision_duration_seconds_bucket{le="0.05",operation="create"}']).toBe(1);
    expect(samplesOf(samples, 'filter_duration_seconds_sum')).toEqual({
      '{operation="create",filter="QuickFilter",outcome="allowed"}': 0.0005,
      '{operation="create",filter="SlowFilter",outcome="rejected"}': 0.029,
    });
  });

  it('are counted by the service as they were made', async () => {
    const broken = "throw new Error('the cause');";
    const service = await runService({
      enforcement: {
        enabled_filters: ['MaxLeaseDurationFilter', 'FickleFilter'],
        audit_filters: ['TriedFilter', 'AlsoTriedFilter'],
        exempt_projects: ['staff'],
      },
      filters: {
        'fickle-filter.js': filterSource('FickleFilter', {
          create: `if (context.user_id === 'unlucky') { ${broken} }
            return context.user_id === 'lucky' ? { allowed: true, onError: true } : allow();`,
          end: broken,
        }),
        'tried-filter.js': filterSource('TriedFilter', {
          create: "return context.user_id === 'new' ? reject('not yet') : allow();",
        }),
        'also-tried-filter.js': filterSource('AlsoTriedFilter', {
          create: `if (context.user_id === 'unlucky') { ${broken} }
            return context.user_id === 'alice' ? allow() : reject('not yet');`,
        }),
      },
    });
    const by = (user_id: string, project_id = 'climate') => createLasting(60, { user_id, project_id });
    const statuses = await Promise.all(
      [
        by('alice'),
        by('alice'),
        createLasting(864_000, { user_id: 'bob' }),
        by('unlucky'),
        by('new'),
        by('lucky'),
        by('unlucky', 'staff'),
        { not: 'a request' },
      ].map(async (body) => (await service.post('/check-create', body)).status),
    );
    expect(statuses).toEqual([204, 204, 403, 403, 204, 204, 204, 400]);
    expect((await service.post('/v1/on-end', endActive())).status).toBe(204);

    const samples = await readSamples(service.url);
    expect(samplesOf(samples, 'decisions_total')).toEqual({
      '{operation="create",filter="",outcome="allowed"}': 2,
      '{operation="create",filter="MaxLeaseDurationFilter",outcome="rejected"}': 1,
      '{operation="create",filter="FickleFilter",outcome="failed"}': 1,
      '{operation="create",filter="TriedFilter",outcome="audit"}': 1,
      '{operation="create",filter="FickleFilter",outcome="allowed-on-error"}': 1,
      '{operation="create",filter="",outcome="exempt"}': 1,
      '{operation="end",filter="FickleFilter",outcome="failed"}': 1,
    });
    // Of the second audited filter, behind a rejection, and behind a failure too.
    expect(samplesOf(samples, 'audit_refusals_total')).toEqual({
      '{operation="create",filter="TriedFilter",outcome="rejected"}': 1,
      '{operation="create",filter="AlsoTriedFilter",outcome="rejected"}': 3,
      '{operation="create",filter="AlsoTriedFilter",outcome="failed"}': 1,
    });
    expect(samples['decision_duration_seconds_count{operation="create"}']).toBe(7);
    const requests = {
      '{path="/check-create",status="204"}': 5,
      '{path="/check-create",status="403"}': 2,
      '{path="/check-create",status="400"}': 1,
      '{path="/v1/on-end",status="204"}': 1,
    };
    expect(samplesOf(samples, 'http_requests_total')).toEqual(requests);
    expect(samplesOf(await readSamples(service.url), 'http_requests_total'), 'read twice').toEqual({
      ...requests,
      '{path="/metrics",status="200"}': 1,
    });
  });
});

describe('buckets', () => {
  it('reach past the longest time that anything may take', async () => {
    const { metrics, read } = newMetrics();
    metrics.decisions.decided(
      aRecord({
        filters: [{ filter: 'F', outcome: 'allowed', audit: false, message: null, duration_ms: 1 }],
      }),
    );
    metrics.calls.called('https://policy.example.org', 204, 1);
    metrics.ledger.transacted('commit', 'done', 1);
    const samples = await read();
    const external = (external_service_timeout: number) =>
      ExternalServiceFilter.options.safeParse({
        external_service_base_endpoint: 'https://policy.example.org',
        external_service_timeout,
      }).success;
    for (const histogram of [
      'decision_duration',
      'filter_duration',
      'external_call_duration',
      'ledger_transaction_duration',
    ]) {
      const bounds = Object.keys(samplesOf(samples, `${histogram}_seconds_bucket`))
        .map((labels) => Number(/le="(\d[\d.]*)"/.exec(labels)?.[1]))
        .filter(Number.isFinite);
      const longest = Math.max(...bounds);
      expect(longest).toBeGreaterThan(1);
      expect(serviceOptions.safeParse({ deadline: longest }).success).toBe(false);
      expect(external(longest)).toBe(false);
    }
    expect(serviceOptions.safeParse({ deadline: 3600 }).success && external(3600)).toBe(true);
  });
});

describe('calls to an external service', () => {
  const settings = (endpoint: string, more: object = {}) => ({
    enforcement: {
      enabled_filters: ['ExternalServiceFilter'],
      max_lease_duration: undefined,
      external_service_base_endpoint: endpoint,
      external_service_timeout: 20,
      external_service_connect_retries: 0,
      external_service_breaker_failures: 0,
      ...more,
    },
  });
  const calls = async (url: string, origin: string) =>
    Object.fromEntries(
      Object.entries(samplesOf(await readSamples(url), 'external_call_duration_seconds_count')).map(
        ([labels, count]) => {
          expect(labels).toContain(`origin="${origin}"`);
          return [/outcome="([^"]*)"/.exec(labels)?.[1], count];
        },
      ),
    );

  it('are counted by what came back', async () => {
    const external = await policyServer({ status: 204 });
    const { post, url } = await runService(settings(`${external.url}/secret-path?key=value`));
    const ask = async (answer: typeof external.answer) => {
      external.answer = answer;
      return (await post('/check-create', createPhysicalHost())).status;
    };
    expect(await ask({ status: 204 })).toBe(204);
    expect(await ask({ status: 204 })).toBe(204);
    expect(await ask({ status: 403, body: '{"message":"no"}' })).toBe(403);
    expect(await ask({ status: 500 })).toBe(403);
    expect(await ask({ status: 302, headers: { Location: 'http://elsewhere' } })).toBe(403);
    expect(await ask((_, response) => void response.destroy())).toBe(403);
    expect(await ask({ status: 500, body: 'x'.repeat(100_000) })).toBe(403);
    expect(await calls(url, external.url)).toEqual({
      '204': 2,
      '403': 1,
      '500': 1,
      '302': 1,
      transport: 1,
      'answer-too-large': 1,
    });
  });

  it.each([
    ['nothing comes back in time', 'timeout', async () => (await policyServer(() => {})).url],
    ['there is no connection', 'connect', async () => `http://127.0.0.1:${await unusedPort()}`],
  ])('are counted when %s', async (_, outcome, start) => {
    const origin = await start();
    const { post, url } = await runService(settings(origin, { external_service_timeout: 1 }));
    expect((await post('/check-create', createPhysicalHost())).status).toBe(403);
    expect(await calls(url, origin)).toEqual({ [outcome]: 1 });
  });

  it('are counted under one name for all statuses that do not exist', async () => {
    let status = 600;
    const external = await startTcpService((socket) => {
      socket.on('data', () => {
        socket.end(`HTTP/1.1 ${status} Made Up\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
      });
    });
    const origin = new URL(external.url).origin;
    const { post, url } = await runService(settings(origin));
    for (; status < 620; status += 1) {
      expect((await post('/check-create', createPhysicalHost())).status).toBe(403);
    }
    expect(await calls(url, origin)).toEqual({ other: 20 });
  });

  it('show whether they are let through at all', async () => {
    const external = await policyServer({ status: 500 });
    const { post, url, service } = await runService(
      settings(external.url, {
        external_service_breaker_failures: 2,
        external_service_breaker_cooldown: 1,
      }),
    );
    const ask = async () => (await post('/check-create', createPhysicalHost())).status;
    const state = async () => samplesOf(await readSamples(url), 'external_breaker_state');
    const label = `{origin="${external.url}"}`;
    expect(await state()).toEqual({});
    await ask();
    expect(await state()).toEqual({ [label]: 0 });
    await ask();
    expect(await state()).toEqual({ [label]: 2 });
    await ask();
    expect(await calls(url, external.url)).toEqual({ '500': 2, 'breaker-open': 1 });

    // One is tried when the service has been left alone for long enough, and while it is, no other.
    let finish: (() => void) | undefined;
    external.answer = (_, response) => {
      finish = () => response.writeHead(204).end();
    };
    const trial = vi.waitFor(async () => {
      const status = await ask();
      expect(status).toBe(204);
    }, PATIENT);
    await expect.poll(() => finish).toBeDefined();
    expect(await state()).toEqual({ [label]: 1 });
    finish?.();
    await trial;
    expect(await state()).toEqual({ [label]: 0 });

    external.answer = { status: 500 };
    await ask();
    await ask();
    expect(await state()).toEqual({ [label]: 2 });
    // The next configuration calls anew, and perhaps somebody else.
    expect(await service.reload()).toBe(true);
    expect(await state()).toEqual({});
  });
});

describe('what is going on', () => {
  it('shows what the decision log could not take', async () => {
    const { metrics, read } = newMetrics();
    metrics.decisionLog.dropped(3);
    metrics.decisionLog.dropped(1);
    metrics.decisionLog.failed();
    expect(await read()).toMatchObject({ decision_log_dropped_total: 4, decision_log_errors_total: 1 });
  });
});

describe('what callers make up', () => {
  it('is no new series: paths, methods, headers, ids, bodies', async () => {
    const { request, post, raw, url } = await runService();
    // Those of Node.js come as its garbage collector pleases.
    const series = async () =>
      new Set(Object.keys(await readSamples(url)).filter((name) => !name.startsWith('nodejs_')));
    const visit = async (round: number) => {
      const text = `made-up-${round}"}\\`;
      await request(`/made/up/${round}`);
      await request(`/check-create/${round}`, { method: 'POST' });
      await request('/check-create', { method: 'DELETE' });
      await request(`/check-create?x=${round}`, { method: 'GET' });
      await request('/healthz', { method: 'OPTIONS', headers: { 'X-Made-Up': String(round) } });
      await post('/CHECK-CREATE', {}, { 'X-Openstack-Request-Id': `req-${round}` });
      await post('/check-create', { context: { user_id: text, project_id: text } });
      await post('/check-create', createLasting(60, { user_id: text, project_id: text }));
      await post('/check-create', createLasting(864_000 + round, { user_id: text, project_id: text }));
      await post('/check-create', '{', { 'Content-Type': `application/x-${round}` });
      await post('/v1/../check-create', '{');
      await raw(`GET /\x80${round} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      await raw(`BREW${round} / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    };
    await visit(0);
    await series();
    const before = await series();
    for (let round = 1; round <= 10; round += 1) {
      await visit(round);
    }
    const after = await series();
    expect([...after].filter((name) => !before.has(name))).toEqual([]);
    expect([...after].filter((name) => name.includes('made'))).toEqual([]);
    expect([...after].some((name) => name.includes('path="other",status="404"'))).toBe(true);
  });
});

it('a scrape has a content type that Prometheus knows, and needs no token', async () => {
  const { request } = await runService({ service: { tokens: ['s3cret-0123456789abcdef'] } });
  const { status, headers, text } = await request('/metrics');
  expect(status).toBe(200);
  expect(headers.get('Content-Type')).toMatch(/^text\/plain; version=0\.0\.4/);
  expect(text).not.toContain('s3cret-0123456789abcdef');
  for (const line of text.trimEnd().split('\n')) {
    expect(line).toMatch(/^(|# (HELP|TYPE) \S+ .+|[a-z0-9_]+(\{.*\})? \S+)$/);
  }
});
