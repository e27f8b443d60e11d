/** Measures a command from start to exit, relative to an empty Node process. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Subject, Suite, Timed } from './harness/suite.ts';
import { CAPTURED_FILE, ROOT } from './requests.ts';

const COMMAND = join(ROOT, 'dist/src/cli/main.js');
const CONFIGURATION = ['--config-file', join(ROOT, 'etc/policy-service.conf')];
const CHECK = [COMMAND, 'check', 'create', CAPTURED_FILE, ...CONFIGURATION];

/** Runs one process and verifies its output. */
function starts(commandLine: readonly string[], printed: string): Subject {
  return {
    operations: 1,
    batch() {
      const { status, stdout } = spawnSync(process.execPath, commandLine, {
        env: environment(),
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      if (status !== 0 || !stdout.includes(printed)) {
        throw new Error(`node ${commandLine.join(' ')} ended with ${status} and printed ${stdout}`);
      }
    },
  };
}

/** Without settings of the bench's shell, such as coverage and loaders. */
function environment(): NodeJS.ProcessEnv {
  const { NODE_V8_COVERAGE: _coverage, NODE_OPTIONS: _options, ...env } = process.env;
  return env;
}

/** From spawn until the first response. */
async function serves(): Promise<Timed> {
  const began = performance.now();
  const service = spawn(process.execPath, [COMMAND, 'serve', '--port', '0', ...CONFIGURATION], {
    env: environment(),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(service, 'exit');
  for await (const line of createInterface(service.stdout)) {
    const url = /^Listening on (http:\S+)$/.exec(line)?.[1];
    if (url !== undefined) {
      const { ok } = await fetch(`${url}/healthz`);
      const milliseconds = performance.now() - began;
      service.kill();
      await exited;
      if (ok) {
        return { milliseconds };
      }
    }
  }
  throw new Error('serve has ended, or does not answer');
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
    serve: () => ({ operations: 1, batch: serves }),
  },
  comparisons: (
    [
      ['check create', 2.5],
      ['check create --format json', 2.5],
      ['serve', 9],
    ] as const
  ).map(([command, atMost]) => ({
    name: command,
    measured: command,
    comparedWith: 'node -e 0',
    of: 'time',
    target: { atMost },
  })),
  notes: [
    'One operation is one process, from spawn to exit: 15 of each in turns, in every run. The command is the built one, whose modules are merged, with etc/policy-service.conf and the captured check-create-physical-host.',
    'Of serve, one operation is from spawn until GET /healthz is answered: nine empty processes are about 1.2 seconds.',
  ],
};
