#!/usr/bin/env node
/** The process of `blazar-enforcement`: handles failed output and uncaught exceptions. */
import { errorText } from '../base/errors.ts';
import { isImportError, placeOf } from '../plugin/import-errors.ts';
import { ExitCode, onOneLine } from './common/output.ts';
import { guardStandardStreams } from './common/standard-streams.ts';
import { runProgram } from './program.ts';

guardStandardStreams();
// For example from a promise that a filter does not await: no stack trace, and a separate exit code.
process.on('uncaughtException', (thrown) => {
  if (isImportError(thrown) || process.listenerCount('uncaughtException') > 1) {
    // Already reported, or handled by `serve`.
    return;
  }
  process.stderr.write(`error: ${onOneLine(errorText(thrown))}${placeOf(thrown)}\n`);
  process.exit(ExitCode.fault);
});
await runProgram(process.argv.slice(2));
