/** For tests of `check`: a configuration with a limit of two days, and parsers of the output. */

import { runProgramInProcess } from './command-in-process.ts';
import { capturedFile, confFile } from './files.ts';
import { jsonLines } from './json-lines.ts';
import type { CommandResult } from './run-command.ts';

export const TWO_DAYS =
  '[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 172800\n';
/** Allowed by `TWO_DAYS`. */
export const FITS = capturedFile('check-create-physical-host');
/** Rejected by `TWO_DAYS`, with `TOO_LONG`. */
export const NINE_DAYS = capturedFile('check-create-gpu-and-floating-ip');
export const TOO_LONG =
  'The lease is 777600 seconds (9 days) long; the longest allowed for any lease is 172800 seconds (2 days).';

/** One line of `--format json`. */
interface Answer {
  file: string;
  allowed: boolean;
  message: string | null;
  filter: string | null;
  failed: boolean;
  warnings: string[];
  outcomes: { filter: string; allowed: boolean }[];
}

/** `check OPERATION FILES FLAGS` with a limit of two days. */
export function check(operation: string, files: string[], ...flags: string[]): Promise<CommandResult> {
  return runProgramInProcess(['check', operation, ...files, '--config-file', confFile(TWO_DAYS), ...flags]);
}

export function answers(stdout: string): Answer[] {
  return jsonLines(stdout) as Answer[];
}

/** The rows of a table with their cells, which are at least two spaces apart. */
export function rows(stdout: string): string[][] {
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/));
}

/** Flags that enable filters, with a folder of their own. */
export function filterFlags(folder: string, ...names: readonly string[]): string[] {
  return [
    ...['--config', `enforcement.filters_path=${folder}`],
    ...['--config', `enforcement.enabled_filters=${names.join()}`],
  ];
}
