/** The reference of what the service tells, held against a real service: what it counts, logs and writes, and the rules that watch it. */
import { chmodSync, cpSync, readdirSync, readFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { DecisionOutcome, FilterOutcome } from '../../src/decisions/record.ts';
import { OPERATIONS } from '../../src/decisions/recorded-operation.ts';
import type { HttpCallErrorCode } from '../../src/http/call-error.ts';
import { startService } from '../../src/server/service.ts';
import { confFile, projectFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { newLedger } from '../support/ledgers.ts';
import { recordingLogger } from '../support/logger.ts';
import { policyServer } from '../support/policy-server.ts';
import { createLasting } from '../support/requests.ts';
import { namesUnder, pageNamed, tableUnder } from './markdown.ts';

const JSON_TYPE = { 'Content-Type': 'application/json' };
const metrics = pageNamed('docs/reference/metrics.md');
const decisionLog = pageNamed('docs/reference/decision-log.md');

const page = (name: string) => pageNamed(`docs/reference/${name}.md`);

interface Metric {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
  readonly help: string;
}

/** What a service has said of itself after a lease was rejected behind a call to another service. */
interface Observation {
  readonly metrics: readonly Metric[];
  readonly record: Record<string, unknown>;
  readonly keepAlive: string | null;
}

let observation: Promise<Observation> | undefined;

function observed(): Promise<Observation> {
  observation ??= observe();
  return observation;
}

async function observe() {
  const external = await policyServer({ status: 204 });
  const log = join(temporaryFolder(), 'decisions.jsonl');
  const values = {
    service: { port: 0, decision_log: log },
    ledger: { connection: await newLedger() },
    enforcement: {
      enabled_filters: ['ExternalServiceFilter', 'MaxLeasesFilter', 'MaxLeaseDurationFilter'],
      external_service_base_endpoint: external.url,
      max_lease_duration: 172_800,
    },
  };
  const sources = { environment: {}, configFiles: [], values };
  const service = await startService(sources, { logger: recordingLogger() });
  try {
    const body = JSON.stringify(createLasting(864_000));
    await fetch(`${service.url}/check-create`, { method: 'POST', headers: JSON_TYPE, body });
    const answer = await fetch(`${service.url}/metrics`);
    const found = ownMetrics(await answer.text());
    await service.close();
    const record: Record<string, unknown> = JSON.parse(readFileSync(log, 'utf8'));
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
    const { metrics } = await observed();
    expect(metrics.length).toBeGreaterThan(10);
    expect(tableUnder(page('metrics'), 'Metrics')).toEqual(
      metrics.map(({ name, type, labels, help }) => [
        `\`${name}\``,
        type,
        labels.map((label) => `\`${label}\``).join(', '),
        help,
      ]),
    );
  });

  it('have labels that the page explains, and no others', async () => {
    const { metrics } = await observed();
    expect(namesUnder(page('metrics'), 'Labels').sort()).toEqual(
      [...new Set(metrics.flatMap(({ labels }) => labels))].sort(),
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
    };
    const [, values = ''] =
      tableUnder(page('metrics'), 'Labels').find(([label]) => label === '`outcome`') ?? [];
    expect(values).toContain(
      `or ${Object.keys(codes)
        .map((code) => `\`${code}\``)
        .join(', ')}.`,
    );
  });
});

describe('the alerts', () => {
  const rules = readFileSync(projectFile(RULES), 'utf8');
  /** `up` is Prometheus's own. */
  const expressions = (source: string) =>
    source
      .split('\n')
      .map((line) => line.replace(/^ *expr: /, ''))
      .filter((line) => line.includes('blazar_enforcement_'));

  it('are explained one by one', () => {
    expect(namesUnder(page('metrics'), 'Alerts')).toEqual(
      [...rules.matchAll(/^ *- alert: (\w+)$/gm)].map(([, name]) => name),
    );
  });

  it('and the panels ask for metrics and labels that there are', async () => {
    const { metrics } = await observed();
    const panels = page('metrics')
      .blocks.filter(({ language }) => language === 'text')
      .map((block) => block.text);
    const asked = [rules, ...panels].flatMap(expressions);
    expect(asked.length).toBeGreaterThan(15);
    const strange = asked.flatMap((expression) =>
      [...expression.matchAll(/blazar_enforcement_\w+/g)].flatMap(([series]) => {
        const name = series.replace(/_(bucket|count|sum)$/, '');
        const metric = found.find((one) => one.name === series || one.name === name);
        const isPart = series !== name && metric?.name === name;
        if (metric === undefined || isPart !== (metric.type === 'histogram')) {
          return [`${series} in ${expression}`];
        }
        const known = [...metric.labels, 'instance', 'le'];
        return labels.filter((label) => !known.includes(label)).map((label) => `${label} in ${expression}`);
      });
    });
    expect(strange).toEqual([]);
  });
});

describe('the decision log', () => {
  it('has the fields that the page explains, in this order', async () => {
    const { record } = await observed();
    const [filter] = record.filters as object[];
    expect(namesUnder(page('decision-log'), 'Fields of a decision')).toEqual(Object.keys(record));
    expect(namesUnder(page('decision-log'), 'Fields of each of its filters')).toEqual(
      Object.keys(filter ?? {}),
    );
  });

  it('is shown with a line that has all of them', async () => {
    const { record } = await observed();
    const shown = page('decision-log')
      .blocks.filter(({ language }) => language === 'json')
      .map((block) => JSON.parse(block.text));
    expect(shown.map((line) => Object.keys(line))).toEqual([Object.keys(record)]);
    expect(Object.keys(shown[0].filters[0])).toEqual(Object.keys((record.filters as object[])[0] ?? {}));
  });

  it('has the operations that the page explains', () => {
    const ofBlazar = ['create', 'update', 'commit-create', 'commit-update', 'end'];
    const further = ['Operations of SkyPilot', 'Operations of Kubernetes'];
    expect([...ofBlazar, ...further.flatMap((title) => namesUnder(page('decision-log'), title))]).toEqual(
      OPERATIONS,
    );
  });

  it('has the outcomes that the page explains', () => {
    const ofFilters: Record<FilterOutcome, true> = {
      allowed: true,
      changed: true,
      rejected: true,
      failed: true,
      'allowed-on-error': true,
    };
    const ofDecisions: Record<DecisionOutcome, true> = { ...ofFilters, exempt: true, audit: true };
    const rows = tableUnder(page('decision-log'), 'Outcomes');
    const namesWhere = (column: number) =>
      rows.filter((row) => row[column] !== '').map(([name = '']) => name.replaceAll('`', ''));
    expect(namesWhere(1).sort()).toEqual(Object.keys(ofDecisions).sort());
    expect(namesWhere(2).sort()).toEqual(Object.keys(ofFilters).sort());
  });
});

it('the log says what the page explains', () => {
  const source = readdirSync(projectFile('src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => readFileSync(projectFile(`src/${name}`), 'utf8'))
    .join('\n');
  const unknown = namesUnder(page('log'), 'Messages')
    .filter((message) => message !== 'msg')
    .filter((message) => !source.includes(`'${message}'`));
  expect(unknown).toEqual([]);
});

it('the service keeps idle connections for as long as the page says', async () => {
  const { keepAlive } = await observed();
  const [, seconds] = /keeps them for (\d+) seconds/.exec(page('policy-service').lines.join('\n')) ?? [];
  expect(keepAlive).toBe(`timeout=${seconds}`);
});

it('the configuration for production starts, and asks for a certificate and a token', async () => {
  const block = page('policy-service').blocks.find((candidate) => candidate.text.includes('client_ca_file'));
  const folder = temporaryFolder();
  const tls = join(folder, 'tls');
  cpSync(projectFile('test/fixtures/tls'), tls, { recursive: true });
  // Git lets everyone read it.
  chmodSync(join(tls, 'server.key'), 0o600);
  const conf = shown
    .replace('/etc/blazar/tokens', confFile('the-new-token\nthe-old-token\n'))
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
  const withToken = { ...JSON_TYPE, 'X-Auth-Token': 'the-old-token' };
  expect(await ask('/check-create', certificate, withToken)).toBe(204);
  expect(await ask('/check-create', certificate, JSON_TYPE)).toBe(401);
  expect(await ask('/healthz')).toMatch(/CERTIFICATE_REQUIRED|ECONNRESET/);
});
