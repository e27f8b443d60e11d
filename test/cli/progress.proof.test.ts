import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { aRecord } from '../support/decision-logs.ts';
import { confWith, RULES } from '../support/lease-cases.ts';
import { folderOf } from '../support/skypilot-cases.ts';

const MAIN = new URL('../../dist/src/cli/main.js', import.meta.url).pathname;
const TIMEOUT = 120_000;

/** Runs a command with standard error on a pseudo-terminal; `interrupt`: types Ctrl-C when the first line is there. Prints JSON. */
const ON_TERMINAL = `
import json, os, pty, subprocess, sys
master, slave = pty.openpty()
interrupt, command = sys.argv[1] == 'interrupt', sys.argv[2:]
def control():
    os.setsid()
    import fcntl, termios
    fcntl.ioctl(2, termios.TIOCSCTTY, 0)
run = subprocess.Popen(command, stdin=slave, stdout=subprocess.PIPE, stderr=slave, preexec_fn=control, env=dict(os.environ, TERM='xterm'))
os.close(slave)
seen = b''
while True:
    try:
        part = os.read(master, 65536)
    except OSError:
        break
    if not part:
        break
    seen += part
    if interrupt and b'/s' in seen:
        os.write(master, b'\\x03')
        interrupt = False
out = run.stdout.read().decode()
print(json.dumps({'code': run.wait(), 'out': out, 'terminal': seen.decode()}))
`;

function onTerminal(folder: string, how: 'wait' | 'interrupt', ...args: readonly string[]) {
  const { stdout, stderr } = spawnSync('python3', ['-c', ON_TERMINAL, how, process.execPath, MAIN, ...args], {
    cwd: folder,
    encoding: 'utf8',
    maxBuffer: 1 << 26,
    timeout: TIMEOUT,
  });
  expect(stderr).toBe('');
  return JSON.parse(stdout) as { code: number; out: string; terminal: string };
}

const folderWithLog = (lines: number) => {
  const request = {
    context: { user_id: 'alice', project_id: 'climate' },
    lease: {
      start_date: '2026-12-01T09:00',
      end_date: '2026-12-01T10:00',
      reservations: [{ resource_type: 'physical:host', min: 1, max: 1 }],
    },
  };
  const log = `${JSON.stringify({ ...aRecord(), request })}\n`.repeat(lines);
  return folderOf({ 'blazar.conf': confWith(''), 'rules.yaml': RULES, log });
};
const REPLAY = ['test', '--replay', 'log', '--config-file', 'blazar.conf', '--format', 'json'];
// biome-ignore lint/suspicious/noControlCharactersInRegex: they remove the line.
const LINE = /\r\x1b\[K\[#* *\] +\d+ % {2}[\d,]+ decisions, [\d,]+\/s/;

it(
  'shows how far a replay is on a terminal, and removes it, and shows nothing in a pipe',
  () => {
    const folder = folderWithLog(60_000);
    const { code, out, terminal } = onTerminal(folder, 'wait', ...REPLAY);
    expect([code, JSON.parse(out)]).toMatchObject([0, { same: 60_000 }]);
    expect(terminal).toMatch(LINE);
    expect(terminal.endsWith('\r\x1b[K')).toBe(true);
    const piped = spawnSync(process.execPath, [MAIN, ...REPLAY], { cwd: folder, encoding: 'utf8' });
    expect([piped.status, piped.stderr, piped.stdout]).toEqual([0, '', out]);
  },
  TIMEOUT,
);

it(
  'ends at a Ctrl-C, with a clean line',
  () => {
    const { code, out, terminal } = onTerminal(folderWithLog(300_000), 'interrupt', ...REPLAY);
    expect([code, out]).toEqual([-2, '']);
    expect(terminal).toMatch(LINE);
    expect(terminal.endsWith('\r\x1b[K')).toBe(true);
  },
  TIMEOUT,
);
