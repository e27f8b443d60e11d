/** Commands whose output goes to a closed pipe or a full disk: they end, and say so. */
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { aRecord } from '../../support/decision-logs.ts';
import { confFile, temporaryFile } from '../../support/files.ts';
import { folderOf } from '../../support/filter-folder.ts';
import { createHost } from '../../support/requests.ts';
import {
  COMMAND,
  runCommand,
  scrubbedEnvironment,
  startCommand,
  watched,
} from '../../support/run-command.ts';

const FULL = 'error: standard output could not be written: the disk is full\n';

/** Runs a command in a shell, whose redirections follow its arguments. What is left of its streams is a pipe. */
function shell(args: readonly string[], redirections: string, before = '') {
  const { status, stdout, stderr } = spawnSync(
    'bash',
    ['-c', `${before} exec "$@" ${redirections}`, 'bash', process.execPath, COMMAND, ...args],
    { env: scrubbedEnvironment(), encoding: 'utf8' },
  );
  return { status, stdout, stderr };
}

const conf = () =>
  confFile('[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 60\n');

describe('a reader that closes the pipe', () => {
  it.concurrent.for(['config sample', '--help'])('ends "%s" without a message', async (line) => {
    const { process: child, ended } = startCommand(line.split(' '));
    child.stdout?.destroy();
    const { code, stderr } = await ended;
    expect(stderr).toBe('');
    expect([0, 141]).toContain(code);
  });
});

describe('a full disk', () => {
  it.for(['ledger', 'budget', 'outbox', 'scheduling-policy'])('is told by the help of %s', (command) => {
    const { status, stderr } = shell([command, '--help'], '>/dev/full');
    expect({ status, stderr }).toEqual({ status: 74, stderr: FULL });
  });

  it.for([
    ['skypilot', 'policies'],
    ['config', 'sample'],
    ['config', 'validate', '--config-file', 'CONF'],
    ['skypilot', 'review', 'TASK', '--config', 'skypilot.admin_policies=RejectAllPolicy'],
    ['skypilot', 'review', 'TASK', '--config', 'skypilot.admin_policies=AddLabelsPolicy', '--format', 'json'],
    ['skypilot', 'test', 'CASES', '--config', 'skypilot.admin_policies=AddLabelsPolicy'],
    ['skypilot', 'config', '--task', 'TASK'],
    ['serve', '--config-file', 'CONF', '--port', '0'],
  ])('is told by %j', (command) => {
    const task = temporaryFile('task.yaml', 'run: x\nconfig: {docker: {run_options: [a]}}\n');
    const cases = dirname(temporaryFile('case.yaml', 'task: {run: x}\nexpect: {allowed: true}\n'));
    const files: Readonly<Record<string, string>> = { TASK: task, CASES: cases, CONF: conf() };
    const args = command.map((one) => files[one] ?? one);
    const { status, stderr } = shell(args, '>/dev/full');
    expect(status).toBe(74);
    expect(stderr.endsWith(FULL)).toBe(true);
    expect(shell(args, '>/dev/full 2>/dev/full').status).toBe(74);
  });

  it('of standard error leaves the code of a mistake, and no success where a warning is lost', () => {
    expect(shell(['skypilot', 'nonsense'], '2>/dev/full').status).toBe(2);
    const warned = ['skypilot', 'config', '--get', 'kubernetes', '--server', '/dev/null'];
    expect(shell(warned, '')).toMatchObject({ status: 0, stderr: expect.stringMatching(/^warning: /) });
    expect(shell(warned, '2>/dev/full').status).toBe(74);
    expect(shell(['config', 'sample'], '2>/dev/full').status).toBe(0);
  });

  it.for(['json', 'pretty'])('of standard error does not end a service that logs %s', async (format) => {
    const args = [COMMAND, 'serve', '--config-file', conf(), '--port', '0', '--log-format', format];
    const command = ['-c', 'exec "$@" 2>/dev/full', 'bash', process.execPath, ...args];
    const service = watched(spawn('bash', command, { env: scrubbedEnvironment(), stdio: 'pipe' }));
    onTestFinished(() => void service.process.kill('SIGKILL'));
    const [, url] = await service.printed(/^Listening on (.*)$/m);
    for (let count = 0; count < 3; count += 1) {
      // It is logged that the request is refused.
      expect(await fetch(`${url}/check-create`, { method: 'POST', body: 'x' })).toMatchObject({
        status: 415,
      });
    }
    service.process.kill('SIGTERM');
    expect(await service.ended).toMatchObject({ code: 0 });
  });
});

describe('a limit on the size of files', () => {
  it.for([0, 1])('of %d KB is told, and no part of the output counts as the whole', (kilobytes) => {
    const file = temporaryFile('sample.conf', '');
    const { status, stderr } = shell(['config', 'sample'], `>"${file}"`, `ulimit -f ${kilobytes};`);
    expect({ status, stderr }).toEqual({
      status: 74,
      stderr:
        'error: standard output could not be written: the file would be larger than is allowed (ulimit -f)\n',
    });
    expect(readFileSync(file)).toHaveLength(kilobytes * 1024);
  });
});

describe('a stream that is closed', () => {
  it('changes no exit code', () => {
    expect(shell(['--version'], '>&-')).toEqual({ status: 0, stdout: '', stderr: '' });
    expect(shell(['skypilot', 'nonsense'], '2>&-').status).toBe(2);
  });
});

const TIMEOUT = 1_200_000;

/** A filter that does something at its third lease. */
const filterThat = (does: string) => `import { allow, BaseFilter } from 'blazar-enforcement';
export class LeavingFilter extends BaseFilter {
  #seen = 0;
  checkCreate() {
    this.#seen += 1;
    if (this.#seen >= 3) { ${does} }
    return allow();
  }
  checkUpdate() { return allow(); }
  onEnd() {}
}`;

const REQUEST = createHost({ name: 'ocean' });
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
      const folder = folderWith(filterThat(`process.exit(${code})`), 10);
      const { code: ended, stdout, stderr } = await runCommand(args, { cwd: folder });
      expect([ended, stdout]).toEqual([3, '']);
      expect(stderr).toMatch(/^error: the process was ended before the command was done \(exit code [01]\)/);
    }
  },
  TIMEOUT,
);

it(
  'errors of a filter are logged to the last line, of which each is bounded',
  async () => {
    const folder = folderWith(filterThat("throw new Error('x'.repeat(8_000_000));"), 0);
    const args = ['check', 'create', ...Array<string>(20).fill('request.json'), ...CONF];
    const { code, stderr } = await runCommand(args, { cwd: folder });
    expect(code).toBe(3);
    // From the third request on: more than a pipe holds.
    expect(stderr.match(/"error":"x{17000}"/g)).toHaveLength(18);
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
