/**
 * The place where the blocks of one page are tried: a folder with the package installed, `etc/` and `examples/`, folders
 * that replace /etc/blazar, /var/lib and /var/log, and free ports.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { formatProblem } from '../../src/base/errors.ts';
import { readConfiguration } from '../../src/enforcement/configuration.ts';
import { SECTIONS } from '../../src/server/configuration/sections.ts';
import { projectFile } from '../support/files.ts';
import { unusedPort } from '../support/unused-port.ts';

/** A command that takes longer to end, or to print what the page shows, is killed. */
const DEADLINE_MILLISECONDS = 60_000;

/** Commands that run until the end of the page. All others run to their own end. */
const GOES_ON = /^(?:npm start|npm run external-service-example|blazar-enforcement serve)(?: |$)/;

export interface Tried {
  /** What it has printed on both streams so far, with the paths and ports of the page. */
  readonly output: string;
  /** `null` if it still runs. */
  readonly code: number | null;
}

export interface PageSandbox {
  /** Writes a file. Path and text are as on the page. */
  write(path: string, text: string): void;
  /** What `config validate` prints about a file, without a process: `severity: problem`, one a line. */
  problems(file: string): Promise<string>;
  /** Runs a shell command to its end, or until `done` has seen what was expected of one that keeps running. */
  run(command: string, done?: (output: string) => boolean): Promise<Tried>;
  /** Where a file of the page really is. */
  path(shown: string): string;
  /** Stops everything that still runs and removes the folder. */
  close(): Promise<void>;
}

export async function openSandbox(): Promise<PageSandbox> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'blazar-enforcement-docs-')));
  const places: readonly (readonly [shown: string, real: string])[] = [
    ['/etc/blazar', join(folder, 'etc-blazar')],
    ['/var/lib/blazar-enforcement', join(folder, 'var-lib')],
    ['/var/log/blazar-enforcement', join(folder, 'var-log')],
    ['8642', String(await unusedPort())],
    ['8643', String(await unusedPort())],
  ];
  const here = (text: string) => places.reduce((rest, [shown, real]) => rest.replaceAll(shown, real), text);
  const asShown = (text: string) =>
    places.reduce((rest, [shown, real]) => rest.replaceAll(real, shown), text);

  for (const name of ['etc', 'examples']) {
    cpSync(projectFile(name), join(folder, name), { recursive: true });
  }
  for (const name of readdirSync(join(folder, 'etc')).filter((name) => /\.(conf|sample)$/.test(name))) {
    const file = join(folder, 'etc', name);
    writeFileSync(file, here(readFileSync(file, 'utf8')));
  }
  mkdirSync(join(folder, 'etc-blazar'));
  mkdirSync(join(folder, 'var-lib'));
  mkdirSync(join(folder, 'var-log'));
  installPackage(folder);

  const running = new Set<ChildProcess>();
  let lastCode = 0;
  const run = async (command: string, done?: (output: string) => boolean): Promise<Tried> => {
    const shell = spawn('sh', ['-c', `exec 2>&1; (exit ${lastCode}); ${here(command)}\n`], {
      cwd: folder,
      env: environment(folder, places),
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: true,
    });
    running.add(shell);
    let output = '';
    return new Promise((settle, reject) => {
      const deadline = setTimeout(() => {
        end(shell);
        reject(new Error(`it went on for ${DEADLINE_MILLISECONDS} ms: ${command}\n${asShown(output)}`));
      }, DEADLINE_MILLISECONDS);
      const finish = (code: number | null) => {
        clearTimeout(deadline);
        lastCode = code ?? 0;
        settle({ output: asShown(output), code });
      };
      const goesOn = GOES_ON.test(command);
      shell.stdout.setEncoding('utf8').on('data', (text: string) => {
        output += text;
        if (goesOn && done?.(asShown(output))) {
          finish(null);
        }
      });
      shell.on('error', reject);
      shell.on('close', (code) => {
        running.delete(shell);
        finish(code ?? 1);
      });
    });
  };

  const path = (shown: string) => resolve(folder, here(shown));

  return {
    path,
    run,
    async problems(file) {
      const sources = { configFiles: [path(file)], environment: {} };
      const { problems } = await readConfiguration(sources, SECTIONS);
      return asShown(problems.map((problem) => `${problem.severity}: ${formatProblem(problem)}\n`).join(''));
    },
    write(shown, text) {
      const file = path(shown);
      if (!file.startsWith(`${folder}/`)) {
        throw new Error(`a page can write only to /etc/blazar and its own folder: ${shown}`);
      }
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, here(text), { mode: 0o600 });
    },
    async close() {
      const ended = [...running].map((shell) => new Promise((closed) => shell.on('close', closed)));
      running.forEach(end);
      await Promise.all(ended);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The shell and everything that it has started: it leads a process group. */
function end(shell: ChildProcess): void {
  if (shell.pid !== undefined) {
    process.kill(-shell.pid, 'SIGTERM');
  }
}

/** The package as `npm install` leaves it, and the two commands that pages call. */
function installPackage(folder: string): void {
  const modules = join(folder, 'node_modules');
  mkdirSync(join(modules, '@types'), { recursive: true });
  symlinkSync(projectFile('.'), join(modules, 'blazar-enforcement'));
  for (const name of ['zod', 'luxon', '@types/luxon', '@types/node']) {
    symlinkSync(realpathSync(projectFile(`node_modules/${name}`)), join(modules, name));
  }
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}\n');
  symlinkSync(projectFile('dist'), join(folder, 'dist'));

  // Without a terminal curl would print progress.
  writeFileSync(join(folder, '.curlrc'), 'silent\nshow-error\n');
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  const command = (name: string, text: string) =>
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  command('blazar-enforcement', `exec "${process.execPath}" dist/src/cli/main.js "$@"`);
  // npm itself would build first, while other tests use the build.
  const { scripts } = JSON.parse(readFileSync(projectFile('package.json'), 'utf8')) as {
    scripts: Readonly<Record<string, string>>;
  };
  const cases = ['start', 'run external-service-example'].map((words) => {
    const script = scripts[words.replace('run ', '')] ?? '';
    return `"${words}") exec ${script.replace('npm run build && ', '')} ;;`;
  });
  command(
    'npm',
    `case "$*" in\n${cases.join('\n')}\n*) echo "not run by these tests: npm $*"; exit 1 ;;\nesac`,
  );
}

function environment(folder: string, places: readonly (readonly [string, string])[]): NodeJS.ProcessEnv {
  const configuration = join(folder, 'etc-blazar', 'blazar.conf');
  return {
    PATH: `${join(folder, 'bin')}:${dirname(process.execPath)}:${process.env.PATH ?? ''}`,
    HOME: folder,
    // Instead of the default, /etc/blazar/blazar.conf.
    ...(existsSync(configuration) ? { BLAZAR_ENFORCEMENT_CONFIG: configuration } : {}),
    // Instead of the default of the external-service-example.
    PORT: places.find(([shown]) => shown === '8643')?.[1],
  };
}
