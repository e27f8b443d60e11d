/** JSON and YAML texts that are expensive for their size: wide, deep, long, with many names or characters. */

/** Builds a text of at most about this many bytes. */
export type Shape = (bytes: number) => string;

/** A list that fills the available size; `unit` returns the item at an index. */
function repeated(open: string, unit: (index: number) => string, close: string, separator = ','): Shape {
  return (bytes) => {
    const units: string[] = [];
    let length = open.length + close.length;
    for (let index = 0; ; index += 1) {
      const one = unit(index);
      length += Buffer.byteLength(one) + separator.length;
      if (length > bytes) {
        return open + units.join(separator) + close;
      }
      units.push(one);
    }
  };
}

function list(item: string): Shape {
  return (bytes) =>
    `[${Array(Math.max(1, Math.floor((bytes - 2) / (item.length + 1))))
      .fill(item)
      .join(',')}]`;
}

/** At most this many items of a list or members of an object: what a limit allows. */
export function atMost(count: number, item: (index: number) => string, [open, close] = ['[', ']']): Shape {
  return (bytes) => {
    const all = Array.from({ length: count }, (_, index) => item(index));
    const fitting = Math.max(1, Math.floor(bytes / (Buffer.byteLength(all.at(-1) ?? '') + 1)));
    return open + all.slice(0, fitting).join(',') + close;
  };
}

/** A quoted string of these characters. */
export function textOf(letter: string): Shape {
  const size = Buffer.byteLength(letter);
  return (bytes) => `"${letter.repeat(Math.max(0, Math.floor((bytes - 2) / size)))}"`;
}

function deep(open: string, middle: string, close: string): Shape {
  return (bytes) => {
    const levels = Math.floor((bytes - middle.length) / (open.length + close.length));
    return open.repeat(levels) + middle + close.repeat(levels);
  };
}

/** JSON values for any position. */
export const JSON_SHAPES: Readonly<Record<string, Shape>> = {
  numbers: list('1'),
  fractions: list('1.5'),
  'a number': (bytes) => '9'.repeat(bytes),
  'empty lists': list('[]'),
  'lists of one': list('[1]'),
  'empty objects': list('{}'),
  'objects of one': list('{"a":1}'),
  texts: list('"a"'),
  'different texts': repeated('[', (index) => `"s${index}"`, ']'),
  nulls: list('null'),
  'deep lists': deep('[', '', ']'),
  'deep objects': deep('{"a":', '1', '}'),
  'unclosed lists': (bytes) => '['.repeat(bytes),
  'unclosed objects': (bytes) => '{"a":'.repeat(bytes / 5),
  'different names': repeated('{', (index) => `"k${index}":1`, '}'),
  'names that are numbers': repeated('{', (index) => `"${(index * 7919) % 4294967291}":1`, '}'),
  'objects with different names': repeated('[', (index) => `{"k${index}":1}`, ']'),
  'the same name': repeated('{', () => '"a":1', '}'),
  'a text': textOf('a'),
  'a text of umlauts': textOf('ä'),
  'a text of faces': textOf('😀'),
  'a text of escapes': textOf('\\n'),
  'a text of halves': textOf('\\ud800'),
  'a text of digits': textOf('9'),
  'a text of quotes': textOf('\\"'),
  blanks: (bytes) => `${' '.repeat(bytes - 1)}1`,
  // The accepted maximum.
  'objects of one, as many as are read': atMost(99_000, (index) => `{"k${index}":1}`),
  'empty lists, as many as are read': atMost(140_000, () => '[]'),
  'different names, as many as are read': atMost(9000, (index) => `"${'k'.repeat(500)}${index}":1`, [
    '{',
    '}',
  ]),
  'objects of many names, as many as are read': atMost(29, (index) =>
    atMost(9000, (name) => `"k${index}n${name}":1`, ['{', '}'])(8_388_608),
  ),
};

/** YAML, for its parsers. */
export const YAML_SHAPES: Readonly<Record<string, Shape>> = {
  'a text': (bytes) => `a: ${'x'.repeat(bytes - 4)}\n`,
  'a block of lines': (bytes) => `run: |\n${'  echo hello world\n'.repeat(bytes / 19)}`,
  'a folded block': (bytes) => `run: >\n${'  echo hello world\n'.repeat(bytes / 19)}`,
  'a text of lines between quotes': (bytes) => `a: "${'x\n '.repeat(bytes / 3)}"\n`,
  'a text that never ends': (bytes) => `a: "${'x\n '.repeat(bytes / 3)}`,
  lines: (bytes) => 'a: 1\n'.repeat(bytes / 5),
  'different lines': (bytes) => repeated('', (index) => `k${index}: 1`, '\n', '\n')(bytes),
  items: (bytes) => `a:\n${'- 1\n'.repeat(bytes / 4)}`,
  'items between brackets': (bytes) => `a: [${'1,'.repeat(bytes / 2)}1]\n`,
  'as many lines as are read': (bytes) =>
    repeated('', (index) => `k${index}: v`, '\n', '\n')(Math.min(bytes, 60_000)),
  'as many items as are read': (bytes) => `a: [${'1, '.repeat(Math.min(bytes / 3, 6000))}1]\n`,
  'nested lists': (bytes) => `a: ${'['.repeat(bytes)}`,
  'nested lines': (bytes) => `a:\n  ${'- '.repeat(bytes / 2)}x\n`,
  comments: (bytes) => `a: 1\n${'# comment\n'.repeat(bytes / 10)}`,
  'blank lines': (bytes) => `a: 1\n${'\n'.repeat(bytes)}`,
  blanks: (bytes) => `a: 1${' '.repeat(bytes)}\n`,
  documents: (bytes) => 'a: 1\n---\n'.repeat(bytes / 9),
  'aliases of aliases': () =>
    [
      'a: &a [x]',
      ...[...'bcdefghij'].map((name, index) => {
        const before = 'abcdefghij'[index];
        return `${name}: &${name} [${Array(9).fill(`*${before}`).join(', ')}]`;
      }),
    ].join('\n'),
  'aliases of one': (bytes) => `a: &a x\nb: [${'*a, '.repeat(bytes / 4)}*a]\n`,
  'a long number': (bytes) => `a: ${'9'.repeat(bytes)}\n`,
  'a time of many parts': (bytes) => `a: 1${':1'.repeat(bytes / 2)}\n`,
  colons: (bytes) => `a: ${':'.repeat(bytes)}\n`,
  'a tag': (bytes) => `a: !${'t'.repeat(bytes)} x\n`,
};
