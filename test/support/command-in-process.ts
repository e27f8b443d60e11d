/** Runs a command's code in this process: the same streams and exit code in a hundredth of the time of a process of its own. */
import { type Command, CommanderError } from 'commander';
import { vi } from 'vitest';
import { ExitCode, printProblems, UsageError } from '../../src/cli/output.ts';
import { runProgram } from '../../src/cli/program.ts';
import { ConfigurationError } from '../../src/errors.ts';
import type { CommandResult } from './run-command.ts';

/** A whole command line, as main.ts runs it. One run at a time: it takes over the streams. */
export function runProgramInProcess(args: readonly string[]): Promise<CommandResult> {
  return captured(() => runProgram(args));
}

/** What a mistake comes to is decided in program.ts; here as there. One run at a time. */
export function runInProcess(command: Command, args: readonly string[]): Promise<CommandResult> {
  return captured(async () => {
    try {
      await command.exitOverride().parseAsync(args, { from: 'user' });
    } catch (thrown) {
      if (thrown instanceof ConfigurationError) {
        printProblems(thrown.problems);
      } else if (thrown instanceof UsageError) {
        process.stderr.write(`error: ${thrown.message}\n`);
      } else if (!(thrown instanceof CommanderError)) {
        throw thrown;
      }
      process.exitCode = ExitCode.usage;
    }
  });
}

async function captured(run: () => Promise<void>): Promise<CommandResult> {
  let stdout = '';
  let stderr = '';
  const spies = [
    vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
      stdout += String(text);
      return true;
    }),
    vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
      stderr += String(text);
      return true;
    }),
  ];
  const { exitCode: before } = process;
  try {
    process.exitCode = undefined;
    await run();
  } finally {
    for (const spy of spies) {
      spy.mockRestore();
    }
  }
  const code = process.exitCode === undefined ? 0 : Number(process.exitCode);
  process.exitCode = before;
  return { code, stdout, stderr };
}
