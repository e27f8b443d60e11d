/** Runs a command in this process: the same streams and exit code, a hundred times faster than a process. */
import type { EventEmitter } from 'node:events';
import fs from 'node:fs';
import { Readable } from 'node:stream';
import type { Command } from 'commander';
import { vi } from 'vitest';
import { reportFailure } from '../../src/cli/common/standard-streams.ts';
import { runProgram } from '../../src/cli/program.ts';
import { type CommandOptions, type CommandResult, scrubbedEnvironment } from './run-command.ts';

/** Runs a whole command line, like main.ts. One run at a time: it replaces the streams. */
export function runProgramInProcess(
  args: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  return captured(() => runProgram(args), options);
}

/** Runs one command without the program. One run at a time. */
export function runInProcess(command: Command, args: readonly string[]): Promise<CommandResult> {
  return captured(async () => {
    try {
      await command.exitOverride().parseAsync(args, { from: 'user' });
    } catch (thrown) {
      process.exitCode = reportFailure(thrown);
    }
  });
}

/** The output of some code, and its exit code. Restores the process afterwards. */
export async function captured(run: () => Promise<void>, options?: CommandOptions): Promise<CommandResult> {
  const written = { stdout: '', stderr: '' };
  const spies = [captureStream('stdout', written), captureStream('stderr', written), captureLog(written)];
  const restore = options === undefined ? () => {} : replaceSurroundings(options);
  const removeListeners = watchListeners();
  const { exitCode } = process;
  try {
    process.exitCode = undefined;
    await run();
    return { code: Number(process.exitCode ?? 0), ...written };
  } finally {
    process.exitCode = exitCode;
    removeListeners();
    restore();
    for (const spy of spies) {
      spy.mockRestore();
    }
  }
}

type Written = { stdout: string; stderr: string };

function captureStream(name: keyof Written, written: Written) {
  return vi.spyOn(process[name], 'write').mockImplementation((text) => {
    written[name] += String(text);
    return true;
  });
}

/** The logger writes to the file descriptor of standard error. */
function captureLog(written: Written) {
  const { writeSync } = fs;
  return vi.spyOn(fs, 'writeSync').mockImplementation((descriptor, ...rest) => {
    if (descriptor !== 2) {
      return Reflect.apply(writeSync, fs, [descriptor, ...rest]);
    }
    const text = String(rest[0]);
    written.stderr += text;
    return Buffer.byteLength(text);
  });
}

function replaceSurroundings({ env = {}, cwd, stdin = '' }: CommandOptions): () => void {
  const before = { env: process.env, cwd: process.cwd() };
  process.env = { ...scrubbedEnvironment(), ...env };
  if (cwd !== undefined) {
    process.chdir(cwd);
  }
  const input = vi
    .spyOn(process, 'stdin', 'get')
    .mockReturnValue(Readable.from([Buffer.from(stdin)]) as never);
  return () => {
    process.env = before.env;
    process.chdir(before.cwd);
    input.mockRestore();
  };
}

/** The events that `serve` listens to until its process ends. */
const EVENTS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR1', 'uncaughtException', 'unhandledRejection'];

/** Returns a function that removes the listeners added from now on. */
function watchListeners(): () => void {
  const emitter: EventEmitter = process;
  const before = new Map(EVENTS.map((event) => [event, emitter.listeners(event)]));
  return () => {
    for (const [event, kept] of before) {
      for (const listener of emitter.listeners(event).filter((one) => !kept.includes(one))) {
        emitter.off(event, listener as () => void);
      }
    }
  };
}
