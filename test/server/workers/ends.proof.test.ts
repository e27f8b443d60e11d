/** Workers that are killed, stopped, or cannot start; and a primary that is killed. */
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { ExitCode } from '../../../src/cli/output.ts';
import { verifyLedger } from '../../../src/ledger/reports/verify.ts';
import { decisionsInFile } from '../../support/decision-logs.ts';
import { filterFolder, filterSource, temporaryFolder } from '../../support/filter-folder.ts';
import { newLease } from '../../support/lease-clients.ts';
import { giveBudget, ledgerAt, NO_WAIT, newLedger } from '../../support/ledgers.ts';
import { openRaw, postBytes } from '../../support/raw-http.ts';
import { capturedText, PROJECT } from '../../support/requests.ts';
import { readSamples } from '../../support/samples.ts';
import { askOn, isThere, launchWorkers, logged, SOON } from '../../support/service-of-workers.ts';

const JSON_TYPE = { 'Content-Type': 'application/json' };
const FITS = capturedText('check-create-physical-host.json');
const PLAIN = '[enforcement]\nenabled_filters = MaxLeaseDurationFilter\n';
const CLIENTS = 6;
const KILLS = 2;

describe('a service of two workers', () => {
  it('loses only requests in flight when workers are killed under load', async () => {
    const connection = await newLedger();
    const ledger = await ledgerAt(connection);
    onTestFinished(() => ledger.close());
    await giveBudget(ledger, {
      projectId: PROJECT,
      amount: '40000',
      from: '2020-01-01',
      until: '2200-01-01',
    });
    const file = join(temporaryFolder(), 'decisions.jsonl');
    const service = launchWorkers(`[enforcement]
enabled_filters = UsageBudgetFilter
usage_budget_rates = physical:host:1
[ledger]
connection = ${connection}
timeout = 60
[service]
workers = 2
deadline = 60
decision_log = ${file}
`);
    const url = await service.listening;
    const agent = new Agent({ keepAlive: true });
    onTestFinished(() => agent.destroy());
    let isOver = false;
    let unanswered = 0;
    const acknowledged: string[] = [];
    const allowed: string[] = [];
    const work = async () => {
      while (!isOver) {
        const id = `req-${randomUUID()}`;
        const { body } = newLease(2);
        const headers = { ...JSON_TYPE, 'X-Openstack-Request-Id': id };
        const answer = await askOn(`${url}/v1/check-create`, {
          ...{ method: 'POST', body: JSON.stringify(body), headers, agent },
        });
        if (answer === undefined) {
          unanswered += 1;
        } else {
          expect([204, 403]).toContain(answer.status);
          acknowledged.push(id);
          if (answer.status === 204) {
            allowed.push(id);
          }
        }
      }
    };
    const working = Promise.all(Array.from({ length: CLIENTS }, work));
    let counted = 0;
    for (let kill = 1; kill <= KILLS; kill += 1) {
      const before = acknowledged.length;
      await vi.waitFor(() => expect(acknowledged.length).toBeGreaterThan(before + 20), SOON);
      const { decisions_total: now = 0 } = sums(await readSamples(url));
      expect(now).toBeGreaterThanOrEqual(counted);
      counted = now;
      const workers = service.workers();
      process.kill(workers[kill % workers.length] ?? 0, 'SIGKILL');
      await logged(service, /"a worker has started"/, kill);
    }
    isOver = true;
    await working;
    expect(unanswered).toBeLessThanOrEqual(KILLS * CLIENTS);
    await vi.waitFor(() => {
      const inLog = new Set(decisionsInFile(file).map(({ request_id }) => request_id));
      expect(acknowledged.filter((id) => !inLog.has(id))).toEqual([]);
    }, SOON);
    expect(allowed.length).toBeGreaterThan(20);
    expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
    const samples = await readSamples(url);
    expect(samples).toMatchObject({
      workers: 2,
      workers_running: 2,
      'worker_ends_total{reason="died"}': KILLS,
    });
    expect(sums(samples).decisions_total).toBeGreaterThanOrEqual(counted);
  });

  it('replaces a worker that hangs, and closes its connections; others answer meanwhile', async () => {
    const service = launchWorkers(`${PLAIN}[service]\nworkers = 2\nhang_timeout = 2\n`);
    const url = await service.listening;
    const { port } = new URL(url);
    const connections = await Promise.all(Array.from({ length: 4 }, () => openRaw(Number(port))));
    for (const connection of connections) {
      connection.socket.write(postBytes('/check-create', FITS));
      await connection.answers(1);
    }
    const [stopped = 0] = service.workers();
    process.kill(stopped, 'SIGSTOP');
    const headers = JSON_TYPE;
    // Those that the stopped one is given wait for the one that takes its place.
    const asked = Array.from({ length: 12 }, () =>
      askOn(`${url}/check-create`, { method: 'POST', body: FITS, headers }),
    );
    await logged(service, /a worker hangs: it has not run/);
    await logged(service, /"a worker has started"/);
    expect(service.workers()).not.toContain(stopped);
    expect((await Promise.all(asked)).map((answer) => answer?.status)).toEqual(Array(12).fill(204));
    // Connections are given in turns: half of them were its own. A busy machine may make more of a worker seem to hang.
    await vi.waitFor(
      () => expect(connections.filter((one) => one.closed()).length).toBeGreaterThanOrEqual(2),
      SOON,
    );
    const samples = await readSamples(url);
    expect(samples['worker_ends_total{reason="hung"}']).toBeGreaterThanOrEqual(1);
  });

  it('is not ready while a worker does not run, and says which one', async () => {
    // So long that nobody replaces it meanwhile.
    const service = launchWorkers(
      `${PLAIN}[service]\nworkers = 2\nhang_timeout = 3600\nshutdown_grace = 3600\n`,
    );
    const url = await service.listening;
    // Connections are handed out in turns: of two, one is answered.
    const readiness = () => Promise.race([askOn(`${url}/readyz`), askOn(`${url}/readyz`)]);
    expect(await readiness()).toMatchObject({ status: 200 });
    const [, second = 0] = service.workers();
    process.kill(second, 'SIGSTOP');
    await vi.waitFor(
      async () =>
        expect(await readiness()).toMatchObject({
          status: 503,
          text: expect.stringContaining('"problems":["worker 2: it does not answer requests"]'),
        }),
      SOON,
    );
    process.kill(second, 'SIGCONT');
    await vi.waitFor(async () => expect(await readiness()).toMatchObject({ status: 200 }), SOON);
  });

  it('ends when its primary is killed', async () => {
    const service = launchWorkers(`${PLAIN}[service]\nworkers = 2\n`);
    await service.listening;
    const workers = service.workers();
    expect(workers).toHaveLength(2);
    service.process.kill('SIGKILL');
    await vi.waitFor(() => expect(workers.filter(isThere)).toEqual([]), SOON);
  });

  it('starts a worker that ends at once ever more rarely, and ends when none can be started', async () => {
    const marker = join(temporaryFolder(), 'broken');
    const folder = filterFolder({
      'fragile-filter.js': `import { existsSync } from 'node:fs';\n${filterSource('FragileFilter', {
        extra: `open() { if (existsSync(${JSON.stringify(marker)})) process.exit(9); }`,
      })}`,
    });
    const service = launchWorkers(
      `[enforcement]\nenabled_filters = FragileFilter\nfilters_path = ${folder}\n[service]\nworkers = 2\n`,
    );
    const url = await service.listening;
    writeFileSync(marker, '');
    const [first = 0, second = 0] = service.workers();
    process.kill(first, 'SIGKILL');
    await logged(service, /a worker has ended before it could answer requests/, 2);
    expect((await askOn(`${url}/healthz`))?.status).toBe(200);
    process.kill(second, 'SIGKILL');
    expect(await service.ended).toEqual({ code: ExitCode.fault, signal: null });
    expect(service.log()).toMatch(/^error: no worker can be started: it ended with exit code 9$/m);
    const pauses = [...service.log().matchAll(/"worker":1,"pause_ms":(\d+)/g)].map(([, ms]) => Number(ms));
    expect(pauses.slice(0, 3)).toEqual([100, 200, 400]);
  });

  it('that none of its workers can start with ends as that worker, which says why once', async () => {
    const folder = filterFolder({
      'late-filter.js': filterSource('LateFilter', { extra: "open() { throw new Error('no such host'); }" }),
    });
    const service = launchWorkers(
      `[enforcement]\nenabled_filters = LateFilter\nfilters_path = ${folder}\n[service]\nworkers = 2\n`,
    );
    expect((await service.ended).code).toBeGreaterThan(0);
    await vi.waitFor(() => expect(service.log()).toMatch(/^error: worker 1 did not start/m), SOON);
    expect(service.log().match(/no such host/g)).toHaveLength(1);
    expect(await service.listening.catch(() => 'never')).toBe('never');
  });
});

/** The sums over all labels. */
function sums(samples: Readonly<Record<string, number>>): Record<string, number> {
  const all: Record<string, number> = {};
  for (const [name, value] of Object.entries(samples)) {
    const metric = name.replace(/\{.*/, '');
    all[metric] = (all[metric] ?? 0) + value;
  }
  return all;
}
