/** Runs the built command with standard error on a pseudo-terminal, and records its output. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { COMMAND } from './run-command.ts';

/**
 * `interrupt`: types Ctrl-C after the first line. A number: resizes the terminal to this width after the
 * first line, and types Ctrl-C when a line fits. Prints JSON. Standard output goes to a file: it is not read
 * in the meantime.
 */
const RUN = `
import fcntl, json, os, pty, struct, subprocess, sys, tempfile, termios
how, columns, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
master, slave = pty.openpty()
def resize(to):
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack('HHHH', 24, to, 0, 0))
def control():
    os.setsid()
    fcntl.ioctl(2, termios.TIOCSCTTY, 0)
resize(columns)
out = tempfile.TemporaryFile()
run = subprocess.Popen(command, stdin=slave, stdout=out, stderr=slave, preexec_fn=control)
os.close(slave)
seen = b''
isResized = False
while True:
    try:
        part = os.read(master, 65536)
    except OSError:
        break
    if not part:
        break
    seen += part
    lines = [line for line in seen.split(b'\\r\\x1b[K') if line]
    if how == 'interrupt' and lines:
        os.write(master, b'\\x03')
        how = 'wait'
    elif how.isdigit() and lines and not isResized:
        isResized = True
        resize(int(how))
    elif how.isdigit() and lines and len(lines[-1]) < int(how):
        os.write(master, b'\\x03')
        how = 'wait'
code = run.wait()
out.seek(0)
print(json.dumps({'code': code, 'out': out.read().decode(), 'terminal': seen.decode()}))
`;

const MAX_BYTES = 1 << 28;

export interface Screen {
  /** Default: 80. */
  readonly columns?: number;
  readonly term?: string;
  readonly cwd?: string | undefined;
}

interface OnTerminal {
  /** Negative = the signal that ended it. */
  readonly code: number;
  readonly out: string;
  readonly terminal: string;
  /** The lines shown on the terminal, in order. */
  readonly lines: readonly string[];
}

const CLEARED = '\r\x1b[K';

export async function onTerminal(
  how: 'wait' | 'interrupt' | { readonly resizeTo: number },
  args: readonly string[],
  { columns = 80, term = 'xterm', cwd }: Screen = {},
): Promise<OnTerminal> {
  const mode = typeof how === 'string' ? how : String(how.resizeTo);
  const command = ['-c', RUN, mode, String(columns), process.execPath, COMMAND, ...args];
  const { stdout, stderr } = await promisify(execFile)('python3', command, {
    ...(cwd !== undefined && { cwd }),
    maxBuffer: MAX_BYTES,
    env: { ...process.env, TERM: term },
  });
  expect(stderr).toBe('');
  const ran = JSON.parse(stdout) as Omit<OnTerminal, 'lines'>;
  // The terminal itself echoes input.
  const lines = ran.terminal.split(CLEARED).map((line) => line.replace('^C', ''));
  return { ...ran, lines: lines.filter((line) => line !== '') };
}

/** Whether the last output removes the line. */
export function isClean({ terminal }: OnTerminal): boolean {
  return terminal === '' || terminal.endsWith(CLEARED);
}

/** The same without a terminal: standard output and standard error are pipes. */
export async function inPipe(
  args: readonly string[],
  cwd?: string,
): Promise<{ out: string; errors: string }> {
  const run = promisify(execFile)(process.execPath, [COMMAND, ...args], { maxBuffer: MAX_BYTES, cwd });
  // Exit code 1 is a valid result.
  const { stdout, stderr } = await run.catch(
    (thrown: unknown) => thrown as { stdout: string; stderr: string },
  );
  return { out: stdout, errors: stderr };
}
