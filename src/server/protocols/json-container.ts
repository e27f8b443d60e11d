/** A list or an object of JSON that is read piece by piece. */
import { setMember } from '../../yaml/tree.ts';

/** A list or an object that is not closed yet. */
export interface Container {
  readonly isList: boolean;
  /** The position of its opening bracket. */
  readonly start: number;
  /** The part that has been parsed. `undefined` = nothing yet; if it closes before, it is parsed with the piece around it. */
  parsed: unknown[] | Record<string, unknown> | undefined;
  /** The text from this position on has not been parsed. */
  from: number;
  /** The position after its last comma, where the current member begins. */
  member: number;
  /** The name of that member if its value is parsed separately; empty for an item of a list. */
  name: string;
  /** That value has been added: nothing else may come before the next comma. */
  isAdded: boolean;
}

export function container(isList: boolean, start: number): Container {
  const from = start + 1;
  return { isList, start, parsed: undefined, from, member: from, name: '', isAdded: false };
}

/** `text`: what is between the last comma and the value of a member. */
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
