#!/usr/bin/env node
/** The process of `blazar-enforcement`: what it does when what is around it breaks. */
import { errorText } from '../errors.ts';
import { ExitCode, onOneLine } from './output.ts';
import { runProgram } from './program.ts';

// The reader of a pipe may go away; that is no mistake of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? ExitCode.nobodyReads : ExitCode.fault);
});
process.stderr.on('error', () => {});
// A filter that leaves a promise to itself, for one: no stack trace, and no exit code that means something else.
process.on('uncaughtException', (thrown) => {
  if (process.listenerCount('uncaughtException') > 1) {
    // `serve` ends in its own time.
    return;
  }
  process.stderr.write(`error: ${onOneLine(errorText(thrown))}\n`);
  process.exit(ExitCode.fault);
});
await runProgram(process.argv.slice(2));
