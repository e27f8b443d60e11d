/** Random scripts, and values that YAML could take for something else: what must come back to the letter. */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';

/** Pieces of lines that mean something to YAML, to a shell or to nobody. */
const PIECES = [
  ...['echo', 'python train.py', 'x', '"', "'", '\\', '\\n', '\\ ', '$HOME', '{{a}}', '[1, 2]', '{a: b}'],
  ...['# ', ' #', '#', ': ', ':', '- ', '? ', '---', '--- ', '...', '%YAML 1.1', '%', '@', '`', '&a', '*a'],
  ...['!x'],
  ...['|', '>', '|2', '<<', '=', '~', ',', ']', '}', 'größer', '大模型', '😀', '\u00a0', '\u3000'],
  ...['\u0085', '\u2028', '\u2029', '\ufeff', '\u0007', '\u007f', '\u001b[0m', '\u0000'],
];
const BLANKS = ['', ' ', '  ', '    ', '\t', '\t\t', ' \t', '\t '];

const line = fc
  .tuple(
    fc.constantFrom(...BLANKS),
    fc.array(fc.oneof(fc.constantFrom(...PIECES), fc.string({ maxLength: 8 })), { maxLength: 6 }),
    fc.constantFrom(' ', '', '  '),
    fc.constantFrom(...BLANKS),
  )
  .map(([before, pieces, between, after]) => before + pieces.join(between) + after);
const blank = fc.constantFrom(...BLANKS);
const long = fc
  .integer({ min: 30, max: 300 })
  .map((length) => 'word '.repeat(length / 5) + 'x'.repeat(length));
const end = fc.oneof(
  { weight: 12, arbitrary: fc.constant('\n') },
  { weight: 1, arbitrary: fc.constantFrom('\r\n', '\r', '\n\n', '\n\n\n') },
);

/** Most have lines of blanks, and lines that end with some. */
export const scripts: fc.Arbitrary<string> = fc
  .array(fc.tuple(fc.oneof({ weight: 4, arbitrary: line }, { weight: 2, arbitrary: blank }, long), end), {
    maxLength: 12,
  })
  .chain((lines) =>
    fc.constantFrom('', '\n', ' ', '\n ', '\t').map((last) => lines.flat().slice(0, -1).join('') + last),
  );

/** Texts that are short and look like something else. */
export const LOOKALIKES = [
  ...['y', 'n', 'yes', 'no', 'on', 'off', 'true', 'NULL', '~', '', ' ', '=', '<<', '-', '?', ':', '---'],
  ...['...'],
  ...['1_000', '0o7', '07', '0x1F', '0b1', '1:30', '190:20:30', '1:30.5', '1e3', '1.5e+3', '.inf', '.NaN'],
  ...['1.'],
  ...['2026-11-21', '2026-11-21T10:00:00Z', '2026-11-21 10:00:00.5 +1', '+1', '-0', '_1', '1__0', '0.1.2'],
  ...['a: b', 'a #b', '# a', '%a', '@a', '`a', '!a', '&a', '*a', '|', '>', ' a', 'a ', 'a\t', '\ta', 'a:'],
  ...['a,b'],
];

/** A text in the forms that PyYAML has written and read: `source` is its own, the others are written here. */
export interface RecordedText {
  readonly text: string;
  /** `{run: text, num_nodes: 1}` by PyYAML. */
  readonly source: string;
  /** The same with another `num_nodes`. */
  readonly changed: string;
  /** `{run: text}` from code. */
  readonly written: string;
}

export const CORPUS = new URL('../../fixtures/pyyaml-texts.json', import.meta.url);

/** Recorded and proven by `scripts.proof.test.ts`. */
export function corpus(): RecordedText[] {
  return JSON.parse(readFileSync(CORPUS, 'utf8')) as RecordedText[];
}
