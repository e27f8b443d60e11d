/** The items of a long list in a JSON text, one at a time: parsing 20 MiB at once would hold the process for a quarter of a second. */
import { timedYield } from '../base/yield-to-event-loop.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const COMMA = 0x2c;
/** How many characters are read between two looks at the clock. */
const STRIDE = 65_536;

/** `[start, end)` of the list that is this member of the object, and of its items. */
interface Places {
  readonly list: readonly [number, number];
  readonly items: readonly (readonly [number, number])[];
}

/**
 * The items of `{"name": [item, …], …}`. Throws a `SyntaxError` for anything else. The rest of the object is parsed, and passed to
 * `look`, before the first item is.
 */
export async function* itemsOf(
  text: string,
  name: string,
  look: (rest: Readonly<Record<string, unknown>>) => void = () => {},
): AsyncGenerator<unknown> {
  const { list, items } = await placesOf(text, name);
  const rest: unknown = JSON.parse(`${text.slice(0, list[0])}[]${text.slice(list[1])}`);
  if (typeof rest !== 'object' || rest === null || !Object.hasOwn(rest, name)) {
    throw new SyntaxError(`expected an object with the list ${name}`);
  }
  const all = rest as Readonly<Record<string, unknown>>;
  if (!Array.isArray(all[name]) || all[name].length > 0) {
    throw new SyntaxError(`expected one list ${name}`);
  }
  look(all);
  const yieldIfDue = timedYield();
  for (const [start, end] of items) {
    yield JSON.parse(text.slice(start, end));
    await yieldIfDue();
  }
}

async function placesOf(text: string, name: string): Promise<Places> {
  const yieldIfDue = timedYield();
  const items: [number, number][] = [];
  const opening = new RegExp(`${JSON.stringify(name)}\\s*:\\s*$`);
  let depth = 0;
  let begin = -1;
  let item = -1;
  for (let at = 0; at < text.length; at += 1) {
    if (at % STRIDE === 0) {
      await yieldIfDue();
    }
    const character = text.charCodeAt(at);
    if (character === QUOTE) {
      at = endOfText(text, at);
    } else if (character === OPEN_LIST || character === OPEN_OBJECT) {
      depth += 1;
      if (
        depth === 2 &&
        begin < 0 &&
        character === OPEN_LIST &&
        opening.test(text.slice(Math.max(0, at - 200), at))
      ) {
        begin = at;
        item = at + 1;
      }
    } else if (character === CLOSE_LIST || character === CLOSE_OBJECT) {
      depth -= 1;
      if (depth === 1 && begin >= 0) {
        if (items.length > 0 || text.slice(item, at).trim() !== '') {
          items.push([item, at]);
        }
        return { list: [begin, at + 1], items };
      }
    } else if (character === COMMA && depth === 2 && begin >= 0) {
      items.push([item, at]);
      item = at + 1;
    }
  }
  throw new SyntaxError(
    begin < 0 ? `expected an object with the list ${name}` : 'the text ends within the list',
  );
}

/** The place of the quote at its end. */
function endOfText(text: string, start: number): number {
  for (let from = start + 1; ; ) {
    const end = text.indexOf('"', from);
    if (end < 0) {
      throw new SyntaxError('the text ends within a string');
    }
    let escapes = 0;
    while (text.charCodeAt(end - 1 - escapes) === BACKSLASH) {
      escapes += 1;
    }
    if (escapes % 2 === 0) {
      return end;
    }
    from = end + 1;
  }
}
