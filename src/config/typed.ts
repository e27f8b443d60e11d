/** Converts a source's value to the option's type, and checks it against the option's schema. */
import { isMapping } from '../base/yaml/tree.ts';
import type { Option, OptionType } from './option.ts';
import { hideCredentials, showText } from './secret.ts';

/** The value does not match its option. The message has what was expected, never a secret or a URL. */
export class MismatchError extends Error {
  override readonly name = 'MismatchError';
  /** The wrong member of a dictionary. */
  readonly member: string | undefined;

  constructor(message: string, member: string | undefined) {
    super(message);
    this.member = member;
  }
}

/**
 * Reads texts, also in lists and mappings, by the option's type. Except from `code`, they must be expressible
 * in a blazar.conf. Other values are returned unchanged, for the schema. Throws `MismatchError`.
 */
export function typedValue(value: unknown, option: Option, secret: boolean, code = false): unknown {
  let at: string | undefined;
  const itemAt = (name: string, one: unknown): unknown => {
    at = name;
    return typeof one === 'string' ? readItem(code ? one : itemText(one, option), option) : one;
  };
  const pairAt = (name: string, one: unknown): [string, unknown] => {
    at = name;
    return [nameText(name, option, code), itemAt(name, one)];
  };
  try {
    if (typeof value === 'string') {
      const isUnset =
        value.trim() === '' && option.default === undefined && (option.file || option.type !== 'text');
      return isUnset ? undefined : readValue(value, option);
    }
    if (option.type === 'list' && Array.isArray(value)) {
      return value.map((one, index) => itemAt(String(index), one));
    }
    return option.type === 'dictionary' && isMapping(value)
      ? Object.fromEntries(Object.entries(value).map(([name, one]) => pairAt(name, one)))
      : value;
  } catch (thrown) {
    const detail = thrown instanceof ValueError ? thrown.message : '';
    throw new MismatchError(expectation(value, option, secret, [detail, whereText(at, option, secret)]), at);
  }
}

function readItem(text: string, { itemType }: Option): unknown {
  return readValue(text, { type: itemType, itemType: 'text' });
}

function itemText(text: string, { type }: Option): string {
  if (type === 'list' && text.trim() === '') {
    throw new ValueError('an item is empty');
  }
  if (text.includes(',')) {
    throw new ValueError('an item contains a comma');
  }
  return text.trim();
}

function nameText(name: string, { itemType }: Option, code: boolean): string {
  requirePairName(name);
  if (code) {
    return name;
  }
  // In blazar.conf, the name of a pair ends at the first colon if the value is a text, else at the last.
  if (name.trim() === '' || (itemType === 'text' ? /[:,]/ : /,/).test(name)) {
    throw new ValueError(
      `a name is empty, or contains ${itemType === 'text' ? 'a ":" or a comma' : 'a comma'}`,
    );
  }
  return name.trim();
}

/**
 * Checks a value against the option's schema. `written` = the source's value, for the message. Throws
 * `MismatchError`.
 */
export function checkedValue(
  input: unknown,
  option: Option,
  secret: boolean,
  written: unknown = input,
): { readonly value: unknown; readonly input: unknown } {
  if (option.guard && isEmpty(input)) {
    const message = `expected ${option.expected}, got nothing, which would let everyone in: remove the option if you want that`;
    throw new MismatchError(message, undefined);
  }
  if (input === undefined) {
    return { value: undefined, input };
  }
  const parsed = option.schema.safeParse(input);
  if (parsed.success) {
    return { value: parsed.data, input };
  }
  const [issue] = parsed.error.issues;
  const at = issue === undefined || issue.path.length === 0 ? undefined : issue.path.join('.');
  const detail = issue?.code === 'custom' ? issue.message : whereText(at, option, secret);
  throw new MismatchError(expectation(written, option, secret, [detail]), issue?.path[0]?.toString());
}

function isEmpty(input: unknown): boolean {
  return (
    input === undefined ||
    (typeof input === 'string' && input.trim() === '') ||
    (Array.isArray(input) && input.length === 0)
  );
}

function whereText(member: string | undefined, { type }: Option, secret: boolean): string {
  if (secret || member === undefined) {
    return '';
  }
  return type === 'list' && /^\d+$/.test(member) ? `see item ${Number(member) + 1}` : `see "${member}"`;
}

function expectation(value: unknown, option: Option, secret: boolean, details: readonly string[]): string {
  const got = secret ? 'a value that is not shown' : showText(withoutCredentials(value));
  const comment =
    typeof value === 'string' && /\s[#;]/.test(value) ? 'a comment needs a line of its own' : '';
  const all = [...details, comment].filter((text) => text !== '').join('; ');
  return `expected ${option.expected}, got ${got}${all === '' ? '' : ` (${all})`}`;
}

/** Must run before the text is shortened: a URL that is cut in its password would not be recognized. */
function withoutCredentials(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  try {
    return JSON.parse(
      JSON.stringify(value, (_, one: unknown) => (typeof one === 'string' ? hideCredentials(one) : one)),
    );
  } catch {
    // A circular reference or a BigInt: possible only from code, and not shown as JSON.
    return value;
  }
}

/** The text does not have the form of the type. The message completes a sentence, and never contains the text. */
export class ValueError extends Error {
  override readonly name = 'ValueError';
}

/** Reads a text by the option's type. The schema checks ranges and the like. Throws `ValueError`. */
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

/**
 * As Python's `int()`: allows a sign, leading zeros and single underscores between digits, not `0x10`, `1e3`,
 * `1.5`.
 */
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

const TRUE = ['true', '1', 'on', 'yes'];
const FALSE = ['false', '0', 'off', 'no'];

function readBoolean(text: string): boolean {
  const word = text.trim().toLowerCase();
  if (!TRUE.includes(word) && !FALSE.includes(word)) {
    throw new ValueError();
  }
  return TRUE.includes(word);
}

/** Ignores trailing commas, as oslo.config does. Refuses an empty item between two commas. */
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

/** zod would silently drop this name from a record, and the limit with it. */
function requirePairName(name: string): void {
  if (name === '__proto__') {
    throw new ValueError('__proto__ cannot be the name of a pair');
  }
}

function readDictionary(text: string, itemType: OptionType): Record<string, unknown> {
  const dictionary: Record<string, unknown> = {};
  for (const pair of readList(text)) {
    // A name may contain colons, a number cannot: physical:host:10.
    const colon = itemType === 'text' ? pair.indexOf(':') : pair.lastIndexOf(':');
    const key = pair.slice(0, colon).trim();
    if (colon <= 0 || key === '') {
      throw new ValueError('a pair has no name or no ":"');
    }
    requirePairName(key);
    if (Object.hasOwn(dictionary, key)) {
      throw new ValueError('a name is given twice');
    }
    dictionary[key] = readScalar(pair.slice(colon + 1).trim(), itemType);
  }
  return dictionary;
}
