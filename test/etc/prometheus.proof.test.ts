/** Rules, dashboards and metrics with a real promtool, and with a real Prometheus that scrapes a service with every filter. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { z } from 'zod';
import { startService } from '../../src/server/service.ts';
import { startApiServerDouble } from '../support/api-server-double.ts';
import { confFile, projectFile, valuesOnly } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { creating } from '../support/kubernetes-service.ts';
import { giveBudgets, newLedger } from '../support/ledgers.ts';
import { recordingLogger } from '../support/logger.ts';
import { skipAloud } from '../support/peers.ts';
import { policyServer } from '../support/policy-server.ts';
import { createLasting } from '../support/requests.ts';
import { unusedPort } from '../support/unused-port.ts';
import { asSent, dashboardNamed, queriesOf } from './dashboards.ts';

const HAS_PROMTOOL = spawnSync('promtool', ['--version']).status === 0;
if (!HAS_PROMTOOL) {
  skipAloud('promtool', 'there is no command promtool');
}
const HAS_PROMETHEUS = spawnSync('prometheus', ['--version']).status === 0;
if (!HAS_PROMETHEUS) {
  skipAloud('Prometheus', 'there is no command prometheus');
}
const FOLDER = projectFile('etc/prometheus');
const TOKEN = 'of-prometheus-0123456789abcdef';
/** Panels about what the service of this test does not have. */
const NOT_IN_USE = [
  'Filters that fail, or allow on an error',
  'What audit mode would have refused',
  'Messages in the outbox',
  'Age of the oldest message',
  'Since the last reconciliation with Blazar',
  'Leases of Blazar',
  'Since the last reconciliation with SkyPilot',
  'Clusters of SkyPilot',
];
/** Names that promtool does not like, and that stay: budgets are in hours everywhere, and the rest is named by prom-client. */
const KEPT_NAMES = [
  'blazar_enforcement_budget_amount_hours use base unit "seconds" instead of "hours"',
  'blazar_enforcement_budget_left_hours use base unit "seconds" instead of "hours"',
  'blazar_enforcement_budget_taken_hours use base unit "seconds" instead of "hours"',
  'nodejs_active_handles_total non-counter metrics should not have "_total" suffix',
  'nodejs_active_requests_total non-counter metrics should not have "_total" suffix',
  'nodejs_active_resources_total non-counter metrics should not have "_total" suffix',
];
const JSON_TYPE = { 'Content-Type': 'application/json' };

function promtool(
  words: readonly string[],
  input = '',
): { readonly status: number | null; readonly text: string } {
  const { status, stdout, stderr } = spawnSync('promtool', words, { cwd: FOLDER, input, encoding: 'utf8' });
  return { status, text: stdout + stderr };
}

/** A service with every filter and policies of a cluster, which has judged leases and a pod. */
async function runEverything() {
  const external = await policyServer({ status: 204 });
  const connection = await newLedger();
  await giveBudgets(connection, [
    { amount: '100', until: '2098-01-01' },
    { amount: '50', userId: 'alice', until: '2098-01-01' },
  ]);
  const cluster = await startApiServerDouble();
  const filters = readdirSync(projectFile('filters'))
    .map((name) => name.replace(/\.ts$/, ''))
    .map((name) => name.replace(/(^|-)(\w)/g, (_, _dash, letter: string) => letter.toUpperCase()));
  expect(filters).toContain('UsageBudgetFilter');
  const values = {
    service: {
      port: 0,
      decision_log: join(temporaryFolder(), 'decisions.jsonl'),
      metrics_tokens: [TOKEN],
      metrics_budgets: 10,
    },
    kubernetes: { source: 'cluster', kubeconfig: cluster.kubeconfig() },
    ledger: { connection },
    enforcement: {
      enabled_filters: filters,
      external_service_base_endpoint: external.url,
      max_lease_duration: 172_800,
      max_leases_per_user: 5,
      scheduling_policy_path: projectFile('examples/scheduling-policies/leases'),
      lease_dates_latest_end: '+3153600000',
      max_reservation_size: { 'physical:host': 100 },
      rules_path: confFile('rules: [{name: never, mode: audit, allow: "false", message: Never.}]\n'),
    },
  };
  const service = await startService(valuesOnly(values), { logger: recordingLogger() });
  const post = (path: string, body: unknown) =>
    fetch(service.url + path, { method: 'POST', headers: JSON_TYPE, body: JSON.stringify(body) });
  await vi.waitUntil(async () => (await fetch(`${service.url}/readyz`)).ok, { timeout: 120_000 });
  onTestFinished(() => service.close());
  const judge = async () => {
    await post('/check-create', createLasting(60));
    await post('/check-create', createLasting(864_000));
    await post('/kubernetes/admission', creating({ nodeSelector: { disk: 'ssd' } }));
  };
  await judge();
  return { url: service.url, judge };
}

describe.skipIf(!HAS_PROMTOOL)('promtool', () => {
  it('accepts the rules', () => {
    const { status, text } = promtool(['check', 'rules', '--lint-fatal', 'blazar-enforcement.rules.yml']);
    expect([status, text]).toEqual([0, expect.stringContaining('SUCCESS')]);
  });

  it('finds that each alert fires when it should, and not before', () => {
    const { status, text } = promtool(['test', 'rules', 'blazar-enforcement.rules-test.yml']);
    expect([status, text]).toEqual([0, expect.stringContaining('SUCCESS')]);
  });

  it('accepts every query of the dashboards', () => {
    const queries = (['operators', 'budgets'] as const).flatMap((name) => queriesOf(dashboardNamed(name)));
    const rules = queries.map((query, index) => ({
      record: `query:${index}`,
      expr: asSent(query, { project: 'climate' }),
    }));
    const file = join(temporaryFolder(), 'queries.yml');
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboards', rules }] }));
    const { status, text } = promtool(['check', 'rules', '--lint=none', file]);
    expect([status, text]).toEqual([0, expect.stringContaining(`${queries.length} rules found`)]);
  });

  it('accepts the metrics of a service with every filter', async () => {
    const { url } = await runEverything();
    const answer = await fetch(`${url}/metrics`, { headers: { 'X-Auth-Token': TOKEN } });
    const exposition = await answer.text();
    expect(exposition).toMatch(/^blazar_enforcement_budget_left_hours\{/m);
    const { status, text } = promtool(['check', 'metrics'], exposition);
    // 3: it has read them, and has remarks.
    expect([status, text.trim().split('\n')]).toEqual([3, KEPT_NAMES]);
  });
});

const answerSchema = z.object({
  status: z.string(),
  error: z.string().optional(),
  data: z.object({ result: z.array(z.unknown()) }).optional(),
});

const rulesSchema = z.object({
  data: z.object({
    groups: z.array(z.object({ rules: z.array(z.object({ name: z.string(), health: z.string() })) })),
  }),
});

/** Prometheus with the rules, which asks the service every two seconds. Resolves when it has asked three times. */
async function runPrometheus(service: string): Promise<string> {
  const port = await unusedPort();
  const folder = temporaryFolder();
  const configuration = {
    global: { scrape_interval: '2s', evaluation_interval: '2s' },
    rule_files: [join(FOLDER, 'blazar-enforcement.rules.yml')],
    scrape_configs: [
      {
        job_name: 'blazar-enforcement',
        authorization: { credentials: TOKEN },
        static_configs: [{ targets: [new URL(service).host] }],
      },
    ],
  };
  const file = join(folder, 'prometheus.yml');
  writeFileSync(file, JSON.stringify(configuration));
  const words = [
    `--config.file=${file}`,
    `--storage.tsdb.path=${folder}/data`,
    `--web.listen-address=127.0.0.1:${port}`,
  ];
  const child = spawn('prometheus', words, { stdio: 'ignore' });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  const url = `http://127.0.0.1:${port}`;
  await vi.waitFor(
    async () => expect(await ask(url, 'count_over_time(up[5m]) >= 3 and up == 1')).toHaveLength(1),
    { timeout: 240_000, interval: 500 },
  );
  return url;
}

/** What a query finds now. */
async function ask(prometheus: string, query: string): Promise<unknown[]> {
  const answer = await fetch(`${prometheus}/api/v1/query`, {
    method: 'POST',
    body: new URLSearchParams({ query }),
  });
  const { status, error, data } = answerSchema.parse(await answer.json());
  expect([query, status, error]).toEqual([query, 'success', undefined]);
  return data?.result ?? [];
}

describe.skipIf(!HAS_PROMETHEUS)('Prometheus', () => {
  it('has something to show in every panel whose parts are in use, and evaluates every alert', async () => {
    const { url, judge } = await runEverything();
    const prometheus = await runPrometheus(url);
    await judge();
    await vi.waitFor(
      async () =>
        expect(
          await ask(prometheus, 'sum(increase(blazar_enforcement_decisions_total[5m])) > 0'),
        ).toHaveLength(1),
      { timeout: 240_000, interval: 500 },
    );
    const emptyPanels = async () => {
      const empty = new Set<string>();
      for (const name of ['operators', 'budgets'] as const) {
        for (const { title, targets } of dashboardNamed(name).panels) {
          for (const { expr } of targets) {
            const query = asSent(expr.replaceAll(' offset $__range', ''), { project: 'climate' });
            if ((await ask(prometheus, query)).length === 0) {
              empty.add(title);
            }
          }
        }
      }
      return [...empty];
    };
    // All are empty for a moment when the service of a busy machine has not answered in time.
    await expect.poll(emptyPanels, { timeout: 240_000, interval: 1000 }).toEqual(NOT_IN_USE);
    await vi.waitFor(async () => {
      const answer = await fetch(`${prometheus}/api/v1/rules`);
      const rules = rulesSchema.parse(await answer.json()).data.groups.flatMap((group) => group.rules);
      expect(rules.length).toBeGreaterThan(20);
      expect(rules.filter(({ health }) => health !== 'ok')).toEqual([]);
    }, 240_000);
  });
});
