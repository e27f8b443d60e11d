/** A log that a real service has written under load, and that was rotated meanwhile, is replayed whole. */
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { expect, it, vi } from 'vitest';
import { decisionsIn } from '../support/decision-logs.ts';
import { folderOf } from '../support/filter-folder.ts';
import { RULES } from '../support/lease-cases.ts';
import { startLoad } from '../support/load.ts';
import {
  createGpuAndFloatingIp,
  createLasting,
  createPhysicalHost,
  updateExtend,
} from '../support/requests.ts';
import { runCommand, startUntilFinished } from '../support/run-command.ts';

const HOUR = 3600;
const PATIENT = { timeout: 120_000, interval: 20 };

/** Allowed, refused by a filter, and by rules. */
const BODIES: readonly (readonly [path: string, body: object])[] = [
  ['check-create', createLasting(HOUR, { project_id: 'students' })],
  ['check-create', createLasting(72 * HOUR, { project_id: 'students' })],
  ['check-create', createLasting(300 * HOUR)],
  ['check-create', createPhysicalHost()],
  ['check-create', createGpuAndFloatingIp()],
  [
    'check-update',
    (({ context, currentLease, lease }) => ({ context, current_lease: currentLease, lease }))(updateExtend()),
  ],
];

it('loses no decision of a service under load to rotation, and decides none otherwise', async () => {
  const folder = folderOf({
    'blazar.conf': `[enforcement]
enabled_filters = MaxLeaseDurationFilter, RulesFilter
max_lease_duration = ${200 * HOUR}
rules_path = rules.yaml
[service]
port = 0
decision_log = decisions.jsonl
decision_log_requests = all
decision_log_when_full = block
`,
    'rules.yaml': RULES,
  });
  const service = startUntilFinished(['serve', '--config-file', 'blazar.conf'], { cwd: folder });
  const [, url] = await service.printed(/^Listening on (http:\S+)\n/m);
  const loads = BODIES.map(([path, body]) => startLoad(`${url}/${path}`, 2, JSON.stringify(body)));
  const more = (count: number) => Promise.all(loads.map((load) => load.more(count)));
  const log = join(folder, 'decisions.jsonl');

  for (const day of ['20261120', '20261121']) {
    await more(150);
    // As logrotate with etc/logrotate/blazar-enforcement: `nocreate`, and `delaycompress` until the service has let go of the file.
    renameSync(log, `${log}-${day}`);
    service.process.kill('SIGHUP');
    await vi.waitUntil(() => existsSync(log), PATIENT);
    await more(50);
  }
  const rotated = `${log}-20261120`;
  writeFileSync(`${rotated}.gz`, gzipSync(readFileSync(rotated)));
  rmSync(rotated);
  await Promise.all(loads.map((load) => load.stop()));
  service.process.kill('SIGTERM');
  expect((await service.ended).code).toBe(0);

  const answers = loads.flatMap((load) => load.answers);
  expect(loads.flatMap((load) => load.failures)).toEqual([]);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([204, 403]));
  const files = readdirSync(folder)
    .filter((name) => name.startsWith('decisions.jsonl'))
    .sort();
  expect(files).toEqual(['decisions.jsonl', 'decisions.jsonl-20261120.gz', 'decisions.jsonl-20261121']);
  const logged = files.flatMap((name) => {
    const bytes = readFileSync(join(folder, name));
    return decisionsIn((name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString());
  });
  expect(logged.map((one) => one.request_id).sort()).toEqual(answers.map(({ id }) => id).sort());

  const replay = (...config: readonly string[]) =>
    runCommand(
      ['test', '--replay', 'decisions.jsonl*', '--config-file', 'blazar.conf', '--format', 'json', ...config],
      { cwd: folder },
    );
  const same = await replay();
  expect([same.code, same.stderr]).toEqual([0, '']);
  expect(JSON.parse(same.stdout)).toMatchObject({
    decisions: answers.length,
    same: answers.length,
    undecidable: 0,
    damaged_lines: 0,
  });
  const stricter = await replay('--config', `enforcement.max_lease_duration=${HOUR}`);
  const [{ answers: short } = { answers: [] }] = loads;
  const wereAllowed = answers.filter(({ status }) => status === 204).length;
  expect([stricter.code, JSON.parse(stricter.stdout)]).toMatchObject([
    1,
    { now_refused: wereAllowed - short.length, now_allowed: 0, failed: 0 },
  ]);
}, 180_000);
