/** `npm run bench`, as a developer types it: its topics, its options, what it prints. With PostgreSQL and the peers that are there. */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { Result } from '../../bench/harness/results.ts';
import { temporaryFolder } from '../support/filter-folder.ts';

const MAIN = fileURLToPath(new URL('../../dist/bench/main.js', import.meta.url));
const TIMEOUT = 1_800_000;

function bench(...flags: string[]): Promise<{ stdout: string; stderr: string }> {
  return benchWith({}, ...flags);
}

function benchWith(environment: NodeJS.ProcessEnv, ...flags: string[]) {
  return promisify(execFile)(process.execPath, [MAIN, ...flags], { env: { ...process.env, ...environment } });
}

const ONE_TOPIC = ['--quick', '--runs', '1', '--only', 'cold-start'];
const pageIn = (folder: string) => readFileSync(join(folder, 'performance.md'), 'utf8');

describe('npm run bench', () => {
  it(
    'measures every row once and reports it as JSON',
    async () => {
      const { stdout } = await bench('--quick', '--runs', '1', '--format', 'json');
      const { results, notMeasured, notes } = JSON.parse(stdout) as {
        results: Result[];
        notMeasured: Record<string, string>;
        notes: Record<string, string[]>;
      };
      // Its peer may be missing, which the bench says aloud.
      expect(Object.keys(notMeasured).filter((topic) => topic !== 'upstream')).toEqual([]);
      const rows = results.map(({ suite, name }) => `${suite}: ${name}`);
      expect(new Set(rows).size).toBe(rows.length);
      const measuredTopics = new Set([...results.map(({ suite }) => suite), ...Object.keys(notMeasured)]);
      expect([...measuredTopics].sort()).toEqual(Object.keys(notes).sort());
      for (const { name, measured, comparedWith, ratio, spread, target, met } of results) {
        // A small request may take no memory that can be seen.
        expect(measured.value, name).toBeGreaterThanOrEqual(name.endsWith(', memory') ? 0 : Number.MIN_VALUE);
        expect(comparedWith.value).toBeGreaterThan(0);
        expect(ratio).toBeCloseTo(measured.value / comparedWith.value, 9);
        expect(spread).toEqual({ min: ratio, max: ratio });
        expect(typeof met).toBe(target === null ? 'object' : 'boolean');
      }
    },
    TIMEOUT,
  );

  it(
    'prints a table of the chosen topics, followed by the notes',
    async () => {
      const { stdout, stderr } = await bench('--quick', '--runs', '2', '--only', 'cold-start');
      const [head, row, ...rest] = stdout.split('\n');
      expect(head).toMatch(/^NAME +MEASURED +COMPARED WITH +RATIO +SPREAD +TARGET +MET$/);
      expect(row).toMatch(
        /^cold-start: check create +check create +[\d.]+ m?s +node -e 0 +[\d.]+ m?s +[\d.]+ +[\d.]+ – [\d.]+ +<= 2\.5 +(yes|NO)$/,
      );
      expect(rest.join('\n')).toContain('Medians of 2 run(s)');
      expect(rest.join('\n')).toContain('\ncold-start\n  - One operation is one process');
      expect(stdout).not.toContain('casbin');
      expect(stderr).toBe('cold-start: run 1 of 2\ncold-start: run 2 of 2\n');
    },
    TIMEOUT,
  );

  it(
    'writes the page, and replaces what it says about the topics that were measured again',
    async () => {
      const folder = temporaryFolder();
      await bench(...ONE_TOPIC, '--output', folder);
      const first = pageIn(folder);
      expect(first).toContain('| check create | check create |');
      // What else is in the record stays.
      const path = join(folder, 'performance.json');
      const { topics } = JSON.parse(readFileSync(path, 'utf8'));
      topics.check = { ...topics['cold-start'], date: 'long ago' };
      topics['cold-start'].date = 'long ago as well';
      writeFileSync(path, JSON.stringify({ topics }));
      await bench('--render', '--output', folder);
      expect(pageIn(folder)).toContain('long ago as well, 1 run');
      await bench(...ONE_TOPIC, '--output', folder);
      expect(pageIn(folder)).toContain('long ago, 1 run');
      expect(pageIn(folder)).not.toContain('long ago as well');
    },
    TIMEOUT,
  );

  it(
    'goes on without a peer that is not there and beyond a topic that fails, and says so aloud and on the page',
    async () => {
      const folder = temporaryFolder();
      const flags = [
        '--quick',
        '--runs',
        '1',
        '--only',
        'upstream',
        'cold-start',
        'memory',
        '--output',
        folder,
      ];
      // Folders of the topics can be made nowhere.
      await expect(
        benchWith({ BLAZAR_SOURCE: '/nowhere', TMPDIR: '/nowhere' }, ...flags),
      ).rejects.toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^SKIPPED: upstream: .+$[\s\S]*^FAILED: memory: /m),
        stdout: expect.stringMatching(/^cold-start: check create[\s\S]*^upstream: not measured: .+$/m),
      });
      expect(pageIn(folder)).toMatch(/### upstream\n\nNot measured: .+\.\n/);
      expect(pageIn(folder)).toContain('### memory\n\nNot measured: it failed.');
      expect(pageIn(folder)).toContain('| check create | check create |');
    },
    TIMEOUT,
  );
});
