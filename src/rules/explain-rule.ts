/** Explains the result of a rule: every part of its expressions, with its value. */

import { onOneLine } from '../base/visible-text.ts';
import type { RuleExplanation } from '../filter/services.ts';
import { writtenDuration, writtenTimestamp } from './cel/conversions.ts';
import { Duration, isMap, itemsOf, Optional, Timestamp } from './cel/values.ts';
import type { Activation, ExplainedPart, Expression } from './expression.ts';
import type { Rule } from './rule.ts';

/** For each expression. */
const MAX_PARTS = 40;

/** Evaluates the expressions of a rule once more. */
export function explainRule({ match, allow }: Rule, activation: Activation): RuleExplanation[] {
  return [
    ...(match === undefined ? [] : [explained('match', match, activation)]),
    explained('allow', allow, activation),
  ];
}

function explained(
  of: RuleExplanation['of'],
  expression: Expression,
  activation: Activation,
): RuleExplanation {
  const parts = partsOf(expression, activation).flatMap(({ text, value, failure }) => {
    const shown = failure === undefined ? shownValue(value, text) : `fails: ${cut(onOneLine(failure))}`;
    return shown === undefined ? [] : [{ text: cut(onOneLine(text)), value: shown }];
  });
  // The whole expression is the last part.
  return { of, parts: parts.slice(-MAX_PARTS) };
}

/** Empty for a request that is too large, which the judgement reports. */
function partsOf(expression: Expression, activation: Activation): readonly ExplainedPart[] {
  try {
    return expression.explain(activation);
  } catch {
    return [];
  }
}

/** In characters. */
const MAX_TEXT = 100;
const MAX_ITEMS = 5;
const MAX_DEPTH = 3;
const HIDDEN = '****';
/** Names of attributes that contain secrets. */
const SECRET = /pass(?:word|phrase|wd)|secret|token|credential|api[_-]?key|private[_-]?key|authorization/i;

/**
 * `undefined` = no information, such as for the whole lease. `text`: its expression; if that names a secret,
 * the value is hidden.
 */
function shownValue(value: unknown, text: string): string | undefined {
  if (typeof value !== 'boolean' && SECRET.test(text)) {
    return HIDDEN;
  }
  const shown = written(value, 0);
  return shown && cut(onOneLine(shown));
}

function cut(text: string): string {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT - 1)}…` : text;
}

function written(value: unknown, depth: number): string | undefined {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(cut(value));
    case 'bigint':
    case 'number':
    case 'boolean':
      return String(value);
    case 'object':
      return value === null ? 'null' : writtenObject(value, depth);
    default:
      return undefined;
  }
}

function writtenObject(value: object, depth: number): string | undefined {
  if (value instanceof Timestamp) {
    return writtenTimestamp(value);
  }
  if (value instanceof Duration) {
    return writtenDuration(value);
  }
  if (value instanceof Optional) {
    return value.value === undefined ? 'nothing' : written(value.value, depth);
  }
  const items = itemsOf(value);
  if (items !== undefined) {
    const shown = items.slice(0, MAX_ITEMS).map((one) => inner(one, depth));
    if (depth === 0 && shown.length > 0 && shown.every((one) => one === '…')) {
      return undefined;
    }
    return `[${[...shown, ...more(items.length)].join(', ')}]`;
  }
  if (isMap(value)) {
    const keys = [...value.keys()];
    const shown = keys.slice(0, MAX_ITEMS).map((key) => {
      const name = cut(String(key));
      return `${name}: ${SECRET.test(name) ? HIDDEN : inner(value.get(key), depth)}`;
    });
    return `{${[...shown, ...more(keys.length)].join(', ')}}`;
  }
  return undefined;
}

function inner(value: unknown, depth: number): string {
  return depth < MAX_DEPTH ? (written(value, depth + 1) ?? '…') : '…';
}

function more(count: number): string[] {
  return count > MAX_ITEMS ? [`${count - MAX_ITEMS} more`] : [];
}
