/** Budgets in files: one budget a line, with every mistake. */

import { InvalidRequestError } from '../../base/errors.ts';
import { nearestName } from '../../config/nearest.ts';
import type { WantedBudget } from './budgets.ts';
import { amountOf, newIdOf, secondOf } from './terms.ts';

/** The columns of a budget, in this order. */
export const BUDGET_COLUMNS = ['project_id', 'user_id', 'valid_from', 'valid_until', 'amount'] as const;
/** For information: exported, ignored by an import. */
export const SHOWN_COLUMNS = ['taken', 'left'] as const;

export type BudgetColumn = (typeof BUDGET_COLUMNS)[number];

/** Longer files are refused. */
export const MAX_LINES = 10_000;

/** A line of CSV, counted from 1 with the column names first; or a budget of JSON, counted from 1. */
export interface FileLine {
  readonly line: number;
  /** Unparsed: text from CSV, any value from JSON. */
  readonly values: Readonly<Partial<Record<BudgetColumn, unknown>>>;
}

export interface FileMistake {
  /** `null` = the whole file. */
  readonly line: number | null;
  readonly field: string | null;
  readonly message: string;
}

export interface ReadFile {
  readonly lines: readonly FileLine[];
  readonly mistakes: readonly FileMistake[];
}

export interface WantedLine {
  readonly line: number;
  readonly wanted: WantedBudget;
}

export interface WantedLines {
  readonly wanted: readonly WantedLine[];
  readonly mistakes: readonly FileMistake[];
}

/** The budgets of lines. `unit` names the unit in messages. */
export function wantedLines(lines: readonly FileLine[], unit: string): WantedLines {
  const wanted: WantedLine[] = [];
  const mistakes: FileMistake[] = [];
  for (const line of lines) {
    const found = wantedOf(line, unit, (field, message) =>
      mistakes.push({ line: line.line, field, message }),
    );
    if (found !== undefined) {
      wanted.push({ line: line.line, wanted: found });
    }
  }
  return { wanted, mistakes };
}

/** The budgets of a document from `budget export --format json`: `{"budgets": […]}`, or only the list. */
export function readBudgetDocument(document: unknown): ReadFile {
  const list =
    typeof document === 'object' && document !== null && 'budgets' in document ? document.budgets : document;
  if (!Array.isArray(list)) {
    return wholly('expected {"budgets": [...]}, or a list of budgets');
  }
  if (list.length > MAX_LINES) {
    return wholly(`expected at most ${MAX_LINES} budgets, got ${list.length}`);
  }
  const lines: FileLine[] = [];
  const mistakes: FileMistake[] = [];
  for (const [index, item] of (list as unknown[]).entries()) {
    const line = index + 1;
    if (typeof item !== 'object' || item === null || Array.isArray(item)) {
      mistakes.push({ line, field: null, message: 'expected an object with the attributes of a budget' });
      continue;
    }
    const unknown = Object.keys(item).find((name) => !isColumn(name));
    if (unknown === undefined) {
      lines.push({ line, values: item });
    } else {
      mistakes.push({ line, field: unknown.slice(0, 100), message: unknownColumn(unknown) });
    }
  }
  return { lines, mistakes };
}

export function wholly(message: string, line: number | null = null): ReadFile {
  return { lines: [], mistakes: [{ line, field: null, message }] };
}

export function isColumn(name: string): boolean {
  return ([...BUDGET_COLUMNS, ...SHOWN_COLUMNS] as readonly string[]).includes(name);
}

/** The message for an unknown column. */
export function unknownColumn(name: string): string {
  return `there is no such column${nearestName(name.slice(0, 100), BUDGET_COLUMNS)}`;
}

function wantedOf(
  { values }: FileLine,
  unit: string,
  mistaken: (field: string, message: string) => void,
): WantedBudget | undefined {
  const parsed = <Value>(field: BudgetColumn, parse: (value: unknown) => Value): Value | undefined => {
    try {
      return parse(values[field]);
    } catch (thrown) {
      if (!(thrown instanceof InvalidRequestError)) {
        throw thrown;
      }
      mistaken(field, thrown.message.slice(thrown.field.length + 2));
      return undefined;
    }
  };
  const user = values.user_id ?? '';
  const projectId = parsed('project_id', (value) => newIdOf('project_id', value));
  const userId = user === '' ? null : parsed('user_id', (value) => newIdOf('user_id', value));
  const validFrom = parsed('valid_from', (value) => secondOf('valid_from', texted(value)));
  const validUntil = parsed('valid_until', (value) => secondOf('valid_until', texted(value)));
  const amount = parsed('amount', (value) => amountOf(texted(value), unit));
  if (validFrom !== undefined && validUntil !== undefined && validUntil <= validFrom) {
    mistaken('valid_until', 'expected a date after valid_from');
    return undefined;
  }
  return projectId === undefined ||
    userId === undefined ||
    validFrom === undefined ||
    validUntil === undefined ||
    amount === undefined
    ? undefined
    : { projectId, userId, validFrom, validUntil, amount };
}

/** A string or number as text. Anything else becomes an empty text, which is neither a date nor a number. */
function texted(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}
