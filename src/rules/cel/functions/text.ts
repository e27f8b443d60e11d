/** Functions on texts. Positions and sizes count code points, as CEL does. */
import { RE2JS } from 're2js';
import { Failure, type Frame } from '../frame.ts';
import {
  type CallEstimate,
  type CelFunction,
  listShape,
  SCALAR,
  type Shape,
  textShape,
} from '../function.ts';
import { isMap, itemsOf, textSteps, typeName } from '../values.ts';

/** Longer patterns would take long to compile. */
const MAX_PATTERN = 1000;
const WHITE = /\p{White_Space}/u;
const SURROGATE = /[\ud800-\udfff]/;

/** Steps to find one text in another: V8's search compares each pair of characters in the worst case. */
function searchSteps(length: number, wanted: number): number {
  return 1 + Math.ceil((length * Math.min(wanted, length)) / 16) + textSteps(length);
}

/** The automaton reads each character once and follows all paths. A call takes some microseconds. */
function matchSteps(length: number, pattern: number): number {
  return 200 + (length + 1) * Math.ceil((8 + pattern) / 2);
}

type Sizes = readonly Shape[];
const lengthOf = (shape: Shape | undefined) => shape?.text ?? 0;
const wholeText = ([text]: Sizes): CallEstimate => ({ steps: 1 + lengthOf(text), shape: SCALAR });
const sameText = ([text]: Sizes): CallEstimate => ({
  steps: 1 + lengthOf(text),
  shape: textShape(lengthOf(text)),
});
const searching = ([text, wanted]: Sizes): CallEstimate => ({
  steps: searchSteps(lengthOf(text), lengthOf(wanted)),
  shape: SCALAR,
});

export const TEXT_FUNCTIONS: readonly (readonly [key: string, CelFunction])[] = [
  ...named(['size/1', '.size/0'], { run: sizeOf, estimate: wholeText }),
  search('startsWith', (text, wanted) => text.startsWith(wanted)),
  search('endsWith', (text, wanted) => text.endsWith(wanted)),
  search('contains', (text, wanted) => text.includes(wanted)),
  search('indexOf', (text, wanted) => pointsBefore(text, text.indexOf(wanted))),
  search('lastIndexOf', (text, wanted) => pointsBefore(text, text.lastIndexOf(wanted))),
  changed('lowerAscii', (text) => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())),
  changed('upperAscii', (text) => text.replace(/[a-z]+/g, (letters) => letters.toUpperCase())),
  changed('trim', trimmed),
  ...named(['.substring/1', '.substring/2'], { run: substring, estimate: sameText }),
  [
    '.split/1',
    {
      run: ({ meter }, text, separator) => {
        if (typeof text !== 'string' || typeof separator !== 'string') {
          return unsuited('split', text, separator);
        }
        meter.spend(searchSteps(text.length, separator.length) + text.length);
        return separator === '' ? Array.from(text) : text.split(separator);
      },
      estimate: ([text, separator]) => ({
        steps: searchSteps(lengthOf(text), lengthOf(separator)) + lengthOf(text),
        shape: listShape(lengthOf(text) + 1, textShape(lengthOf(text))),
      }),
    },
  ],
  ...named(['.join/0', '.join/1'], { run: joined, estimate: joining }),
  ...named(['.matches/1', 'matches/2'], matching()),
];

/** One function under several keys. */
function named(keys: readonly string[], called: CelFunction): (readonly [string, CelFunction])[] {
  return keys.map((key) => [key, called]);
}

interface Pattern {
  readonly compiled: RE2JS;
  /** Number of instructions of its automaton. */
  readonly paths: number;
  /** The last result: requests are judged at least twice, and sent again. */
  readonly last: { text: string | undefined; matches: boolean };
}

/** RE2 syntax and its time: linear in the text. */
function matching(): CelFunction {
  return {
    constants: [1],
    prepare: (pattern) => {
      if (typeof pattern !== 'string') {
        throw new Error(`expected a pattern as a text, got ${typeName(pattern)}`);
      }
      if (pattern.length > MAX_PATTERN) {
        throw new Error(`expected a pattern of at most ${MAX_PATTERN} characters, got ${pattern.length}`);
      }
      const compiled = RE2JS.compile(pattern);
      const paths = compiled.programSize();
      if (paths > MAX_PATTERN) {
        throw new Error('the pattern repeats too much: its repetitions are too large');
      }
      return { compiled, paths, last: { text: undefined, matches: false } };
    },
    run: ({ meter }, text, pattern) => {
      if (typeof text !== 'string') {
        return new Failure(`matches() needs a text, got ${typeName(text)}`);
      }
      const { compiled, paths, last } = pattern as Pattern;
      meter.spend(matchSteps(text.length, paths));
      if (last.text !== text) {
        last.matches = compiled.test(text);
        last.text = text.length <= MAX_PATTERN ? text : undefined;
      }
      return last.matches;
    },
    estimate: ([text], prepared) => ({
      steps: matchSteps(lengthOf(text), (prepared as Pattern | undefined)?.paths ?? MAX_PATTERN),
      shape: SCALAR,
    }),
  };
}

function search(
  name: string,
  find: (text: string, wanted: string) => unknown,
): readonly [string, CelFunction] {
  return [
    `.${name}/1`,
    {
      run: ({ meter }, text, wanted) => {
        if (typeof text !== 'string' || typeof wanted !== 'string') {
          return unsuited(name, text, wanted);
        }
        meter.spend(searchSteps(text.length, wanted.length));
        return find(text, wanted);
      },
      estimate: searching,
    },
  ];
}

function changed(name: string, change: (text: string) => string): readonly [string, CelFunction] {
  return [
    `.${name}/0`,
    {
      run: ({ meter }, text) => {
        if (typeof text !== 'string') {
          return new Failure(`${name}() needs a text, got ${typeName(text)}`);
        }
        meter.spend(text.length);
        return change(text);
      },
      estimate: sameText,
    },
  ];
}

function sizeOf({ meter }: Frame, value: unknown): unknown {
  if (typeof value === 'string') {
    meter.spend(value.length);
    return BigInt(points(value));
  }
  const items = itemsOf(value);
  return items !== undefined
    ? BigInt(items.length)
    : isMap(value)
      ? BigInt(value.size)
      : new Failure(`size() needs a text, a list or a map, got ${typeName(value)}`);
}

/** White space as in Unicode. A pattern for the end of a text would try each run of blanks in it. */
function trimmed(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && WHITE.test(text.charAt(start))) {
    start += 1;
  }
  while (end > start && WHITE.test(text.charAt(end - 1))) {
    end -= 1;
  }
  return text.slice(start, end);
}

function points(text: string): number {
  return SURROGATE.test(text) ? Array.from(text).length : text.length;
}

function pointsBefore(text: string, index: number): bigint {
  return BigInt(index < 0 ? index : points(text.slice(0, index)));
}

function substring({ meter }: Frame, text: unknown, start: unknown, end: unknown): unknown {
  if (
    typeof text !== 'string' ||
    typeof start !== 'bigint' ||
    (end !== undefined && typeof end !== 'bigint')
  ) {
    return new Failure('substring() needs a text and whole numbers');
  }
  meter.spend(text.length);
  const all = SURROGATE.test(text) ? Array.from(text) : text;
  const until = end ?? BigInt(all.length);
  if (start < 0n || until < start || until > BigInt(all.length)) {
    return new Failure('substring() got a position that is not in the text');
  }
  const part = all.slice(Number(start), Number(until));
  return typeof part === 'string' ? part : part.join('');
}

function joined({ meter }: Frame, list: unknown, separator: unknown = ''): unknown {
  const items = itemsOf(list);
  if (items === undefined || typeof separator !== 'string') {
    return unsuited('join', list, separator);
  }
  const texts = items.filter((item) => typeof item === 'string');
  if (texts.length !== items.length) {
    return new Failure('join() needs a list of texts');
  }
  let length = 0;
  for (const text of texts) {
    length += text.length + separator.length;
  }
  meter.spend(texts.length + length);
  return texts.join(separator);
}

function joining([list, separator]: Sizes): CallEstimate {
  const items = list?.items ?? 0;
  const length = items * (lengthOf(list?.item) + lengthOf(separator));
  return { steps: 1 + items + length, shape: textShape(length) };
}

function unsuited(name: string, text: unknown, argument: unknown): Failure {
  return new Failure(`${name}() does not suit ${typeName(text)} and ${typeName(argument)}`);
}
