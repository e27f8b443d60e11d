/** How commands report what they have thrown. */
import { CommanderError } from 'commander';
import { ConfigurationError, errorText } from '../base/errors.ts';
import { ExitCode, FailedError, onOneLine, printProblems, UnwrittenError, UsageError } from './output.ts';

/** Writes what a command has thrown to standard error, on one line each. Returns the exit code for it. */
export function reportFailure(thrown: unknown): number {
  if (thrown instanceof CommanderError) {
    if (thrown.code === 'commander.help' && thrown.exitCode !== 0) {
      process.stderr.write('error: expected a command; --help lists them\n');
    }
    // Help and version come this way too; commander has written all other messages.
    return thrown.exitCode === 0 ? ExitCode.ok : ExitCode.usage;
  }
  if (thrown instanceof ConfigurationError) {
    printProblems(thrown.problems);
    return ExitCode.usage;
  }
  process.stderr.write(`error: ${onOneLine(errorText(thrown))}\n`);
  if (thrown instanceof UnwrittenError) {
    return ExitCode.unwritten;
  }
  if (thrown instanceof FailedError) {
    return ExitCode.failed;
  }
  return thrown instanceof UsageError ? ExitCode.usage : ExitCode.fault;
}
