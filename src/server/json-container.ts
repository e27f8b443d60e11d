/** What is known of a list or an object of JSON while it is read piece by piece. */
import { setMember } from '../yaml/tree.ts';

/** A list or an object that has been opened and not closed. */
export interface Container {
  readonly isList: boolean;
  /** Where it is opened. */
  readonly start: number;
  /** What has been parsed of it; `undefined` = nothing yet, and if it ends before, it is a part of the piece that it stands in. */
  parsed: unknown[] | Record<string, unknown> | undefined;
  /** The text from here on has not been parsed. */
  from: number;
  /** Behind its last comma: where the member begins that is being read. */
  member: number;
  /** The name of that member, or nothing for an item, where its value is parsed apart. */
  name: string;
  /** That value has been added: no more may stand before the next comma. */
  isAdded: boolean;
}

export function container(isList: boolean, start: number): Container {
  const from = start + 1;
  return { isList, start, parsed: undefined, from, member: from, name: '', isAdded: false };
}

/** `text` stands between the last comma and the value of a member. */
export function memberName({ isList }: Container, text: string): string {
  if (isList) {
    expectBlank(text);
    return '';
  }
  const [name, ...others] = Object.keys(JSON.parse(`{${text}null}`) as object);
  if (name === undefined || others.length > 0) {
    throw new SyntaxError('a member without a name');
  }
  return name;
}

export function add({ parsed }: Container, name: string, value: unknown): void {
  if (Array.isArray(parsed)) {
    parsed.push(value);
  } else if (parsed !== undefined) {
    setMember(parsed, name, value);
  }
}

export function expectBlank(text: string): void {
  if (/[^ \t\r\n]/.test(text)) {
    throw new SyntaxError('something where nothing may stand');
  }
}
