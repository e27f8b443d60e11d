/** `completion`: real shells complete what is typed, with the script that it prints. Peers: bash, zsh, fish, python3. */
import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { runProgramInProcess } from '../../support/command-in-process.ts';
import { projectFile, temporaryFile } from '../../support/files.ts';
import { printed } from '../../support/run-command.ts';

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

import { need } from '../../support/peers.ts';

/** `start`: what the shell is given first, to load the completion. */
async function typed(shell: readonly string[], start: string, lines: readonly string[]) {
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

interface Shell {
  readonly name: string;
  /** Interactive, without the files of the user. */
  readonly command: readonly string[];
  readonly load: (script: string) => string;
}

const SHELLS: readonly Shell[] = [
  {
    name: 'bash',
    command: ['bash', '--norc', '--noprofile', '-i'],
    load: (script) => `source ${script}`,
  },
  {
    name: 'zsh',
    command: ['zsh', '-f', '-i'],
    load: (script) => `autoload -U compinit; compinit -u -D; source ${script}`,
  },
  { name: 'fish', command: ['fish', '--no-config', '-i'], load: (script) => `source ${script}` },
];

/** Skips a test whose shell is missing, and says so. */
const script = (shell: string) => runProgramInProcess(['completion', shell]);

describe('completion', () => {
  it.for(SHELLS)(
    'lets $name complete commands, options, their values, arguments and files',
    async ({ name, command, load }, context) => {
      need(context, name);
      const file = temporaryFile('script', (await script(name)).stdout);
      const log = projectFile('etc/policy-service.co');
      const completed = {
        budg: 'budget',
        'budget hist': 'budget history',
        'scheduling-policy who': 'scheduling-policy who-can',
        'serve --log-for': 'serve --log-format',
        'budget list --format js': 'budget list --format json',
        'budget list --format=js': 'budget list --format=json',
        'scheduling-policy scan -n default --merge-strategy inter':
          'scheduling-policy scan -n default --merge-strategy intersection',
        'check cr': 'check create',
        'completion fi': 'completion fish',
        [`check create ${log}`]: `check create ${log}nf`,
        // The last argument may be repeated.
        [`check create x.json ${log}`]: `check create x.json ${log}nf`,
        [`serve --config-file ${log}`]: `serve --config-file ${log}nf`,
        // What follows an option is its value.
        [`test --filter budget ${log}`]: `test --filter budget ${log}nf`,
        // A project is no file, and no command either.
        [`budget set ${log}`]: `budget set ${log}`,
        'budget set hist': 'budget set hist',
      };
      const lines = Object.keys(completed).map((line) => `blazar-enforcement ${line}`);
      const become = await typed(command, load(file), lines);
      expect(become.map((line) => line.replace('blazar-enforcement ', ''))).toEqual(Object.values(completed));
    },
  );

  it.for(SHELLS)('prints what $name can read', async ({ name }, context) => {
    need(context, name);
    const stdout = printed(await script(name));
    const file = temporaryFile('script', stdout);
    const checked = spawnSync(name, ['-n', file], { encoding: 'utf8' });
    expect({ status: checked.status, stderr: checked.stderr }).toEqual({ status: 0, stderr: '' });
  });
});
