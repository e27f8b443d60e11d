import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, it, vi } from 'vitest';
import { judgeAgain } from '../../src/cli/test/judge-again.ts';
import { logFiles } from '../../src/cli/test/log-files.ts';
import { openRehearsal } from '../../src/cli/test/log-run.ts';
import { ReplayBlocks } from '../../src/cli/test/replay-blocks.ts';
import { ReplaySummary, wantedOf } from '../../src/cli/test/replay-summary.ts';
import { aRecord } from '../support/decision-logs.ts';
import { confWith, RULES } from '../support/lease-cases.ts';
import { folderOf } from '../support/skypilot-cases.ts';

const MAIN = new URL('../../dist/src/cli/main.js', import.meta.url).pathname;
const ALL = { projects: undefined, users: undefined, since: undefined, until: undefined };
const TIMEOUT = 120_000;

/** Leases of 1 to 72 hours of two projects, with ends, damaged lines and requests that are missing among them. */
function logOf(lines: number): string {
  return Array.from({ length: lines }, (_, index) => {
    if (index % 1997 === 5) {
      return ['{"cut off', '', 'x'.repeat(1024 * 1024 + 1)][index % 3];
    }
    const start = Date.parse('2026-12-01T09:00:00Z') + index * 60_000;
    const date = (at: number) => new Date(at).toISOString().slice(0, 19);
    const lease = {
      name: `lease-${index}`,
      start_date: date(start),
      end_date: date(start + (1 + (index % 72)) * 3_600_000),
      reservations: [{ resource_type: 'physical:host', min: 1, max: 1, resource_properties: '' }],
    };
    const project_id = index % 3 === 0 ? 'students' : 'climate';
    const request = { context: { user_id: 'alice', project_id }, lease };
    return JSON.stringify({
      ...aRecord({ project_id, lease_name: lease.name, operation: index % 11 === 0 ? 'end' : 'create' }),
      ...(index % 13 !== 0 && { request }),
    });
  }).join('\n');
}

it(
  'says the same in threads as in one process',
  async () => {
    const folder = folderOf({ 'blazar.conf': confWith(''), 'rules.yaml': RULES, log: logOf(8_000) });
    const sources = {
      config: [
        `enforcement.rules_path=${join(folder, 'rules.yaml')}`,
        'enforcement.enabled_filters=[RulesFilter]',
      ],
    };
    const judged = async (threads: number) => {
      const { rehearsal, notes } = await openRehearsal(sources);
      const summary = new ReplaySummary(wantedOf(() => 200));
      const assumeRecorded = false;
      let here = 0;
      const blocks = new ReplayBlocks(summary, {
        ...{ sources, selection: ALL, assumeRecorded, threads, worthThreads: 0 },
        judge: (past) => {
          here += 1;
          return judgeAgain(past, rehearsal, notes, { assumeRecorded });
        },
      });
      // The rest of the log comes when all threads have read the configuration.
      const [file] = logFiles([join(folder, 'log')]).map((one) => ({
        ...one,
        async *chunks(read: (bytes: number) => void) {
          for await (const chunk of one.chunks(read)) {
            yield chunk;
            await vi.waitUntil(() => blocks.readyThreads === threads || here === 0, { timeout: 60_000 });
          }
        },
      }));
      await blocks.judge(file === undefined ? [] : [file, file, file], () => {});
      await rehearsal.close();
      return { here, said: { ...summary.part(), damaged: blocks.damaged } };
    };
    const alone = await judged(0);
    expect(alone.said.counts).toHaveLength(4);
    expect(alone.said.damaged.count).toBe(9);
    const shared = await judged(3);
    expect(shared.said).toEqual(alone.said);
    expect(shared.here).toBeLessThan(alone.here);
  },
  TIMEOUT,
);

const replay = (folder: string, log: string, input?: Buffer) =>
  spawnSync(
    process.execPath,
    [MAIN, 'test', '--replay', log, '--config-file', 'blazar.conf', '--format', 'json', '--examples', '3'],
    { cwd: folder, input, encoding: 'utf8', maxBuffer: 1 << 26 },
  );

it(
  'reads a large log from a file, packed, and from standard input, all the same',
  () => {
    const log = Buffer.from(logOf(16_000));
    const packed = gzipSync(log);
    const folder = folderOf({ 'blazar.conf': confWith(''), 'rules.yaml': RULES, log, 'log.gz': packed });
    const plain = replay(folder, 'log');
    expect([plain.status, JSON.parse(plain.stdout)]).toMatchObject([1, { now_refused: expect.any(Number) }]);
    for (const other of [replay(folder, 'log.gz'), replay(folder, '-', log), replay(folder, '-', packed)]) {
      expect([other.status, other.stdout.replaceAll(/standard input|log\.gz/g, 'log')]).toEqual([
        1,
        plain.stdout,
      ]);
    }
  },
  TIMEOUT,
);

it(
  'judges in one process what filters of an operator may remember',
  () => {
    const filter = `import { allow, BaseFilter, reject } from 'blazar-enforcement';
export class EveryThirdFilter extends BaseFilter {
  #seen = 0;
  checkCreate() { this.#seen += 1; return this.#seen % 3 === 0 ? reject('the third') : allow(); }
  checkUpdate() { return allow(); }
  onEnd() {}
}`;
    const log = Array.from({ length: 20_000 }, () => logOf(2).split('\n')[1]).join('\n');
    const conf = '[enforcement]\nenabled_filters = EveryThirdFilter\nfilters_path = filters\n';
    const folder = folderOf({ 'blazar.conf': conf, 'filters/every-third-filter.mjs': filter, log });
    const { status, stdout, stderr } = replay(folder, 'log');
    expect([status, stderr, JSON.parse(stdout)]).toMatchObject([1, '', { now_refused: 6666, same: 13_334 }]);
  },
  TIMEOUT,
);
