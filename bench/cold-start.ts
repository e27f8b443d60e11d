/** Measures a command from start to exit, compared with an empty Node process. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import type { Subject, Suite } from './harness/suite.ts';
import { CAPTURED_FILE, ROOT } from './requests.ts';

const CHECK = [
  join(ROOT, 'dist/src/cli/main.js'),
  'check',
  'create',
  CAPTURED_FILE,
  '--config-file',
  join(ROOT, 'etc/policy-service.conf'),
];

/** Runs one process and verifies its output. */
function starts(commandLine: readonly string[], printed: string): Subject {
  // Removes settings of the shell that runs the bench, such as coverage and loaders.
  const { NODE_V8_COVERAGE: _coverage, NODE_OPTIONS: _options, ...env } = process.env;
  return {
    operations: 1,
    batch() {
      const { status, stdout } = spawnSync(process.execPath, commandLine, {
        env,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      if (status !== 0 || !stdout.includes(printed)) {
        throw new Error(`node ${commandLine.join(' ')} ended with ${status} and printed ${stdout}`);
      }
    },
  };
}

export const suite: Suite = {
  name: 'cold-start',
  file: import.meta.url,
  rounds: 15,
  turnMilliseconds: 0,
  subjects: {
    'node -e 0': () => starts(['-e', '0'], ''),
    'check create': () => starts(CHECK, 'allowed'),
    'check create --format json': () => starts([...CHECK, '--format', 'json'], '"allowed":true'),
  },
  comparisons: ['check create', 'check create --format json'].map((command) => ({
    name: command,
    measured: command,
    comparedWith: 'node -e 0',
    of: 'time',
    target: { atMost: 3 },
  })),
  notes: [
    'One operation is one process, from spawn to exit: 15 of each in turns, in every run. The command is the built one, whose modules are merged, with etc/policy-service.conf and the captured check-create-physical-host.',
  ],
};
