/** Types lines into an interactive shell on a pseudo-terminal, each with the tabulator key at its end, and tells what became of them. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const DEADLINE_SECONDS = 50;

/** The shell itself prints the line, by an `echo` that is put before it; the word that marks it is not in what was typed. */
const TYPE = `
import fcntl, json, os, pty, signal, struct, sys, termios
shell, script, cases = json.loads(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
pid, master = pty.fork()
if pid == 0:
    # Wide enough for every line.
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 1000, 0, 0))
    os.execvp(shell[0], shell)
seen = b''
def late(*_):
    raise TimeoutError(repr(seen))
signal.signal(signal.SIGALRM, late)
signal.alarm(${DEADLINE_SECONDS})
def until(mark):
    global seen
    while mark not in seen:
        seen += os.read(master, 65536)
    before, seen = seen.split(mark, 1)
def line():
    global seen
    while b'\\n' not in seen:
        seen += os.read(master, 65536)
    first, seen = seen.split(b'\\n', 1)
    return first.decode().strip()
os.write(master, (script + "; echo REA''DY\\n").encode())
until(b'READY')
completed = []
for case in cases:
    # Ctrl-A: to the start of the line.
    os.write(master, (case + "\\t\\x01echo DO''NE \\n").encode())
    until(b'DONE ')
    completed.append(line())
os.write(master, b'exit\\n')
print(json.dumps(completed))
`;

/** `start`: what the shell is given first, to load the completion. */
export async function typed(shell: readonly string[], start: string, lines: readonly string[]) {
  const args = ['-c', TYPE, JSON.stringify(shell), start, JSON.stringify(lines)];
  const { stdout } = await promisify(execFile)('python3', args, {
    // An editor whose name has "vi" in it would have zsh bind other keys.
    env: {
      ...process.env,
      TERM: 'dumb',
      INPUTRC: '/dev/null',
      HISTFILE: '',
      EDITOR: 'emacs',
      VISUAL: 'emacs',
    },
  });
  return JSON.parse(stdout) as string[];
}
