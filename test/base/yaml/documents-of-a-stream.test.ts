import { describe, expect, it } from 'vitest';
import { YamlDocument } from '../../../src/base/yaml/document.ts';
import { YamlError } from '../../../src/base/yaml/tree.ts';

function values(text: string): unknown[] {
  return YamlDocument.parseAll(text).map(({ value }) => value);
}

function refusal(text: string): unknown {
  try {
    YamlDocument.parseAll(text);
  } catch (thrown) {
    return thrown;
  }
  return undefined;
}

describe('the documents of a text', () => {
  it.each<[string, string, unknown[]]>([
    ['one', 'a: 1\n', [{ a: 1 }]],
    ['one without the end of its line', 'a: 1', [{ a: 1 }]],
    ['two', 'a: 1\n---\nb: 2\n', [{ a: 1 }, { b: 2 }]],
    ['with "---" first', '---\na: 1\n---\nb: 2\n', [{ a: 1 }, { b: 2 }]],
    ['with "---" last', 'a: 1\n---\n', [{ a: 1 }]],
    ['that end with "..."', 'a: 1\n...\n---\nb: 2\n...\n', [{ a: 1 }, { b: 2 }]],
    ['with "..." alone between them', 'a: 1\n...\nb: 2\n', [{ a: 1 }, { b: 2 }]],
    ['on the line of "---"', '--- {a: 1}\n--- [b]\n--- c\n', [{ a: 1 }, ['b'], 'c']],
    ['with comments at their ends', '# 0\na: 1 # 1\n# 2\n--- # 3\n# 4\nb: 2\n', [{ a: 1 }, { b: 2 }]],
    ['with CRLF', 'a: 1\r\n---\r\nb: 2\r\n', [{ a: 1 }, { b: 2 }]],
    ['after a byte order mark', '\ufeffa: 1\n---\nb: 2\n', [{ a: 1 }, { b: 2 }]],
    [
      'with texts that contain "---"',
      'a: "x\n\n  --- y"\nb: |\n  ---\n---\nc: 1\n',
      [{ a: 'x\n--- y', b: '---\n' }, { c: 1 }],
    ],
    [
      'with anchors of their own',
      'a: &x 1\nb: *x\n---\na: &x 2\nb: *x\n',
      [
        { a: 1, b: 1 },
        { a: 2, b: 2 },
      ],
    ],
    [
      'with versions and tags',
      '%YAML 1.1\n---\na: yes\n...\n%TAG ! tag:x,2026:\n---\nb: 012\n',
      [{ a: true }, { b: 10 }],
    ],
  ])('%s', (_, text, expected) => {
    expect(values(text)).toEqual(expected);
  });

  it('are none when all are empty', () => {
    const comments = ['# only\n', '---\n# a\n---\n# b\n...\n', '%YAML 1.1\n---\n'];
    for (const text of ['', '\n\n', '---\n', '---\n---\n', '...\n', ...comments]) {
      expect(values(text), text).toEqual([]);
    }
  });

  it('are left out when they are empty, but not when they are null', () => {
    expect(values('---\n# none\n---\na: 1\n---\n---\n\nb: 2\n---\n')).toEqual([{ a: 1 }, { b: 2 }]);
    expect(values('--- ~\n--- null\n--- ""\n--- {}\n--- 0\n')).toEqual([null, null, '', {}, 0]);
  });

  it('are the same as each alone: values, texts, and as written', () => {
    const parts = ['a: 1.0 # one\n', 'b: [012, yes]\n', 'c: |\n  x\n'];
    const documents = YamlDocument.parseAll(parts.join('---\n'));
    const alone = parts.map((part) => YamlDocument.parse(part));
    expect(documents.map(({ value }) => value)).toEqual(alone.map(({ value }) => value));
    expect(documents.map(({ texts }) => texts)).toEqual(alone.map(({ texts }) => texts));
    expect(documents.map((document) => YamlDocument.parse(document.toString()).value)).toEqual(
      alone.map(({ value }) => value),
    );
  });
});

describe('a repeated name', () => {
  it('is reported with its line, in any mapping of any document', () => {
    const [first, second] = YamlDocument.parseAll('a: 1\nb: [{c: 1,\n  c: 2}]\n---\nd: 1\n"d": 2\nd: 3\n');
    expect(first?.repetitions()).toEqual([{ name: 'c', line: 3 }]);
    expect(second?.repetitions()).toEqual([
      { name: 'd', line: 6 },
      { name: 'd', line: 7 },
    ]);
    expect(YamlDocument.parse('a: {b: 1}\nb: {<<: {b: 2}, b: 3}\n').repetitions()).toEqual([]);
  });

  it.each([
    ['beside a merge key', 'x: &x {y: 0}\nb: {<<: *x,\n  a: 1,\n  a: 2}\n', 'a', 4],
    ['in a mapping that is merged', 'b: {<<: {\n  a: 1,\n  a: 2}}\n', 'a', 3],
    ['in a mapping of a merged list', 'b: {<<: [{\n  a: 1,\n  a: 2}]}\n', 'a', 3],
    ['once, when an alias repeats its mapping', 'b: &b {a: 1,\n  a: 2}\nc: *b\n', 'a', 2],
    ['when an alias is the name', '&a a: 1\nb: {a: 2}\n*a : 3\n', 'a', 3],
    ['when it is the merge key', 'b: {<<: {a: 1},\n  <<: {a: 2}}\n', '<<', 2],
  ])('is reported %s', (_, text, name, line) => {
    expect(YamlDocument.parse(text).repetitions()).toEqual([{ name, line }]);
  });
});

describe('a line in one of several documents', () => {
  const TEXT =
    '# 1\n---\n# 3\na: 1\nb:\n- x\n- y: z\n...\n\n%YAML 1.1\n---\n# 12\n\nc: 1\nd: {e: 1,\n  f: 2}\n';
  const [first, second] = YamlDocument.parseAll(TEXT);

  it.each<[number, (string | number)[]]>([
    [4, []],
    [7, ['b', 1, 'y']],
    [4, ['no']],
  ])('is counted from the start of the text in the first: %i for %j', (line, path) => {
    expect(first?.lineOf(path)).toBe(line);
  });

  it.each<[number, (string | number)[]]>([
    [14, []],
    [16, ['d', 'f']],
    [15, ['d', 'no']],
  ])('and in the second: %i for %j', (line, path) => {
    expect(second?.lineOf(path)).toBe(line);
  });

  it('of a changed document is counted in its new text', () => {
    expect(second?.with({ c: 2, d: 3 }).lineOf(['d'])).toBeLessThan(15);
  });
});

describe('a mistake in one of several documents', () => {
  it.each<[string, string, number]>([
    ['a bracket that is not closed, at the end', 'a: 1\n---\nb: 2\n---\nc: [1,\n  2\n', 7],
    ['a tab as indent', 'a: 1\n---\nb:\n\tc: 1\n---\nd: 1\n', 4],
    ['a tag that does not match its value', 'a: 1\n---\nb: 1\nc: !!int x\n', 4],
    ['a control character', 'a: 1\n---\nb: \u0007\n', 3],
    ['an unknown tag', 'a: 1\n---\nb: !x y\n', 3],
  ])('has its line in the whole text: %s', (_, text, line) => {
    const thrown = refusal(text);
    expect(thrown).toBeInstanceOf(YamlError);
    expect((thrown as YamlError).line).toBe(line);
  });

  it('is an alias to an anchor of another document', () => {
    expect(refusal('a: &x 1\n---\nb: *x\n')).toBeInstanceOf(YamlError);
  });
});

describe('the limit', { timeout: 120_000 }, () => {
  /** Two tokens each. */
  const comments = (count: number) => '#\n'.repeat(count);

  it('of tokens applies to each document', () => {
    const some = `a: 1\n${comments(100_000)}`;
    expect(values([some, some].join('---\n'))).toHaveLength(2);
    expect(refusal(`a: 1\n---\nb: 1\n${comments(130_000)}`)).toEqual(
      new YamlError('it has more than 250000 tokens'),
    );
  });
});
