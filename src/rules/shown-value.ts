/** Values of rules, for people who try them: short, on one line, without secrets. */
import { onOneLine } from '../base/visible-text.ts';
import { writtenDuration, writtenTimestamp } from './cel/date-texts.ts';
import { Duration, isMap, itemsOf, Optional, Timestamp } from './cel/values.ts';

/** In characters. */
const MAX_TEXT = 100;
const MAX_ITEMS = 5;
const MAX_DEPTH = 3;
const HIDDEN = '****';
/** As attributes are called that hold secrets. */
const SECRET = /pass(?:word|phrase|wd)|secret|token|credential|api[_-]?key|private[_-]?key|authorization/i;

/**
 * `undefined` for values that say nothing, such as the lease as a whole. `text`: the expression that it is of; if that names a secret, the
 * value is hidden.
 */
export function shownValue(value: unknown, text: string): string | undefined {
  if (typeof value !== 'boolean' && SECRET.test(text)) {
    return HIDDEN;
  }
  const shown = written(value, 0);
  return shown && cut(onOneLine(shown));
}

export function cut(text: string): string {
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
