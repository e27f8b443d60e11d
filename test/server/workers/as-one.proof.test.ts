/** Several workers that are one service: reloads, people, metrics, the decision log and the stop. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { decisionsInFile } from '../../support/decision-logs.ts';
import { temporaryFile } from '../../support/files.ts';
import { filterFolder, filterSource, temporaryFolder } from '../../support/filter-folder.ts';
import { policyServer } from '../../support/policy-server.ts';
import { capturedText } from '../../support/requests.ts';
import { freshSamples } from '../../support/samples.ts';
import { askOn, isThere, launchWorkers, logged, SOON } from '../../support/service-of-workers.ts';

/** Nine days long. */
const FITS = capturedText('check-create-gpu-and-floating-ip.json');
/** So many requests on connections of their own that every worker gets some. */
const ENOUGH = 6;

async function statuses(url: string, headers: Record<string, string> = {}): Promise<(number | undefined)[]> {
  const asked = Array.from({ length: ENOUGH }, () =>
    askOn(`${url}/v1/check-create`, {
      ...{ method: 'POST', body: FITS, headers: { 'Content-Type': 'application/json', ...headers } },
    }),
  );
  return (await Promise.all(asked)).map((answer) => answer?.status);
}

const all = (status: number) => Array(ENOUGH).fill(status);

describe('two workers', () => {
  it('reload, log in, count and log as one', async () => {
    const folder = temporaryFolder();
    const log = join(folder, 'decisions.jsonl');
    const tokens = temporaryFile('tokens', 'first\n');
    const marker = join(folder, 'pid');
    const filters = filterFolder({
      'picky-filter.js': `import { readFileSync } from 'node:fs';\n${filterSource('PickyFilter', {
        extra: `open() { let pid = ''; try { pid = readFileSync(${JSON.stringify(marker)}, 'utf8'); } catch {}
          if (pid === String(process.pid)) throw new Error('not with me'); }`,
      })}`,
    });
    const service = launchWorkers(`[enforcement]
enabled_filters = MaxLeaseDurationFilter, PickyFilter
filters_path = ${filters}
max_lease_duration = 864000
[service]
workers = 2
tokens_file = ${tokens}
operator_tokens = oper
decision_log = ${log}
`);
    const url = await service.listening;
    const first = { 'X-Auth-Token': 'first' };
    expect(await statuses(url)).toEqual(all(401));
    expect(await statuses(url, first)).toEqual(all(204));

    // A change of the configuration.
    const conf = readFileSync(service.conf, 'utf8');
    writeFileSync(service.conf, conf.replace('864000', '86400'));
    service.process.kill('SIGHUP');
    await logged(service, /"generation":2,"msg":"configuration reloaded"/);
    await vi.waitFor(async () => expect(await statuses(url, first)).toEqual(all(403)), SOON);

    // A mistake: told once, and taken by none.
    writeFileSync(service.conf, conf.replace('864000', 'long'));
    service.process.kill('SIGHUP');
    await logged(service, /configuration not reloaded/);
    expect(service.log().match(/got \\"long\\"|got "long"/g)).toHaveLength(1);
    expect(await statuses(url, first)).toEqual(all(403));
    const notReady = await askOn(`${url}/readyz`);
    expect(notReady).toMatchObject({ status: 503, text: expect.stringContaining('max_lease_duration') });

    // One that the second worker alone refuses is taken by none.
    writeFileSync(service.conf, conf);
    writeFileSync(marker, String(service.workers()[1]));
    service.process.kill('SIGHUP');
    await logged(service, /configuration not reloaded/, 2);
    expect(await statuses(url, first)).toEqual(all(403));
    writeFileSync(marker, '');
    service.process.kill('SIGHUP');
    await logged(service, /"generation":3,"msg":"configuration reloaded"/);
    await vi.waitFor(async () => expect(await statuses(url, first)).toEqual(all(204)), SOON);

    // Another token.
    writeFileSync(tokens, 'second\n');
    await vi.waitFor(async () => expect(await statuses(url, first)).toEqual(all(401)), SOON);
    expect(await statuses(url, { 'X-Auth-Token': 'second' })).toEqual(all(204));

    // People: a session is known whichever worker gets the connection, and sees the decisions of both.
    const form = { 'Content-Type': 'application/x-www-form-urlencoded', Origin: url };
    const login = await askOn(`${url}/login`, { method: 'POST', body: 'token=oper', headers: form });
    expect(login?.status).toBe(303);
    const [Cookie = ''] = (login?.headers['set-cookie'] ?? []).map((cookie) => cookie.split(';')[0] ?? '');
    const pages = await Promise.all(
      Array.from({ length: ENOUGH }, () => askOn(`${url}/decisions`, { headers: { Cookie } })),
    );
    const ids = decisionsInFile(log)
      .slice(-4)
      .map(({ request_id }) => request_id);
    for (const page of pages) {
      expect(page?.status).toBe(200);
      for (const id of ids) {
        expect(page?.text).toContain(id);
      }
    }

    // The log is complete, also after it was rotated.
    const moved = `${log}.1`;
    renameSync(log, moved);
    service.process.kill('SIGHUP');
    await logged(service, /"generation":4,"msg":"configuration reloaded"/);
    expect(await statuses(url, { 'X-Auth-Token': 'second' })).toEqual(all(204));
    // A line that was on its way to the file while it was moved is in either.
    await vi.waitFor(async () => {
      const lines = [...decisionsInFile(moved), ...decisionsInFile(log)];
      const counted = Object.entries(await freshSamples(url)).filter(([name]) =>
        name.startsWith('decisions_total'),
      );
      expect(lines).toHaveLength(counted.reduce((sum, [, value]) => sum + value, 0));
      expect(new Set(lines.map(({ request_id }) => request_id)).size).toBe(lines.length);
      expect(decisionsInFile(log).length).toBeGreaterThanOrEqual(ENOUGH);
    }, SOON);
    const samples = await freshSamples(url);
    expect(samples).toMatchObject({
      ...{ generation: 4, workers: 2, workers_running: 2, configuration_valid: 1 },
      ...{ 'reloads_total{outcome="applied"}': 3, decision_log_dropped_total: 0 },
    });
  });

  it('finish what is under way at a stop, even if the signal is for all of them', async () => {
    const log = join(temporaryFolder(), 'decisions.jsonl');
    const filters = filterFolder({
      'slow-filter.js': filterSource('SlowFilter', {
        create: 'return new Promise((answer) => setTimeout(() => answer(allow()), 3000));',
      }),
    });
    const service = launchWorkers(`[enforcement]
enabled_filters = SlowFilter
filters_path = ${filters}
[service]
workers = 2
decision_log = ${log}
`);
    const url = await service.listening;
    const workers = service.workers();
    const asked = statuses(url);
    await vi.waitFor(
      async () => expect(await freshSamples(url)).toMatchObject({ decisions_under_way: ENOUGH }),
      SOON,
    );
    process.kill(-(service.process.pid ?? 0), 'SIGTERM');
    expect(await asked).toEqual(all(204));
    expect(await service.ended).toEqual({ code: 0, signal: null });
    expect(workers.filter(isThere)).toEqual([]);
    expect(decisionsInFile(log)).toHaveLength(ENOUGH);
  });

  it('spare a service that fails, also after one of them was replaced', async () => {
    const failing = await policyServer({ status: 500 });
    const service = launchWorkers(`[enforcement]
enabled_filters = ExternalServiceFilter
external_service_base_endpoint = ${failing.url}
external_service_breaker_failures = 3
external_service_breaker_cooldown = 600
[service]
workers = 2
`);
    const url = await service.listening;
    // What one worker has seen may reach the other after its next call.
    const answers = [...(await statuses(url)), ...(await statuses(url))];
    expect(new Set(answers)).toEqual(new Set([403]));
    const called = failing.requests.length;
    const [first = 0] = service.workers();
    process.kill(first, 'SIGKILL');
    await vi.waitFor(() => {
      expect(service.workers()).toHaveLength(2);
      expect(service.workers()).not.toContain(first);
    }, SOON);
    await vi.waitFor(async () => expect((await askOn(`${url}/readyz`))?.status).toBe(200), SOON);
    expect(await statuses(url)).toEqual(all(403));
    expect(failing.requests).toHaveLength(called);
  });

  it('divide the limits, and refuse a limit that is too small for them', async () => {
    const filters = filterFolder({
      'slow-filter.js': filterSource('SlowFilter', {
        create: 'return new Promise((answer) => setTimeout(() => answer(allow()), 3000));',
      }),
    });
    const conf = `[enforcement]
enabled_filters = SlowFilter
filters_path = ${filters}
[service]
workers = 2
max_concurrent = 3
max_queued = 1
`;
    const url = await launchWorkers(conf).listening;
    const answered = await statuses(url);
    expect(answered.filter((status) => status === 204)).toHaveLength(4);
    expect(answered.filter((status) => status === 503)).toHaveLength(2);
    const wrong = launchWorkers(conf.replace('max_concurrent = 3', 'max_concurrent = 1'));
    expect(await wrong.ended).toEqual({ code: 2, signal: null });
    await vi.waitFor(() => expect(wrong.log()).toContain('expected at least workers, which is 2'), SOON);

    const endless = launchWorkers(
      '[enforcement]\nenabled_filters = MaxLeaseDurationFilter\n[service]\nworkers = 2\nhang_timeout = 0\n',
    );
    await vi.waitFor(
      () => expect(endless.log()).toContain('hang_timeout: expected 1 or more with 2 workers'),
      SOON,
    );
  });
});
