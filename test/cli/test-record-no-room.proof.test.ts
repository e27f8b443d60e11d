/** `test --record` on a full disk leaves no half of a case. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { aRecord } from '../support/decision-logs.ts';
import { confWith, RULES } from '../support/lease-cases.ts';
import { folderOf } from '../support/skypilot-cases.ts';

const MAIN = new URL('../../dist/src/cli/main.js', import.meta.url).pathname;

it('leaves no half of a case where no room is left, and keeps the one that is there', () => {
  const lease = {
    ...{ name: 'x'.repeat(8000), start_date: '2026-12-01T09:00', end_date: '2026-12-01T10:00' },
    reservations: [{ resource_type: 'physical:host', min: 1, max: 1 }],
  };
  const request = { context: { user_id: 'alice', project_id: 'climate' }, lease };
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
