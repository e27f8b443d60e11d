/** What a source says of an option → a value of the option's type, held against its schema. */

import { isMapping } from '../yaml/tree.ts';
import type { Option } from './option.ts';
import { hideCredentials, showText } from './secret.ts';
import { readValue, ValueError } from './value.ts';

/** What came is no value of the option. The message says what was expected, and never holds a secret. */
export class MismatchError extends Error {
  override readonly name = 'MismatchError';
  /** The member of a dictionary that is wrong. */
  readonly member: string | undefined;

  constructor(message: string, member: string | undefined) {
    super(message);
    this.member = member;
  }
}

/**
 * Texts by the option's type, and so the texts within lists and mappings. Unless they are those of `code` they must be such
 * that a blazar.conf can say the same. Other values are left to the schema. Throws `MismatchError`.
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
    throw new MismatchError(expectation(value, option, secret, [detail, whereText(at, secret)]), at);
  }
}

function readItem(text: string, { itemType }: Option): unknown {
  return readValue(text, { type: itemType, itemType: 'text' });
}

/** An item of a list, or the value of a pair. */
function itemText(text: string, { type }: Option): string {
  if (type === 'list' && text.trim() === '') {
    throw new ValueError('an item is empty');
  }
  if (text.includes(',')) {
    throw new ValueError('an item has a comma');
  }
  return text.trim();
}

function nameText(name: string, { itemType }: Option, code: boolean): string {
  // A zod record leaves out this one name without a word, and with it the limit that was written for it.
  if (name === '__proto__') {
    throw new ValueError('__proto__ cannot be the name of a pair');
  }
  if (code) {
    return name;
  }
  // In blazar.conf a pair of texts ends its name at the first colon, any other pair at the last.
  if (name.trim() === '' || (itemType === 'text' ? /[:,]/ : /,/).test(name)) {
    throw new ValueError(`a name is empty, or has ${itemType === 'text' ? 'a ":" or a comma' : 'a comma'}`);
  }
  return name.trim();
}

/**
 * Held against the option's schema. `written` = the value as its source has it, for the message. Throws `MismatchError`.
 */
export function checkedValue(
  input: unknown,
  option: Option,
  secret: boolean,
  written: unknown = input,
): { readonly value: unknown; readonly input: unknown } {
  if (option.guard && isEmpty(input)) {
    const message = `expected ${option.expected}, got nothing; empty, it would keep nobody out: remove the option if that is meant`;
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
  const detail = issue?.code === 'custom' ? issue.message : whereText(at, secret);
  throw new MismatchError(expectation(written, option, secret, [detail]), issue?.path[0]?.toString());
}

function isEmpty(input: unknown): boolean {
  return (
    input === undefined ||
    (typeof input === 'string' && input.trim() === '') ||
    (Array.isArray(input) && input.length === 0)
  );
}

function whereText(member: string | undefined, secret: boolean): string {
  return secret || member === undefined ? '' : `see "${member}"`;
}

function expectation(value: unknown, option: Option, secret: boolean, details: readonly string[]): string {
  const got = secret ? 'a value that is not shown' : showText(withoutCredentials(value));
  const comment =
    typeof value === 'string' && /\s[#;]/.test(value) ? 'a comment needs a line of its own' : '';
  const all = [...details, comment].filter((text) => text !== '').join('; ');
  return `expected ${option.expected}, got ${got}${all === '' ? '' : ` (${all})`}`;
}

/** Before it is shortened: a URL that is cut off within its password would not be known for one. */
function withoutCredentials(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  try {
    return JSON.parse(
      JSON.stringify(value, (_, one: unknown) => (typeof one === 'string' ? hideCredentials(one) : one)),
    );
  } catch {
    // A circle, or a BigInt: only code can give such a value, and it is not shown as JSON.
    return value;
  }
}
