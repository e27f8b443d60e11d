/** The output and the exit codes of all commands. */
import { errorText, formatProblem, type Problem } from '../../base/errors.ts';
import { wholeOf } from '../../base/growing-buffer.ts';
import { onOneLine, visibleJson } from '../../base/visible-text.ts';
import { readTextFile } from '../../config/read-file.ts';

export { onOneLine } from '../../base/visible-text.ts';

/** The exit codes. */
export const ExitCode = {
  ok: 0,
  /** At least one lease was rejected, or a check of `conformance` failed. */
  rejected: 1,
  /** The configuration or the command line is wrong. */
  usage: 2,
  /** A filter failed. */
  failed: 3,
  /** The reader of standard output closed the pipe: 128 + SIGPIPE, as with other commands. */
  pipeClosed: 141,
  /** An internal error of this program. */
  fault: 70,
  /** Standard output or error, or a file, could not be written, for example because the disk is full. */
  unwritten: 74,
  /** `serve`: a filter blocked the process beyond `hang_timeout`, or its shutdown beyond `shutdown_grace`. */
  held: 75,
} as const;

/** A file could not be written, for example because the disk is full. Not an error in the command's usage. */
export class UnwrittenError extends Error {}

/** A judge of requests failed, so its decision is unknown. */
export class FailedError extends Error {}

/** Wrong usage of a command: one line, exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Prints `error: etc/blazar.conf:7: …` to standard error, one line per problem, each once. */
export function printProblems(problems: readonly Problem[]): void {
  const lines = problems.map((problem) => `${problem.severity}: ${onOneLine(formatProblem(problem))}\n`);
  for (const line of new Set(lines)) {
    process.stderr.write(line);
  }
}

/** Prints all problems. Returns whether there are errors, for exit code 2. */
export function printedErrors(problems: readonly Problem[]): boolean {
  printProblems(problems);
  const isWrong = problems.some(({ severity }) => severity === 'error');
  if (isWrong) {
    process.exitCode = ExitCode.usage;
  }
  return isWrong;
}

export function printWarnings(problems: readonly Problem[]): void {
  printProblems(problems.filter(({ severity }) => severity === 'warning'));
}

export function warn(message: string): void {
  process.stderr.write(`warning: ${onOneLine(message)}\n`);
}

/** Prints why a command failed, and sets its exit code. */
export function fail(why: string, code: number = ExitCode.failed): void {
  process.stderr.write(`error: ${onOneLine(why)}\n`);
  process.exitCode = code;
}

/** JSON with each `bigint` as a string. */
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

/** Prints columns without borders, as wide as their content. */
export async function printTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
): Promise<void> {
  process.stdout.write(alignedText([head, ...rows]));
}

/** `widths`: of the columns; they grow to the widest cell. */
export function alignedText(rows: readonly (readonly string[])[], widths: number[] = []): string {
  const lines = rows.map((row) => row.map(onOneLine));
  for (const line of lines) {
    for (const [column, text] of line.entries()) {
      widths[column] = Math.max(widths[column] ?? 0, columnsOf(text));
    }
  }
  const padded = (cell: string, column: number) => cell + ' '.repeat((widths[column] ?? 0) - columnsOf(cell));
  return lines.map((line) => `${line.map(padded).join('  ').trimEnd()}\n`).join('');
}

/** In terminals, ideographs and emoji take two columns, combining characters none. */
const WIDE =
  /^(?:[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{20000}-\u{3fffd}]|\p{Emoji_Presentation})/u;
const NONE = /^[\p{Mn}\p{Me}\p{Cf}]/u;
let graphemes: Intl.Segmenter | undefined;

function columnsOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) {
    return text.length;
  }
  graphemes ??= new Intl.Segmenter('en');
  let columns = 0;
  for (const { segment } of graphemes.segment(text)) {
    columns += WIDE.test(segment) ? 2 : NONE.test(segment) ? 0 : 1;
  }
  return columns;
}

/** The changes of a text in the format of `diff -u`. `names`: of the text before and after. */
export async function unifiedDiff(
  names: readonly [string, string],
  before: string,
  after: string,
): Promise<string> {
  const { createTwoFilesPatch, FILE_HEADERS_ONLY } = await import('diff');
  const options = { context: 3, headerOptions: FILE_HEADERS_ONLY };
  return createTwoFilesPatch(...names, before, after, undefined, undefined, options);
}

/** The text of an input, at most `maxBytes`. @throws UsageError */
export async function readText(file: string, maxBytes: number): Promise<string> {
  try {
    return await (file === '-' ? readStandardInput(maxBytes) : readTextFile(file, maxBytes));
  } catch (thrown) {
    throw new UsageError(`${shownName(file)}: could not be read: ${errorText(thrown)}`);
  }
}

export function shownName(file: string): string {
  return file === '-' ? 'standard input' : file;
}

async function readStandardInput(maxBytes: number): Promise<string> {
  const tooLong = () => new Error(`it is longer than ${maxBytes} bytes`);
  const input = await wholeOf(process.stdin, maxBytes, tooLong);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(input);
  } catch {
    throw new Error('it is not UTF-8 text');
  }
}

/** `dryRun` → `--dry-run` */
export function flagNamed(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** Heading → cell; a missing value is an empty cell. */
export type Columns<Row> = Readonly<
  Record<string, (row: Row) => string | number | bigint | null | undefined>
>;

export async function printRows<Row>(rows: readonly Row[], columns: Columns<Row>): Promise<void> {
  const cells = Object.values(columns);
  await printTable(
    Object.keys(columns),
    rows.map((row) => cells.map((cell) => String(cell(row) ?? ''))),
  );
}

export async function printItems<Item>(
  items: readonly Item[],
  format: 'table' | 'json',
  object: (item: Item) => unknown,
  columns: Columns<Item>,
): Promise<void> {
  if (format === 'json') {
    printJson(items.map(object));
  } else {
    await printRows(items, columns);
  }
}

/** Prints the available items and their use: a row for each, with its options one below the other. */
export async function printUses<Item extends { readonly name: string; readonly options: readonly string[] }>(
  items: readonly (Item & { readonly enabled: boolean; readonly audit: boolean })[],
  format: 'table' | 'json',
  column: string,
  cell: (item: Item) => string,
): Promise<void> {
  if (format === 'json') {
    printJson(items);
    return;
  }
  await printTable(
    ['NAME', 'USE', column, 'OPTIONS'],
    items.flatMap((item) => {
      const [first = '', ...others] = item.options;
      const use = item.enabled ? 'enabled' : item.audit ? 'audit' : 'not enabled';
      return [[item.name, use, cell(item), first], ...others.map((option) => ['', '', '', option])];
    }),
  );
}

/** Prints the members of an object one below the other, except the first, which is in the heading. */
export async function printFacts(head: readonly [string, string], facts: object): Promise<void> {
  const rows = Object.entries(facts).map(([name, value]) => [name, String(value ?? '')]);
  await printTable(head, rows.slice(1));
}

/** @throws UsageError if `-` is among the files twice */
export function refuseStandardInputTwice(files: readonly (string | undefined)[]): void {
  if (files.filter((file) => file === '-').length > 1) {
    throw new UsageError('standard input (-) can be read once');
  }
}
