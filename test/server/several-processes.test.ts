/** What a process needs to run beside others: a port that they share, a port of its own, and a configuration that says so. */
import { describe, expect, it } from 'vitest';
import { readConfiguration } from '../../src/enforcement/configuration.ts';
import { canReusePort, serviceOptions } from '../../src/server/configuration/options.ts';
import { SECTIONS } from '../../src/server/configuration/sections.ts';
import { storageProblems } from '../../src/server/configuration/start-checks.ts';
import { startService } from '../../src/server/service.ts';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { confFile, valuesOnly } from '../support/files.ts';
import { newLedger } from '../support/ledgers.ts';
import { runServiceOnFile } from '../support/running-service.ts';
import { readSamples } from '../support/samples.ts';

const LIMIT = '[enforcement]\nenabled_filters = MaxLeaseDurationFilter\n';

async function serve(service: string) {
  const running = await runServiceOnFile(`${LIMIT}[service]\nport = 0\n${service}`);
  return { ...running, adminUrl: running.service.adminUrl };
}

const status = async (url: string) => (await fetch(url)).status;

describe('admin_port', () => {
  it('has health, readiness and metrics, of which only the metrics are gone from the other port', async () => {
    const { url, adminUrl = '' } = await serve('admin_port = 0\n');
    expect(adminUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(adminUrl).not.toBe(url);
    for (const path of ['/healthz', '/readyz']) {
      expect([path, await status(adminUrl + path), await status(url + path)]).toEqual([path, 200, 200]);
    }
    expect(await status(`${url}/metrics`)).toBe(404);
    expect(await readSamples(adminUrl)).toMatchObject({
      generation: 1,
      'http_requests_total{path="/readyz",status="200"}': 2,
    });
  });

  it('answers nothing else', async () => {
    const { adminUrl = '' } = await serve('admin_port = 0\n');
    for (const path of ['/', '/check-create', '/v1/check-create', '/openapi.json', '/login', '/decisions']) {
      expect([path, await status(adminUrl + path)]).toEqual([path, 404]);
    }
    expect((await fetch(`${adminUrl}/check-create`, { method: 'POST', body: '{}' })).status).toBe(404);
  });

  it('takes tokens for budgets, and refuses wrong ones', async () => {
    const { adminUrl = '' } = await serve('admin_port = 0\nmetrics_tokens = of-prometheus-0123456789\n');
    const shown = (token: string) =>
      fetch(`${adminUrl}/metrics`, { headers: { Authorization: `Bearer ${token}` } });
    expect((await shown('of-prometheus-0123456789')).status).toBe(200);
    expect((await shown('of-somebody-else-0123456')).status).toBe(401);
  });

  it('keeps the one that it has after a reload, and says that a change needs a restart', async () => {
    const { change, logger, adminUrl = '' } = await serve('admin_port = 0\n');
    expect(await change(`${LIMIT}[service]\nport = 0\n`)).toBe(true);
    expect(await status(`${adminUrl}/readyz`)).toBe(200);
    expect(JSON.stringify(logger.lines)).toContain(
      '[service] admin_port: the change takes effect at the next start',
    );
  });

  it('is closed with the service, and after a start that failed', async () => {
    const { service, adminUrl = '' } = await serve('admin_port = 0\n');
    await service.close();
    await expect(fetch(adminUrl)).rejects.toThrow();
    const first = await serve('');
    const { port } = new URL(first.url);
    const taken = confFile(`${LIMIT}[service]\nport = 0\nadmin_port = ${port}\n`);
    await expect(startService({ configFiles: [taken], environment: {} })).rejects.toThrow(
      `cannot listen on 127.0.0.1, port ${port}: the port is in use`,
    );
  });

  it('is another port than port', () => {
    expect(serviceOptions.safeParse({ port: 9001, admin_port: 9001 }).error?.issues).toMatchObject([
      { path: ['admin_port'], message: 'expected another port than port' },
    ]);
  });
});

describe('reuse_port', () => {
  it.each([
    ['22.11.0', false],
    ['22.12.0', true],
    ['23.0.0', false],
    ['23.1.0', true],
  ])('of Node.js %s: %s', (version, can) => {
    expect(canReusePort(version)).toBe(can);
  });

  it.skipIf(canReusePort(process.versions.node))('is a mistake with an older Node.js', async () => {
    const conf = confFile('[service]\nreuse_port = true\n');
    const { code, stderr } = await runProgramInProcess(['config', 'validate', '--config-file', conf]);
    expect(code).toBe(2);
    expect(stderr).toContain(
      `${conf}:2: [service] reuse_port: expected false with Node.js ${process.versions.node}: true needs 22.12 or newer`,
    );
  });

  it.each([
    ['operator_tokens', { operator_tokens: ['0123456789abcdef'] }],
    ['reader_tokens_file', { reader_tokens_file: '/dev/null' }],
    ['keystone_auth', { keystone_auth: true }],
  ])('warns about sessions with %s, unless they are in a ledger', async (_, values) => {
    const warned = async (service: Readonly<Record<string, unknown>>) => {
      const connection = await newLedger();
      const sources = valuesOnly({ ledger: { connection }, service });
      const problems = await storageProblems(await readConfiguration(sources, SECTIONS), { ask: false });
      return problems.filter(({ severity, option }) => severity === 'warning' && option === 'reuse_port');
    };
    expect(await warned({ ...values, reuse_port: true })).toMatchObject([
      { message: expect.stringContaining('each process keeps its own sessions') },
    ]);
    expect(await warned({ reuse_port: true, tokens: ['0123456789abcdef'] })).toEqual([]);
    expect(await warned(values)).toEqual([]);
    expect(await warned({ ...values, reuse_port: true, decision_store: 'refused' })).toEqual([]);
  });
});

it('workers is refused with what to do instead', async () => {
  const conf = confFile('[service]\nworkers = 2\n');
  const { code, stderr } = await runProgramInProcess(['config', 'validate', '--config-file', conf]);
  expect(code).toBe(2);
  expect(stderr).toContain(`${conf}:2: [service] workers: this option was removed`);
  for (const instead of ['reuse_port = true', 'admin_port', 'blazar-enforcement@1', 'etc/systemd']) {
    expect(stderr).toContain(instead);
  }
});
