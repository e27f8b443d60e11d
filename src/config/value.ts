/** Reads the text of a configuration source by the option's type, as oslo.config does (`types.py`). */
import type { Option, OptionType } from './option.ts';

/** The text does not have the form of the type. The message completes a sentence, and never shows the text. */
export class ValueError extends Error {
  override readonly name = 'ValueError';
}

/** Reads a text by an option's type. The schema checks ranges and the like. Throws `ValueError`. */
export function readValue(text: string, option: Pick<Option, 'type' | 'itemType'>): unknown {
  switch (option.type) {
    case 'list':
      return readList(text).map((item) => readScalar(item, option.itemType));
    case 'dictionary':
      return readDictionary(text, option.itemType);
    default:
      return readScalar(text, option.type);
  }
}

function readScalar(text: string, type: OptionType): unknown {
  switch (type) {
    case 'integer':
      return readInteger(text);
    case 'number':
      return readNumber(text);
    case 'boolean':
      return readBoolean(text);
    default:
      return text;
  }
}

/** As Python's `int()`: a sign, leading zeros and single underscores between digits are allowed; `0x10`, `1e3`, `1.5` are not. */
function readInteger(text: string): number {
  const trimmed = text.trim();
  if (!/^[+-]?\d+(_\d+)*$/.test(trimmed)) {
    throw new ValueError();
  }
  const value = Number(trimmed.replaceAll('_', ''));
  if (!Number.isSafeInteger(value)) {
    throw new ValueError('it is too large');
  }
  return value;
}

function readNumber(text: string): number {
  const trimmed = text.trim();
  if (!/^[+-]?(\d+(_\d+)*)?(\.\d*)?(e[+-]?\d+)?$/i.test(trimmed) || !/\d/.test(trimmed)) {
    throw new ValueError();
  }
  const value = Number(trimmed.replaceAll('_', ''));
  if (!Number.isFinite(value)) {
    throw new ValueError();
  }
  return value;
}

function readBoolean(text: string): boolean {
  switch (text.trim().toLowerCase()) {
    case 'true':
    case '1':
    case 'on':
    case 'yes':
      return true;
    case 'false':
    case '0':
    case 'off':
    case 'no':
      return false;
    default:
      throw new ValueError();
  }
}

/** Ignores commas at the end, as oslo.config does. An empty item between two commas is refused. */
function readList(text: string): string[] {
  const trimmed = text.trim().replace(/,+$/, '');
  if (trimmed === '') {
    return [];
  }
  const items = trimmed.split(',').map((item) => item.trim());
  if (items.includes('')) {
    throw new ValueError('an item is empty');
  }
  return items;
}

function readDictionary(text: string, itemType: OptionType): Record<string, unknown> {
  const dictionary: Record<string, unknown> = {};
  for (const pair of readList(text)) {
    // A name may contain a colon, a number cannot: physical:host:10.
    const colon = itemType === 'text' ? pair.indexOf(':') : pair.lastIndexOf(':');
    const key = pair.slice(0, colon).trim();
    if (colon <= 0 || key === '') {
      throw new ValueError('a pair has no name or no ":"');
    }
    // zod would drop this name from a record silently, and the limit with it.
    if (key === '__proto__') {
      throw new ValueError('__proto__ cannot be the name of a pair');
    }
    if (Object.hasOwn(dictionary, key)) {
      throw new ValueError('a name is given twice');
    }
    dictionary[key] = readScalar(pair.slice(colon + 1).trim(), itemType);
  }
  return dictionary;
}
