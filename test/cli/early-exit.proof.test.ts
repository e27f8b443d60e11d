/** A process or thread that ends before it has a result is no success. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { aRecord } from '../support/decision-logs.ts';
import { runCommand } from '../support/run-command.ts';
import { folderOf } from '../support/skypilot-cases.ts';

const TIMEOUT = 120_000;
const DIST = new URL('../../dist/src/', import.meta.url);

/** A filter that does something at its third lease. `where`: only in the process of the command, or only in threads. */
const filterThat = (does: string, where: 'here' | 'in threads') => `import { writeSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';
import { allow, BaseFilter } from 'blazar-enforcement';
export class LeavingFilter extends BaseFilter {
  #seen = 0;
  checkCreate() {
    this.#seen += 1;
    if (this.#seen >= 3 && isMainThread === ${where === 'here'}) { ${does} }
    return allow();
  }
  checkUpdate() { return allow(); }
  onEnd() {}
}`;

const REQUEST = {
  context: { user_id: 'alice', project_id: 'climate' },
  lease: {
    name: 'ocean',
    start_date: '2026-12-01T09:00',
    end_date: '2026-12-01T10:00',
    reservations: [{ resource_type: 'physical:host', min: 1, max: 1 }],
  },
};
const LINE = `${JSON.stringify({ ...aRecord(), request: REQUEST })}\n`;

const folderWith = (filter: string, lines: number) =>
  folderOf({
    'blazar.conf': '[enforcement]\nenabled_filters = LeavingFilter\nfilters_path = filters\n',
    'filters/leaving-filter.mjs': filter,
    log: Array.from({ length: lines }, (_, index) => LINE.replaceAll('ocean', String(index))).join(''),
    'request.json': JSON.stringify(REQUEST),
  });

const CONF = ['--config-file', 'blazar.conf'];

it.each([
  ['test --replay', ['test', '--replay', 'log', ...CONF]],
  ['test --record', ['test', '--record', 'log', ...CONF]],
  ['check', ['check', 'create', 'request.json', 'request.json', 'request.json', ...CONF]],
])(
  '%s fails if a filter ends the process, whatever its exit code',
  async (_, args) => {
    for (const code of [0, 1]) {
      const folder = folderWith(filterThat(`process.exit(${code})`, 'here'), 10);
      const { code: ended, stdout, stderr } = await runCommand(args, { cwd: folder });
      expect([ended, stdout]).toEqual([3, '']);
      expect(stderr).toMatch(/^error: the process was ended before the command was done \(exit code [01]\)/);
    }
  },
  TIMEOUT,
);

it(
  'config validate fails if a filter ends the process while it is loaded',
  async () => {
    const folder = folderWith('process.exit(0);', 0);
    expect(await runCommand(['config', 'validate', ...CONF], { cwd: folder })).toMatchObject({ code: 3 });
  },
  TIMEOUT,
);

/** Replays the log in threads with any filter: the command itself has threads for its own filters only. */
const IN_THREADS = `
const [, cwd, dist] = process.argv;
const { ReplayBlocks } = await import(dist + 'cli/test/replay-blocks.js');
const { ReplaySummary, wantedOf } = await import(dist + 'cli/test/replay-summary.js');
const { logFiles } = await import(dist + 'cli/test/log-files.js');
const { reportFailure } = await import(dist + 'cli/report-failure.js');
process.chdir(cwd);
const summary = new ReplaySummary(wantedOf(() => 3));
const blocks = new ReplayBlocks(summary, {
  sources: { configFiles: ['blazar.conf'] }, selection: {}, assumeRecorded: false, threads: 2, worthThreads: 0,
  judge: () => ({ difference: 'same', by: [], message: null }),
});
const [file] = logFiles(['log']);
async function* chunks(read) {
  for (;;) {
    yield* file.chunks(read);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
try {
  await blocks.judge([{ ...file, chunks }], () => {});
} catch (thrown) {
  process.exitCode = reportFailure(thrown);
}
`;

function inThreads(does: string) {
  const folder = folderWith(filterThat(does, 'in threads'), 2000);
  const args = ['--max-old-space-size=80', '--input-type=module', '-e', IN_THREADS, folder, DIST.href];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  return { child, ended: once(child, 'close'), stderr: text(child.stderr) };
}

it.each([
  ['process.exit', 'process.exit(0)', /exited with code 0/],
  ['an exception outside of any call', "setTimeout(() => { throw new Error('late'); });", /late/],
  ['no memory', 'for (const all = []; ; ) all.push(new Array(100_000).fill(1.5));', /memory/],
])(
  'a replay ends with an error if a thread ends by %s',
  async (_, does, why) => {
    const { child, ended, stderr } = inThreads(does);
    child.stdout.resume();
    expect([await ended, await stderr]).toEqual([[3, null], expect.stringMatching(why)]);
    expect(await stderr).toMatch(/^error: a thread of the replay has ended: .*\n$/);
  },
  TIMEOUT,
);

it(
  'a Ctrl-C ends a replay whose threads compute for ever',
  async () => {
    const { child, ended } = inThreads("writeSync(1, 'computing'); for (;;) {}");
    let seen = '';
    for await (const part of child.stdout) {
      seen += part;
      if (seen.includes('computing')) {
        child.kill('SIGINT');
        break;
      }
    }
    expect(await ended).toEqual([null, 'SIGINT']);
  },
  TIMEOUT,
);
