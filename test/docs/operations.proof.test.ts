/** The references of what the service reports, checked against a real service. */
import { chmodSync, cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  type DecisionOutcome,
  decisionRecordSchema,
  type FilterOutcome,
  OPERATIONS,
} from '../../src/decisions/record.ts';
import type { HttpCallErrorCode } from '../../src/http/call-error.ts';
import { startService } from '../../src/server/service.ts';
import { startApiServerDouble } from '../support/api-server-double.ts';
import { confFile, projectFile, valuesOnly } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { creating } from '../support/kubernetes-service.ts';
import { giveBudgets, newLedger } from '../support/ledgers.ts';
import { recordingLogger } from '../support/logger.ts';
import { policyServer } from '../support/policy-server.ts';
import { createLasting } from '../support/requests.ts';
import { namesUnder, pageNamed, tableUnder } from './markdown.ts';

const JSON_TYPE = { 'Content-Type': 'application/json' };
const metrics = pageNamed('docs/reference/metrics.md');
const decisionLog = pageNamed('docs/reference/decision-log.md');

/** What a service reports after it asked another service, and then rejected the lease. */
let observation: ReturnType<typeof observe> | undefined;
function observed() {
  observation ??= observe();
  return observation;
}

async function observe() {
  const external = await policyServer({ status: 204 });
  const log = join(temporaryFolder(), 'decisions.jsonl');
  const connection = await newLedger();
  await giveBudgets(connection, [{ amount: '10' }]);
  const cluster = await startApiServerDouble();
  const rules = join(temporaryFolder(), 'rules.yaml');
  writeFileSync(rules, 'rules: [{name: never, allow: "false", message: Never.}]\n');
  const values = {
    service: {
      port: 0,
      decision_log: log,
      metrics_tokens: ['of-prometheus-0123456789abcdef'],
      metrics_budgets: 10,
      // Filters must be asked, however busy the machine is.
      deadline: 120,
    },
    kubernetes: { source: 'cluster', kubeconfig: cluster.kubeconfig() },
    ledger: { connection },
    enforcement: {
      enabled_filters: ['ExternalServiceFilter', 'MaxLeasesFilter', 'MaxLeaseDurationFilter'],
      external_service_base_endpoint: external.url,
      max_lease_duration: 172_800,
      audit_filters: ['LeaseDatesFilter', 'RulesFilter'],
      rules_path: rules,
      lease_dates_latest_end: '2020-01-01',
    },
  };
  const sources = valuesOnly(values);
  const service = await startService(sources, { logger: recordingLogger() });
  try {
    const body = JSON.stringify(createLasting(864_000));
    const { status } = await fetch(`${service.url}/check-create`, {
      method: 'POST',
      headers: JSON_TYPE,
      body,
    });
    expect(status).toBe(403);
    await vi.waitUntil(async () => (await fetch(`${service.url}/readyz`)).ok, { timeout: 120_000 });
    const pod = JSON.stringify(creating({ nodeSelector: { disk: 'ssd' } }));
    await fetch(`${service.url}/kubernetes/admission`, { method: 'POST', headers: JSON_TYPE, body: pod });
    const answer = await fetch(`${service.url}/metrics`, {
      headers: { 'X-Auth-Token': 'of-prometheus-0123456789abcdef' },
    });
    const found = ownMetrics(await answer.text());
    await service.close();
    const record: Record<string, unknown> = JSON.parse(readFileSync(log, 'utf8').split('\n')[0] ?? '');
    const [filter = {}] = record.filters as object[];
    return {
      found,
      fields: [Object.keys(record), Object.keys(filter)],
      keepAlive: answer.headers.get('Keep-Alive'),
    };
  } finally {
    await service.close();
  }
}

/** Those of the service, in the order of `/metrics`. Every histogram also has `le`. */
function ownMetrics(exposition: string) {
  return [...exposition.matchAll(/^# HELP (blazar_\S+) (.*)\n# TYPE \S+ (\S+)\n((?:[^#\n].*\n)*)/gm)].map(
    ([, name = '', help = '', type = '', samples = '']) => {
      const labels = new Set([...samples.matchAll(/[{,](\w+)="/g)].map(([, label = '']) => label));
      return { name, type, help, labels: [...labels].filter((label) => label !== 'le') };
    },
  );
}

describe('the metrics', () => {
  it('are all on the page, with types, labels and meanings, and no others', async () => {
    const { found } = await observed();
    expect(found.length).toBeGreaterThan(10);
    expect(tableUnder(metrics, 'Metrics')).toEqual(
      found.map(({ name, type, labels, help }) => [
        `\`${name}\``,
        type,
        labels.map((label) => `\`${label}\``).join(', '),
        help,
      ]),
    );
    expect(namesUnder(metrics, 'Labels').sort()).toEqual(
      [...new Set(found.flatMap(({ labels }) => labels))].sort(),
    );
  });

  it('count calls by outcomes that the page names', () => {
    const codes = {
      connect: true,
      timeout: true,
      transport: true,
      'answer-too-large': true,
      'breaker-open': true,
      aborted: true,
      closed: true,
      'invalid-url': true,
    } satisfies Record<HttpCallErrorCode, true>;
    const [, values] = tableUnder(metrics, 'Labels').find(([label]) => label === '`outcome`') ?? [];
    const names = Object.keys(codes).map((code) => `\`${code}\``);
    expect(values).toContain(`or ${names.join(', ')}.`);
  });
});

describe('the decision log', () => {
  it('has the fields that the page explains and shows, in this order', async () => {
    const { fields } = await observed();
    const titles = ['Fields of a decision', 'Fields of each of its filters'];
    expect(titles.map((title) => namesUnder(decisionLog, title))).toEqual(fields);
    const [shown, named, changed, ...others] = decisionLog.blocks
      .filter(({ language }) => language === 'json')
      .map(({ text }) => JSON.parse(text));
    expect([Object.keys(shown), Object.keys(shown.filters[0]), ...others]).toEqual(fields);
    const { shape } = decisionRecordSchema;
    const rest = Object.keys(shape).filter((name) => !fields[0]?.includes(name));
    const ofSkypilot = ['side', 'launch'];
    const ofTraces = namesUnder(decisionLog, 'Fields of traced decisions');
    expect(ofTraces).toEqual(['trace_id']);
    expect(Object.keys(named)).toEqual([
      'project_id',
      'user_id',
      ...rest.filter((name) => ![...ofSkypilot, ...ofTraces].includes(name)),
    ]);
    const ofRules = namesUnder(decisionLog, 'Fields of rules');
    expect(ofRules).toEqual(['rules']);
    expect(namesUnder(decisionLog, 'Fields of decisions of SkyPilot')).toEqual([
      ...ofSkypilot,
      ...Object.keys(shape.filters.element.shape).filter(
        (name) => !fields[1]?.includes(name) && !ofRules.includes(name),
      ),
    ]);
    expect(shape.filters.element.partial().strict().safeParse(changed).error).toBeUndefined();
  });

  it('has the operations that the page explains', () => {
    const ofBlazar = ['create', 'update', 'commit-create', 'commit-update', 'end'];
    const further = ['Operations of SkyPilot', 'Operations of Kubernetes'];
    expect([...ofBlazar, ...further.flatMap((title) => namesUnder(decisionLog, title))]).toEqual(OPERATIONS);
  });

  it('has the outcomes that the page explains', () => {
    const ofFilters: Record<FilterOutcome, true> = {
      allowed: true,
      changed: true,
      rejected: true,
      failed: true,
      'allowed-on-error': true,
      bypassed: true,
    };
    const ofDecisions: Record<DecisionOutcome, true> = { ...ofFilters, exempt: true, audit: true };
    const rows = tableUnder(decisionLog, 'Outcomes');
    for (const [column, outcomes] of [ofDecisions, ofFilters].entries()) {
      const explained = rows
        .filter((row) => row[column + 1] !== '')
        .map(([name = '']) => name.replaceAll('`', ''));
      expect(explained.sort()).toEqual(Object.keys(outcomes).sort());
    }
  });
});

it('the log has the messages that the page explains', () => {
  const source = ['src', 'filters', 'policies']
    .flatMap((folder) =>
      readdirSync(projectFile(folder), { recursive: true, encoding: 'utf8' }).map(
        (name) => `${folder}/${name}`,
      ),
    )
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => readFileSync(projectFile(name), 'utf8'))
    .join('\n');
  const messages = namesUnder(pageNamed('docs/reference/log.md'), 'Messages');
  expect(messages.length).toBeGreaterThan(10);
  expect(messages.filter((message) => !source.includes(`'${message}'`))).toEqual([]);
});

it('the configuration for production starts, and asks for a certificate and a token', async () => {
  const { blocks } = pageNamed('docs/operations.md');
  const shown = blocks.find(({ text }) => text.includes('client_ca_file'))?.text ?? '';
  const folder = temporaryFolder();
  const tls = join(folder, 'tls');
  cpSync(projectFile('test/fixtures/tls'), tls, { recursive: true });
  // Git lets everyone read it.
  chmodSync(join(tls, 'server.key'), 0o600);
  const conf = shown
    .replace('/etc/blazar/tokens', confFile('the-new-token-0123456789\nthe-old-token-0123456789\n'))
    .replaceAll('/etc/blazar/tls', tls)
    .replace('/var/log/blazar-enforcement', folder);
  const environment = { OS_SERVICE__HOST: '127.0.0.1', OS_SERVICE__PORT: '0' };
  const service = await startService(
    { environment, configFiles: [confFile(conf)] },
    { logger: recordingLogger() },
  );
  onTestFinished(() => service.close());
  expect(service.warnings).toEqual([]);
  const read = (name: string) => readFileSync(join(tls, name));
  const { port } = new URL(service.url);
  const ask = (path: string, certificate: object = {}, headers: Record<string, string> = {}) =>
    new Promise<number | string | undefined>((answered) => {
      const options = { host: 'localhost', port, path, method: 'POST', ca: read('ca.pem'), headers };
      request({ ...options, ...certificate }, (answer) => answered(answer.resume().statusCode))
        .on('error', ({ code }: NodeJS.ErrnoException) => answered(code))
        .end(JSON.stringify(createLasting(60)));
    });
  const certificate = { cert: read('client.pem'), key: read('client.key') };
  const withToken = { ...JSON_TYPE, 'X-Auth-Token': 'the-old-token-0123456789' };
  expect(await ask('/check-create', certificate, withToken)).toBe(204);
  expect(await ask('/check-create', certificate, JSON_TYPE)).toBe(401);
  expect(await ask('/healthz')).toMatch(/CERTIFICATE_REQUIRED|ECONNRESET/);
});
