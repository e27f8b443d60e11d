import { describe, expect, it } from 'vitest';
import { YamlDocument } from '../../../src/base/yaml/document.ts';
import { YamlError } from '../../../src/base/yaml/tree.ts';
import { HAND_WRITTEN } from './samples.ts';

function changedText(text: string, value: unknown): string {
  return YamlDocument.parse(text).with(value).toString();
}

describe('an unchanged document', () => {
  it.each(HAND_WRITTEN)('is written as it was read: %j', (text) => {
    const document = YamlDocument.parse(text);
    expect(document.toString()).toBe(text);
    expect(document.with(structuredClone(document.value))).toBe(document);
  });

  it.each(['a: 1.0 # one\n---\nb: 2\n', 'a: 1\n---\n', 'a: 1\n--- # c\n', 'a: 1\n...\n---\n'])(
    'must be the only one, as for safe_load: %j',
    (text) => {
      expect(() => YamlDocument.parse(text)).toThrow(/^line [23]: another document begins here$/);
    },
  );

  it.each(['', '# only\n', '---\n', '\n\n'])('is null when it is empty: %j', (text) => {
    expect(YamlDocument.parse(text).value).toBeNull();
  });
});

describe('the value of a document', () => {
  it('has its members in their order, whatever their names', () => {
    const value = YamlDocument.parse('b: 1\n__proto__: {x: 1}\nconstructor: 2\na: 3\n').value as object;
    expect(Object.keys(value)).toEqual(['b', '__proto__', 'constructor', 'a']);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  });

  it('has the last of two members with the same name', () => {
    expect(YamlDocument.parse('a: 1\nb: 2\na: 3\n').value).toEqual({ a: 3, b: 2 });
    expect(YamlDocument.parse("8080: x\n'8080': y\n").value).toEqual({ '8080': 'y' });
  });

  it('has the names as they are written', () => {
    expect(YamlDocument.parse('yes: 1\n0x1F: 2\n~: 3\n2026-11-21: 4\n"q": 5\n').value).toEqual({
      yes: 1,
      '0x1F': 2,
      '~': 3,
      '2026-11-21': 4,
      q: 5,
    });
  });

  it('can be read as the texts that are written', () => {
    const text = "a: 012\nb: yes\nc: '012'\nd: ~\ne:\nf: [1.50, 2026-11-21]\ng: |\n  x\n";
    expect(YamlDocument.parse(text).texts).toEqual({
      a: '012',
      b: 'yes',
      c: '012',
      d: '',
      e: '',
      f: ['1.50', '2026-11-21'],
      g: 'x\n',
    });
  });

  it.each(['? [a]\n: 1', '{a: 1}: 2', '? {a: 1}\n: 2'])('has only scalars as names: refuses %j', (text) => {
    expect(() => YamlDocument.parse(text)).toThrow(new YamlError('a key of a mapping is not a scalar'));
  });
});

describe('a line', () => {
  const document = YamlDocument.parse('# c\na: 1\nb:\n  - x\n  - y: 2\n    z:\n      3\n');

  it.each([
    [['b'], 3],
    [['b', 0], 4],
    [['b', 1, 'y'], 5],
    [['b', 1, 'z'], 6],
    [['b', 1, 'none'], 5],
    [['none'], 2],
    [[], 2],
  ])('is that of %j, or of the nearest node', (path, line) => {
    expect(document.lineOf(path)).toBe(line);
  });

  it('is in the message of an error', () => {
    expect(() => YamlDocument.parse('a: 1\nb: [\n')).toThrow(/^line \d: /);
  });
});

describe('a changed document', () => {
  it('keeps unchanged parts as they are written', () => {
    const text =
      "# head\nb: 012 # octal\na: 1.50\nbig: 123456789012345678901234567890\nlong: 0.1000000000000000055\n8080: x\n'8080': y\nd: 2026-11-21\nrun: |\n  echo a\n    echo b\n\nn: 1\n";
    const value = YamlDocument.parse(text).value as object;
    expect(changedText(text, { ...value, n: 2 })).toBe(text.replace('n: 1\n', 'n: 2\n'));
  });

  it('loses all members of a removed name', () => {
    expect(changedText('a: 1\nb: 2\na: 3\n', { b: 2 })).toBe('b: 2\n');
  });

  it('changes the last of two members with the same name', () => {
    expect(changedText("8080: x\n'8080': y\n", { 8080: 'z' })).toBe("8080: x\n'8080': z\n");
  });

  it.each([
    ['an item behind', [1, 10, '2026-11-21', 4], '- 1.0\n- 012\n- 2026-11-21\n- 4\n'],
    ['an item before', [0, 1, 10, '2026-11-21'], '- 0\n- 1.0\n- 012\n- 2026-11-21\n'],
    ['one less, one more', [10, '2026-11-21', 4], '- 012\n- 2026-11-21\n- 4\n'],
    ['another', [1, 'x', '2026-11-21'], '- 1.0\n- x\n- 2026-11-21\n'],
    ['none', [], '[]\n'],
  ])('keeps the remaining items of a list: %s', (_, value, text) => {
    expect(changedText('- 1.0\n- 012\n- 2026-11-21\n', value)).toBe(text);
  });

  it('keeps the equal parts of a changed item, although another was added', () => {
    const text = '- a: 1.0\n  b: 2026-11-21\n- c: 012\n';
    const value = [{ a: 1, b: '2026-11-21', new: true }, { c: 10 }, { d: 1 }];
    expect(changedText(text, value)).toBe('- a: 1.0\n  b: 2026-11-21\n  new: true\n- c: 012\n- d: 1\n');
  });

  it('reads its own text back unchanged', () => {
    const value = { __proto__: null, toString: ['x', { '': '\u2028' }], '1': 1n << 70n };
    const plain = JSON.parse('{"__proto__": {"a": 1}}') as object;
    expect(YamlDocument.from(plain).value).toEqual(plain);
    expect(YamlDocument.from({ ...value }).value).toEqual({
      toString: ['x', { '': '\u2028' }],
      '1': 1n << 70n,
    });
  });

  it('format() writes the same value in our own layout', () => {
    expect(YamlDocument.parse('a:   [1.0,2]\nb: &b 012\nc: *b\n').format()).toBe(
      'a: [ 1.0, 2 ]\nb: 012\nc: 012\n',
    );
    expect(YamlDocument.parse('|\n a\n b\n').format()).toBe('"a\\nb\\n"\n');
  });
});

/** The character that is written at the place of the one that is read. */
function writtenAt(yaml: string, offset: number): { place: string; character: string } {
  const { line, column } = YamlDocument.parse(yaml).placeOf(['a', 'text'], offset);
  return { place: `${line}:${column}`, character: yaml.split(/\r?\n/)[line - 1]?.charAt(column - 1) ?? '' };
}

describe('the place of a character in a YAML text', () => {
  it.each([
    ['plain', 'a:\n  text: lease.x < now', '2:17', '<'],
    ['plain on several lines', 'a:\n  text: lease.x\n    < now', '3:5', '<'],
    ['quoted', "a: {text: 'lease.x < now'}", '1:20', '<'],
    ['quoted with quotes', "a:\n  text: 'p == ''x'' < now'", '2:21', '<'],
    ['double quoted with escapes', 'a:\n  text: "p == \\"x\\" \\x3c now"', '2:21', '\\'],
    ['double quoted with line breaks', 'a:\n  text: "p\\n == \\\n    x < now"', '3:7', '<'],
    ['literal', 'a:\n  text: |\n    lease.x\n      < now\n', '4:7', '<'],
    ['folded', 'a:\n  text: >- # comment\n    lease.x\n\n    < now\n', '5:5', '<'],
  ])('of a text that is %s', (_, yaml, place, character) => {
    const { value } = YamlDocument.parse(yaml);
    const text = (value as { a: { text: string } }).a.text;
    expect(writtenAt(yaml, text.indexOf('<'))).toEqual({ place, character });
  });
});
