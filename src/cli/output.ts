/** What all commands share in what they print and how they end. */
import { formatProblem, type Problem } from '../errors.ts';
import { onOneLine, visibleJson } from '../visible-text.ts';

export { onOneLine } from '../visible-text.ts';

/** How a command ends. */
export const ExitCode = {
  ok: 0,
  /** At least one lease was rejected, or a check of `conformance` failed. */
  rejected: 1,
  /** The configuration or the command line is wrong. */
  usage: 2,
  /** A filter failed. */
  failed: 3,
  /** The reader of standard output went away: 128 + SIGPIPE, as of other commands. */
  nobodyReads: 141,
  /** A fault of ours. */
  fault: 70,
  /** `serve`: a filter held the process for longer than `hang_timeout`, or a stop for longer than `shutdown_grace`. */
  held: 75,
} as const;

/** The command was not called as it should be: one line, exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** `error: etc/blazar.conf:7: …`, one line each, on standard error. */
export function printProblems(problems: readonly Problem[]): void {
  for (const problem of problems) {
    process.stderr.write(`${problem.severity}: ${onOneLine(formatProblem(problem))}\n`);
  }
}

export function printWarnings(problems: readonly Problem[]): void {
  printProblems(problems.filter(({ severity }) => severity === 'warning'));
}

/** As JSON; a number that JavaScript can't hold is written out. */
export function jsonText(value: unknown, indent = 0): string {
  const text = JSON.stringify(
    value,
    (_, item: unknown) => (typeof item === 'bigint' ? item.toString() : item),
    indent,
  );
  return visibleJson(text);
}

export function jsonLine(value: unknown): string {
  return `${jsonText(value)}\n`;
}

export function printJson(value: unknown): void {
  process.stdout.write(jsonLine(value));
}

/** Columns without borders. The table package is loaded here only, since most commands print no table. */
export async function printTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
): Promise<void> {
  const { default: Table } = await import('cli-table3');
  const none = '';
  const table = new Table({
    head: [...head],
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 2 },
    chars: {
      top: none,
      'top-mid': none,
      'top-left': none,
      'top-right': none,
      bottom: none,
      'bottom-mid': none,
      'bottom-left': none,
      'bottom-right': none,
      left: none,
      'left-mid': none,
      mid: none,
      'mid-mid': none,
      right: none,
      'right-mid': none,
      middle: none,
    },
  });
  table.push(...rows.map((row) => row.map(onOneLine)));
  process.stdout.write(`${table.toString().replaceAll(/ +$/gm, '')}\n`);
}
