/** Budgets as CSV, for spreadsheets. Source: RFC 4180; OWASP, "CSV Injection". */
import { pipeline, Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { CsvError, Info, Parser } from 'csv-parse';
import {
  BUDGET_COLUMNS,
  type BudgetColumn,
  type FileLine,
  type FileMistake,
  isColumn,
  MAX_LINES,
  type ReadFile,
  SHOWN_COLUMNS,
  unknownColumn,
  wholly,
} from './file.ts';

/** In characters. Yields to the event loop after each, since a whole file would block other requests. */
const PIECE = 65_536;
/** Maximum length of a line, in characters. */
const LONGEST_LINE = 16_384;
const DELIMITERS = [',', ';', '\t'] as const;

interface CsvRecord {
  readonly line: number;
  readonly cells: readonly string[];
}

/** The lines of a file. The delimiter is the most frequent of comma, semicolon and tab in the first line. */
export async function readBudgetCsv(text: string): Promise<ReadFile> {
  let records: CsvRecord[];
  try {
    records = await recordsOf(text);
  } catch (thrown) {
    if (thrown instanceof FileTooLongError) {
      return wholly(`expected at most ${MAX_LINES} lines`);
    }
    const { code, lines } = thrown as CsvError & { readonly lines?: number };
    if (typeof code !== 'string') {
      throw thrown;
    }
    return wholly(SYNTAX[code] ?? 'expected CSV', lines ?? null);
  }
  const [head, ...rest] = records.filter(({ cells }) => cells.some((cell) => cell !== ''));
  if (head === undefined) {
    return wholly('expected the names of the columns in the first line, got an empty file');
  }
  const names = head.cells.map((cell) => cell.toLowerCase());
  while (names.at(-1) === '') {
    names.pop();
  }
  const mistakes = mistakesInHead(names, head.line);
  if (mistakes.length > 0) {
    return { lines: [], mistakes };
  }
  return linesOf(names, rest);
}

/** An export as text, or a part of it. `isFirst`: starts with the column names. */
export async function budgetCsv(
  rows: readonly Readonly<Record<BudgetColumn | (typeof SHOWN_COLUMNS)[number], string>>[],
  isFirst: boolean,
): Promise<string> {
  const { stringify } = await import('csv-stringify/sync');
  const columns = [...BUDGET_COLUMNS, ...SHOWN_COLUMNS];
  return stringify(
    rows.map((row) => columns.map((name) => (isText(name) ? harmless(row[name]) : row[name]))),
    // Quotes keep whitespace that a reader would trim.
    { header: isFirst, columns, record_delimiter: '\r\n', quoted_match: /^\s|\s$/ },
  );
}

const isText = (name: string) => name === 'project_id' || name === 'user_id';

/** Spreadsheets would run such text as a formula. An apostrophe prevents it, and is removed on reading. */
const ACTIVE = /^[=+\-@\t\r\n＝＋－＠]/;
const MADE_HARMLESS = /^'(?=['=+\-@\t\r\n＝＋－＠])/;

export function harmless(text: string): string {
  return ACTIVE.test(text) || MADE_HARMLESS.test(text) ? `'${text}` : text;
}

const SYNTAX: Readonly<Record<string, string>> = {
  CSV_QUOTE_NOT_CLOSED: 'a quote is opened and never closed',
  CSV_INVALID_CLOSING_QUOTE: 'a quote is closed in the middle of a cell; write a quote in a cell twice',
  INVALID_OPENING_QUOTE:
    'a quote is opened in the middle of a cell; write such a cell in quotes, and the quote twice',
  CSV_MAX_RECORD_SIZE: `expected lines of at most ${LONGEST_LINE} characters`,
};

class FileTooLongError extends Error {}

async function recordsOf(text: string): Promise<CsvRecord[]> {
  const { parse } = await import('csv-parse');
  const parser: Parser = parse({
    bom: true,
    delimiter: delimiterOf(text),
    trim: true,
    relax_column_count: true,
    info: true,
    max_record_size: LONGEST_LINE,
  });
  const records: CsvRecord[] = [];
  let end = 0;
  pipeline(Readable.from(pieces(text)), parser, () => {});
  for await (const { record: cells, info } of parser as AsyncIterable<{ record: string[]; info: Info }>) {
    // `info.lines` counts up to the end of a record, which may span several lines.
    records.push({ line: end + 1, cells });
    end = info.lines;
    if (records.length > MAX_LINES + 1) {
      throw new FileTooLongError();
    }
  }
  return records;
}

async function* pieces(text: string): AsyncIterable<string> {
  for (let at = 0; at < text.length; at += PIECE) {
    yield text.slice(at, at + PIECE);
    await nextTurn();
  }
}

function delimiterOf(text: string): string {
  const end = text.search(/[\r\n]/);
  const first = text.slice(0, Math.min(end === -1 ? text.length : end, LONGEST_LINE));
  const count = (delimiter: string) => first.split(delimiter).length;
  return DELIMITERS.reduce((best, one) => (count(one) > count(best) ? one : best));
}

function mistakesInHead(names: readonly string[], line: number): FileMistake[] {
  const unknown = names.filter((name) => !isColumn(name));
  const twice = names.filter((name, index) => names.indexOf(name) !== index);
  const required = BUDGET_COLUMNS.filter((name) => name !== 'user_id' && !names.includes(name));
  return [
    ...unknown
      .slice(0, 20)
      .map((name) => ({ line, field: name.slice(0, 100), message: unknownColumn(name) })),
    ...[...new Set(twice)]
      .slice(0, 20)
      .map((field) => ({ line, field: field.slice(0, 100), message: 'expected this column once' })),
    ...required.map((field) => ({ line, field, message: 'expected a column of this name' })),
  ];
}

function linesOf(names: readonly string[], records: readonly CsvRecord[]): ReadFile {
  const lines: FileLine[] = [];
  const mistakes: FileMistake[] = [];
  for (const { line, cells } of records) {
    const extra = cells.slice(names.length).some((cell) => cell !== '');
    if (extra || cells.length < names.length) {
      mistakes.push({ line, field: null, message: `expected ${names.length} cells, got ${cells.length}` });
      continue;
    }
    const values = names.map((name, index) => {
      const cell = cells[index] ?? '';
      return [name, isText(name) ? cell.replace(MADE_HARMLESS, '') : cell] as const;
    });
    lines.push({ line, values: Object.fromEntries(values) });
  }
  return { lines, mistakes };
}
