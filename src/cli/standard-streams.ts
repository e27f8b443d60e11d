/** Standard output and error: what cannot be written is told, and ends with an exit code of its own; a closed pipe is no fault. */
import { writeSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { systemErrorText } from '../config/read-file.ts';
import { isDone } from './early-exit.ts';
import { ExitCode, onOneLine } from './output.ts';

type Stream = Writable & { readonly fd: number; readonly isTTY?: boolean };

/** Must be called before anything is written. */
export function guardStandardStreams(): void {
  // Writing beyond a limit on the size of files fails then, as on a full disk, instead of ending the process.
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
    process.stderr.write(`error: standard output could not be written: ${whyNot(error)}\n`);
    process.exit(ExitCode.unwritten);
  });
  let lost = false;
  process.stderr.on('error', (error: NodeJS.ErrnoException) => {
    lost ||= error.code !== 'EPIPE';
  });
  process.on('exit', () => {
    // A lost warning; other exit codes tell of a lost error.
    if (lost && (process.exitCode ?? ExitCode.ok) === ExitCode.ok) {
      process.exitCode = ExitCode.unwritten;
    }
  });
}

/** Ends the process when its output is written, although a plug-in left timers or connections open. */
export function exitWhenWritten(): void {
  isDone();
  process.stdout.write('', (error) => {
    // An error has its own exit code, by the handler above.
    if (error === null || error === undefined) {
      process.exit();
    }
  });
}

/** Node writes to a file once, and takes a part for the whole: on a full disk the rest would be lost without an error. */
function writeWhole(stream: Stream): void {
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

const WORDS: Readonly<Record<string, string>> = {
  ENOSPC: 'no space is left on the device',
  EDQUOT: 'the quota of the disk is used up',
  EFBIG: 'the file would be larger than is allowed (ulimit -f)',
  EIO: 'the device reports an error',
};

function whyNot(error: NodeJS.ErrnoException): string {
  return onOneLine(WORDS[error.code ?? ''] ?? systemErrorText(error));
}
