/** Standard output and error: a failed write has its own exit code; a closed pipe is no error. */
import { writeSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { CommanderError } from 'commander';
import { ConfigurationError, errorText } from '../../base/errors.ts';
import { systemErrorText } from '../../config/read-file.ts';
import { ExitCode, FailedError, onOneLine, printProblems, UnwrittenError, UsageError } from './output.ts';

/** Must be called before anything is written. */
export function guardStandardStreams(): void {
  // Writes beyond the file size limit then fail like on a full disk, instead of ending the process.
  process.on('SIGXFSZ', () => {});
  for (const stream of [process.stdout, process.stderr]) {
    if (stream.constructor.name === 'SyncWriteStream') {
      writeWhole(stream);
    }
  }
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') {
      process.exit(ExitCode.pipeClosed);
    }
    process.stderr.write(
      `error: standard output could not be written: ${onOneLine(systemErrorText(error))}\n`,
    );
    process.exit(ExitCode.unwritten);
  });
  let lost = false;
  process.stderr.on('error', (error: NodeJS.ErrnoException) => {
    lost ||= error.code !== 'EPIPE';
  });
  process.on('exit', () => {
    // A lost warning; after a lost error, the exit code is already set.
    if (lost && (process.exitCode ?? ExitCode.ok) === ExitCode.ok) {
      process.exitCode = ExitCode.unwritten;
    }
  });
}

/** Ends the process when its output is written, even if a plug-in left timers or connections open. */
export function exitWhenWritten(): void {
  isDone();
  process.stdout.write('', (error) => {
    // The handler above sets the exit code of an error.
    if (error === null || error === undefined) {
      process.exit();
    }
  });
}

/** Node takes a partial write to a file for a whole one: on a full disk the rest would be lost silently. */
function writeWhole(stream: Writable & { readonly fd: number; readonly isTTY?: boolean }): void {
  stream._write = (chunk: Uint8Array, _encoding, done) => {
    try {
      for (let written = 0; written < chunk.length; ) {
        const taken = writeSync(stream.fd, chunk, written);
        if (taken === 0) {
          throw new Error('the device takes nothing');
        }
        written += taken;
      }
    } catch (thrown) {
      done(thrown instanceof Error ? thrown : new Error(String(thrown)));
      return;
    }
    done();
  };
}

/** Codes of a result, and 13: Node exits with it when nothing is pending. Others are failures already. */
const RESULTS: readonly unknown[] = [ExitCode.ok, ExitCode.rejected, ExitCode.usage, 13, undefined];

const unfinished = new Set<object>();

/** Runs a command. If the process ends in the meantime, its exit code is that of a failed filter. */
export async function toItsEnd(command: () => Promise<void>): Promise<void> {
  const running = {};
  const ended = (code: number) => {
    if (unfinished.has(running) && RESULTS.includes(code)) {
      process.stderr.write(
        `error: the process was ended before the command was done (exit code ${code}), for example by process.exit in a filter\n`,
      );
      process.exitCode = ExitCode.failed;
    }
  };
  unfinished.add(running);
  process.on('exit', ended);
  try {
    await command();
  } finally {
    unfinished.delete(running);
    process.off('exit', ended);
  }
}

/** Must be called when the command has its result and will end the process itself. */
export function isDone(): void {
  unfinished.clear();
}

/** Writes an error of a command to standard error, on one line each. Returns its exit code. */
export function reportFailure(thrown: unknown): number {
  if (thrown instanceof CommanderError) {
    if (thrown.code === 'commander.help' && thrown.exitCode !== 0) {
      process.stderr.write('error: expected a command; --help lists them\n');
    }
    // Also for help and version; commander has written all other messages.
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
