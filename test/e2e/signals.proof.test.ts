/** What `serve` does at SIGTERM, SIGINT and SIGHUP, at any moment of its life. */
import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { decisionsInFile } from '../support/decision-logs.ts';
import { confFile, temporaryFile } from '../support/files.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';
import { startLoad } from '../support/load.ts';
import { openRaw, postBytes } from '../support/raw-http.ts';
import { capturedText } from '../support/requests.ts';
import { startUntilFinished } from '../support/run-command.ts';
import { SOON, serve } from './serving.ts';

const FITS = capturedText('check-create-physical-host.json');

const FIXED = 'enabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 259200';
const confOf = (enforcement: string, service = '') =>
  confFile(`[enforcement]\n${enforcement}\n[service]\nport = 0\n${service}\n`);

const serveOn = (conf: string) => serve(['--config-file', conf]);

/** A filter that never answers, and a service that would wait for it for a minute. */
function neverConf(): string {
  const folder = filterFolder({
    'never-filter.js': filterSource('NeverFilter', { create: 'return new Promise(() => {});' }),
  });
  return confOf(
    `filters_path = ${folder}\nenabled_filters = NeverFilter`,
    'shutdown_grace = 60\ndeadline = 120',
  );
}

describe('serve', () => {
  it.for([
    ['SIGINT', 'SIGTERM', 143],
    ['SIGTERM', 'SIGINT', 130],
  ] as const)(
    'finishes the requests in progress at %s, and exits at once at a further %s: %i',
    async ([first, second, code]) => {
      const { process, ended, underWay, port } = await serveOn(neverConf());
      const busy = await openRaw(port);
      busy.socket.write(postBytes('/check-create', FITS));
      await underWay();
      process.kill(first);
      await vi.waitFor(() => expect(openRaw(port)).rejects.toThrow('ECONNREFUSED'), SOON);
      expect(process.exitCode).toBeNull();
      expect(busy.closed()).toBe(false);
      process.kill(second);
      expect(await ended).toMatchObject({ code });
    },
  );

  it('exits with 0 within shutdown_grace, although requests are still open', async () => {
    const conf = neverConf();
    writeFileSync(conf, readFileSync(conf, 'utf8').replace('shutdown_grace = 60', 'shutdown_grace = 5'));
    const { process, ended, underWay, port } = await serveOn(conf);
    const busy = await openRaw(port);
    const half = await openRaw(port);
    busy.socket.write(postBytes('/check-create', FITS));
    half.socket.write('POST /check-create HTTP/1.1\r\n');
    await underWay();
    process.kill('SIGTERM');
    expect((await ended).code).toBe(0);
    await Promise.all([busy.end, half.end]);
  });

  it('exits when SIGTERM arrives during its start', async () => {
    for (const milliseconds of [50, 200, 400, 800]) {
      const running = startUntilFinished(['serve', '--config-file', confOf(FIXED)]);
      await sleep(milliseconds);
      running.process.kill('SIGTERM');
      const { code, stderr } = await running.ended;
      // Until Node has installed the handler, the system ends the process.
      expect([0, null]).toContain(code);
      expect(stderr).toBe('');
    }
  });

  it('reloads its configuration at SIGHUP', async () => {
    const conf = confOf(FIXED);
    const { process, url, output, post } = await serveOn(conf);
    const statusNow = async () => (await post('/check-create', FITS)).status;
    expect(await statusNow()).toBe(204);
    writeFileSync(conf, readFileSync(conf, 'utf8').replace('259200', '60'));
    process.kill('SIGHUP');
    await expect.poll(statusNow).toBe(403);
    writeFileSync(conf, readFileSync(conf, 'utf8').replace('max_lease_duration', 'max_lease_duratoin'));
    process.kill('SIGHUP');
    await expect.poll(async () => (await fetch(`${url}/readyz`)).status).toBe(503);
    expect(await statusNow()).toBe(403);
    const lines = output()
      .stderr.trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { msg: string })
      .filter(({ msg }) => msg.includes('configuration') || msg.startsWith(conf));
    expect(lines).toMatchObject([
      { msg: 'configuration reloaded', generation: 2 },
      { msg: expect.stringContaining(`${conf}:3: [enforcement] max_lease_duratoin: unknown option`) },
      { msg: 'configuration not reloaded: the previous one stays in use', generation: 2 },
    ]);
  });

  it('answers requests while signals to reload keep coming', async () => {
    const { process, url } = await serveOn(confOf(FIXED));
    const signals = setInterval(() => process.kill('SIGHUP'), 1);
    onTestFinished(() => clearInterval(signals));
    for (let times = 0; times < 20; times += 1) {
      expect((await fetch(`${url}/healthz`)).status).toBe(200);
    }
  });

  it('answers every request that it has decided at SIGTERM under load, and exits with 0', async () => {
    const log = temporaryFile('decisions.jsonl', '');
    const conf = confOf(FIXED, `decision_log = ${log}`);
    const { process, ended, url } = await serveOn(conf);
    const load = startLoad(`${url}/check-create`, 16, FITS);
    await load.more(500);
    process.kill('SIGTERM');
    await load.refused;
    expect(await ended).toMatchObject({ code: 0, stderr: '' });
    const decided = decisionsInFile(log).map(({ request_id }) => request_id);
    expect(decided.sort()).toEqual(load.answers.map(({ id }) => id).sort());
    expect(decided.length).toBeGreaterThan(500);
  });
});

describe('SIGUSR1', () => {
  it('opens no debugger, and does not end the process', async () => {
    const running = await serveOn(confOf(FIXED));
    for (let times = 0; times < 3; times += 1) {
      running.process.kill('SIGUSR1');
      expect((await fetch(`${running.url}/healthz`)).status).toBe(200);
    }
    // Node reports it on standard error, from a thread of its own, after it has opened the debugger.
    await sleep(200);
    running.process.kill('SIGTERM');
    expect((await running.ended).stderr).not.toMatch(/[Dd]ebugger/);
  });
});
