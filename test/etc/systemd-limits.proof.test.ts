/** Proves that a service stays well below TasksMax and MemoryMax of the units, with a ledger, a store of decisions, threads for policies, and large bodies. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { confFile, projectFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { createLasting } from '../support/requests.ts';
import { startUntilFinished } from '../support/run-command.ts';
import { policyFiles, body as skypilotBody } from '../support/skypilot.ts';
import { PATH as SKYPILOT } from '../support/skypilot-service.ts';

/** The limits are for half as much again. */
const SPARE = 1.5;
const POLICIES = 4;
/** At the same time, each nearly as long as body_limit allows. */
const BODIES = 8;
const BODY_BYTES = 8_000_000;

function limitsOf(unit: string) {
  const text = readFileSync(projectFile(`etc/systemd/${unit}`), 'utf8');
  const value = (name: string) => new RegExp(`^${name}=(\\d+)G?$`, 'm').exec(text)?.[1];
  return { tasks: Number(value('TasksMax')), bytes: Number(value('MemoryMax')) * 2 ** 30 };
}

it.each(['blazar-enforcement.service', 'blazar-enforcement@.service'])(
  'two thirds of what %s allows are enough',
  async (unit) => {
    const connection = `sqlite://${join(temporaryFolder(), 'ledger.db')}`;
    const names = Array.from({ length: POLICIES }, (_, index) => `Label${index}Policy`);
    const { specifiers } = policyFiles(
      Object.fromEntries(names.map((name) => [name, "task.labels = { a: 'b' };"])),
    );
    const conf = confFile(
      `[enforcement]\nenabled_filters = MaxLeasesFilter\nmax_leases_per_project = 1000\n[service]\nport = 0\ndeadline = 120\ndecision_store = all\n[ledger]\nconnection = ${connection}\ntimeout = 60\n[skypilot]\nadmin_policies = ${specifiers}\nisolation = worker\nconfig_validation = ignore\n`,
    );
    const upgrade = ['ledger', 'upgrade', '--config-file', conf];
    expect(await runProgramInProcess(upgrade)).toMatchObject({ code: 0 });
    const running = startUntilFinished(['serve', '--config-file', conf]);
    const [, url = ''] = await running.printed(/^Listening on (\S+)$/m);
    const post = (path: string, body: string) =>
      fetch(url + path, {
        method: 'POST',
        body,
        headers: { 'Content-Type': 'application/json' },
      }).then(({ status }) => status);
    const lease = createLasting(60);
    expect(await post('/commit-create', JSON.stringify(lease))).toBe(204);
    expect(await post(SKYPILOT, skypilotBody())).toBe(200);
    const padded = { ...lease, lease: { ...lease.lease, padding: 'x'.repeat(BODY_BYTES) } };
    const answers = Array.from({ length: BODIES }, () => post('/check-create', JSON.stringify(padded)));
    expect(new Set(await Promise.all(answers))).toEqual(new Set([204]));

    const folder = `/proc/${running.process.pid}`;
    const tasks = readdirSync(`${folder}/task`).length;
    const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`${folder}/status`, 'utf8')) ?? [];
    const bytes = Number(kilobytes) * 1024;
    process.stderr.write(`${unit}: ${tasks} threads, ${Math.round(bytes / 2 ** 20)} MiB at most\n`);
    const limits = limitsOf(unit);
    expect(tasks).toBeGreaterThan(POLICIES);
    expect(tasks * SPARE).toBeLessThanOrEqual(limits.tasks);
    expect(bytes * SPARE).toBeLessThanOrEqual(limits.bytes);
  },
  180_000,
);
