/** Cases that `test --record` writes from random logs lead to the decisions of their log. */

import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { openReplay } from '../../src/cli/test/log-run.ts';
import { ANY_CHARACTER } from '../support/characters.ts';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { aRecord } from '../support/decision-logs.ts';
import { folderOf } from '../support/filter-folder.ts';
import { confWith, RULES } from '../support/lease-cases.ts';
import { createHost } from '../support/requests.ts';

const CONF = `[enforcement]
enabled_filters = MaxLeaseDurationFilter, RulesFilter
max_lease_duration = 345600
rules_path = rules.yaml
`;

const hostile = fc.oneof(
  fc.constantFrom(
    ...['', '~', '__proto__', '/^x/', ': - #'],
    ...['\u001b[31m\u202e', '<b>&]]>', '{{a}}', '1e3', 'ja…'],
  ),
  fc.string({ unit: ANY_CHARACTER, maxLength: 12 }),
);
const date = (hours: number) =>
  new Date(Date.UTC(2026, 11, 1) + hours * 3_600_000).toISOString().slice(0, 19);
const reservation = fc.record({
  resource_type: fc.constantFrom('physical:host', 'virtual:instance', 'device'),
  min: fc.constantFrom(1, '2'),
  max: fc.nat(5),
  resource_properties: fc.constantFrom('', '["==", "$gpu", "True"]', '["==", "$gpu", "False"]'),
  extra: fc.oneof(hostile, fc.jsonValue({ maxDepth: 2 })),
});
const lease = fc
  .record({
    name: hostile,
    start: fc.nat(40),
    hours: fc.integer({ min: 1, max: 120 }),
    reservations: fc.array(reservation, { maxLength: 2 }),
  })
  .map(({ start, hours, ...rest }) => ({
    start_date: date(start),
    end_date: date(start + hours),
    ...rest,
  }));
const asked = fc.record({
  context: fc.record({
    user_id: fc.constantFrom('alice', '__proto__', 'ü'),
    project_id: fc.constantFrom('students', 'climate', '007'),
  }),
  current_lease: fc.option(lease, { nil: undefined }),
  lease,
  now: fc.date({ min: new Date('2026-11-01'), max: new Date('2026-12-20'), noInvalidDate: true }),
});

/** Whatever else is in the log, there is something to record. */
const PLAIN = {
  context: { user_id: 'alice', project_id: 'climate' },
  lease: { name: 'plain', start_date: date(1), end_date: date(2), reservations: [] },
  current_lease: undefined,
  now: new Date('2026-11-01T00:00:00Z'),
};

it('records cases that are replayed and tested to the decisions of their log', async () => {
  const folder = folderOf({ 'blazar.conf': CONF, 'rules.yaml': RULES });
  const { replay } = await openReplay({
    configFiles: [join(folder, 'blazar.conf')],
    config: [`enforcement.rules_path=${join(folder, 'rules.yaml')}`],
  });
  const run = (...args: readonly string[]) => runProgramInProcess(['test', ...args], { cwd: folder });
  const logs = ['--config-file', 'blazar.conf'];
  await fc.assert(
    fc.asyncProperty(fc.array(asked, { minLength: 1, maxLength: 12 }), async (random) => {
      const requests = [...random, PLAIN];
      const lines: string[] = [];
      for (const { now, ...request } of requests) {
        const operation = request.current_lease === undefined ? 'create' : 'update';
        const names = undefined;
        // As it is sent.
        const body = JSON.parse(JSON.stringify(request));
        const { decision } = await replay.judge({ operation, body, names, now: now.getTime() });
        const { allowed, filter, message } = decision;
        const record = aRecord({
          time: now.toISOString(),
          operation,
          allowed,
          filter,
          message,
          failed: decision.failed,
          outcome: allowed ? 'allowed' : 'rejected',
          lease_name: request.lease.name,
        });
        lines.push(JSON.stringify({ ...record, request: body }));
      }
      writeFileSync(join(folder, 'log'), lines.join('\n'));
      rmSync(join(folder, 'cases'), { recursive: true, force: true });
      const replayed = await run('--replay', 'log', ...logs, '--format', 'json');
      expect([replayed.code, JSON.parse(replayed.stdout)]).toMatchObject([0, { same: requests.length }]);
      const recorded = await run('--record', 'log', ...logs);
      expect(recorded).toMatchObject({ code: 0, stderr: '' });
      const [, written = '0'] = /: (\d+) cases written/.exec(recorded.stdout) ?? [];
      const [, repeated = '0'] = /(\d+) decisions like one before/.exec(recorded.stdout) ?? [];
      const [, impossible = '0'] = /(\d+) decisions without what a case needs/.exec(recorded.stdout) ?? [];
      expect(Number(written) + Number(repeated) + Number(impossible)).toBe(requests.length);
      // Numbers that YAML does not read as JSON does.
      expect(Number(impossible) === 0 || /\d{16}/.test(lines.join())).toBe(true);
      const tested = await run();
      expect([tested.code, tested.stdout]).toEqual([0, expect.stringContaining(`\n${written} passed\n`)]);
    }),
    { numRuns: 20 },
  );
  await replay.close();
}, 120_000);

const MAIN = new URL('../../dist/src/cli/main.js', import.meta.url).pathname;

it('leaves no half of a case where no room is left, and keeps the one that is there', () => {
  const request = createHost({ name: 'x'.repeat(8000) });
  const log = JSON.stringify({ ...aRecord(), request });
  const folder = folderOf({ 'blazar.conf': confWith(''), 'rules.yaml': RULES, log });
  const record = (limit: string, ...more: readonly string[]) =>
    spawnSync(
      'bash',
      [
        '-c',
        `${limit} "$@"`,
        'bash',
        process.execPath,
        MAIN,
        'test',
        '--record',
        'log',
        '--config-file',
        'blazar.conf',
        ...more,
      ],
      { cwd: folder, encoding: 'utf8' },
    );
  const cases = join(folder, 'cases/recorded');
  const refused = record('ulimit -f 2;');
  expect([refused.status, refused.stderr]).toEqual([
    74,
    expect.stringMatching(/^error: cases\/recorded\/.*: could not be written: /),
  ]);
  expect(existsSync(cases) ? readdirSync(cases) : []).toEqual([]);
  expect(record('').status).toBe(0);
  const [file = ''] = readdirSync(cases);
  writeFileSync(join(cases, file), 'mine');
  expect(record('ulimit -f 2;', '--force').status).toBe(74);
  expect(readdirSync(cases)).toEqual([file]);
  expect(readFileSync(join(cases, file), 'utf8')).toBe('mine');
  expect(record('', '--force').status).toBe(0);
  expect(readFileSync(join(cases, file), 'utf8')).toContain('"expect": "allowed"');
}, 120_000);
