/** Runs the built command as an operator does: in a process of its own, without the variables of ours that it would read. */
import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished } from 'vitest';

export interface CommandResult {
  /** The exit code; `null` = a signal ended the process. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The result of a failed command: only an error. A text is the whole error. */
export function refused(why: string | RegExp, code = 2): CommandResult {
  const stderr = typeof why === 'string' ? `error: ${why}\n` : (expect.stringMatching(why) as string);
  return { code, stdout: '', stderr };
}

/** The output of a command that succeeded without a warning. */
export function printed({ stdout, ...ended }: CommandResult): string {
  expect(ended).toEqual({ code: 0, stderr: '' });
  return stdout;
}

/** As `refused`, for an error with these words. */
export function refusedWith(words: string, code = 2): CommandResult {
  return { code, stdout: '', stderr: expect.stringContaining(words) as string };
}

export interface CommandOptions {
  /** Additional variables; those of this process are kept, except `OS_*`, `BLAZAR_*` and `NODE_OPTIONS`. */
  readonly env?: Readonly<Record<string, string>>;
  /** Standard input. Default: empty. */
  readonly stdin?: string | Uint8Array;
  readonly cwd?: string;
  /** The Node.js to run it with. Default: that of this process. */
  readonly node?: string;
}

/** A command that keeps running, such as `serve`. */
export interface RunningCommand {
  readonly process: ChildProcess;
  /** The output so far. */
  output(): Omit<CommandResult, 'code'>;
  /** Waits until standard output matches. Rejects if the process ends before. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  readonly ended: Promise<CommandResult>;
}

/** `dist/src/cli/main.js`, built by `npm run build`. */
export const COMMAND = fileURLToPath(new URL('../../dist/src/cli/main.js', import.meta.url));

/** Longer than any command takes on a busy machine; a command that hangs is killed, with code `null`. */
const DEADLINE_MILLISECONDS = 200_000;

/** Runs `node dist/src/cli/main.js …args` to its end. */
export function runCommand(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  const running = startCommand(args, options);
  const deadline = setTimeout(() => running.process.kill('SIGKILL'), DEADLINE_MILLISECONDS);
  return running.ended.finally(() => clearTimeout(deadline));
}

/** As `runCommand`, without waiting: the caller must end it. */
export function startCommand(args: readonly string[], options: CommandOptions = {}): RunningCommand {
  if (!existsSync(COMMAND)) {
    throw new Error(`${COMMAND} is not there: npm run build`);
  }
  const child = spawn(options.node ?? process.execPath, [COMMAND, ...args], {
    cwd: options.cwd,
    env: { ...scrubbedEnvironment(), ...options.env },
  });
  // A command that has seen enough closes its end of the pipe.
  child.stdin.on('error', () => {});
  child.stdin.end(options.stdin);
  return watched(child);
}

/** A process whose output is kept. */
export function watched(child: ChildProcessByStdio<Writable | null, Readable, Readable>): RunningCommand {
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = new Promise<CommandResult>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
  return {
    process: child,
    output: () => ({ stdout, stderr }),
    ended,
    printed: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const match = pattern.exec(stdout);
          if (match !== null) {
            resolve(match);
          }
        };
        child.stdout.on('data', look);
        child.on('close', () => reject(new Error(`ended before it printed ${pattern}: ${stdout}${stderr}`)));
        look();
      }),
  };
}

/** As `startCommand`. Killed after the test. */
export function startUntilFinished(args: readonly string[], options: CommandOptions = {}): RunningCommand {
  const running = startCommand(args, options);
  onTestFinished(async () => {
    running.process.kill('SIGKILL');
    await running.ended;
  });
  return running;
}

/** This process's environment without the variables that a command reads. */
export function scrubbedEnvironment(): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(OS_|BLAZAR_|NODE_OPTIONS$)/.test(name)),
  );
}
