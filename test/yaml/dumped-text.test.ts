import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { YamlDocument } from '../../src/yaml/document.ts';
import { readDumped } from '../../src/yaml/dumped-text.ts';

function isRead(text: string, maxTokens = 1000): boolean {
  return readDumped(text, maxTokens) !== undefined;
}

interface Tree {
  a: object;
  b: unknown[];
}

function changedText(text: string, change: (value: Tree) => void): string {
  const document = YamlDocument.parse(text);
  const value = document.value as Tree;
  change(value);
  return document.with(value).toString();
}

const bodies = new URL('../fixtures/skypilot-wire/', import.meta.url);

describe('the fast reader', () => {
  it.each(['launch-server.body', 'launch-client.body', 'jobs-launch-server.body', 'validate-server.body'])(
    'reads task, configuration and user of %s',
    (name) => {
      const sent = JSON.parse(JSON.parse(readFileSync(new URL(name, bodies), 'utf8'))) as Record<
        string,
        string
      >;
      for (const text of [sent.task, sent.skypilot_config, sent.user].filter((one) => one)) {
        expect({ text, isRead: isRead(text ?? '') }).toMatchObject({ isRead: text?.trim() !== '{}' });
      }
    },
  );

  it.each([
    ...[
      '',
      '{}\n',
      'a\n',
      '# c\na: 1\n',
      'a: 1 # c\n',
      'a:\n',
      'a: \n',
      'a: [1]\n',
      'a: {b: 1}\n',
      '-\n',
      '- \n',
    ],
    ...['a: &x 1\n', 'a: *x\n', 'a: !!str 1\n', '<<: 1\n', 'a: <<\n', 'a: =\n', '? a\n: 1\n', 'a: |\n  b\n'],
    ...['a: 1\na: 2\n', "8080: 1\n'8080': 2\n", 'yes: 1\n', '~: 1\n', '1.5: 1\n', '010: 1\n', '"a\\n": 1\n'],
    ...[
      'a: 1\r\n',
      'a:\t1\n',
      'a: é\n',
      '\ufeffa: 1\n',
      'a: b\u0085\n',
      '---\na: 1\n',
      'a: 1\n...\n',
      '%YAML 1.1\n',
    ],
    ...['a: b: c\n', 'a: b:\n', 'a: b \n', 'a: "b" c\n', "a: 'b\n", 'a: "b\n', "a: 'b\nc'\n", 'a: "\\q"\n'],
    ...['a: b\n   c: d\n', ' a: 1\n', 'a: 1\n b: 2\n', 'a:\n  b: 1\n c: 2\n', '- a\nb: 1\n', 'a: 1\n- b\n'],
    ...[
      'a: b\n\n  c\n',
      'a:\n  b: 1\n\n  c: 2\n',
      '\na: 1\n',
      'a: "b\\\n\n  c"\n',
      'a: 0x_\n',
      'a: -\n',
      'a: - b\n',
    ],
  ])('leaves %j to the other reader', (text) => {
    expect(isRead(text)).toBe(false);
  });

  it('stops at the number of tokens, and at the depth, that the other reader allows', () => {
    const deep = (levels: number) => `${'- '.repeat(levels)}a\n`;
    expect([isRead('a: 1\n', 8), isRead('a: 1\n', 7)]).toEqual([true, false]);
    expect([isRead(deep(100)), isRead(deep(101))]).toEqual([true, false]);
    expect(() => YamlDocument.parse(deep(101))).toThrow('nested');
    expect(() => YamlDocument.parse('a: 1\n'.repeat(9), 40)).toThrow('tokens');
  });
});

describe('a text in the manner of PyYAML that is changed', () => {
  const TEXT =
    'b:\n- x\n- k: \'one\n\n    two\'\n  l: long\n    text\n- y\n\na:\n  c: 012\n  d: {}\n\nz: "\\u2028\\\n  \\ s"\n';

  it('keeps every other character', () => {
    const set = (change: (value: Tree) => void) => changedText(TEXT, change);
    expect(set((value) => Object.assign(value, { e: 1 }))).toBe(`${TEXT}e: 1\n`);
    expect(set((value) => Object.assign(value.a, { c: 11 }))).toBe(TEXT.replace('012', '11'));
    expect(set((value) => Object.assign(value.a, { e: 'yes' }))).toBe(TEXT.replace('{}', '{}\n  e: "yes"'));
    expect(set((value) => Object.assign(value.a, { d: { e: [1] } }))).toBe(
      TEXT.replace('d: {}', 'd:\n    e:\n      - 1'),
    );
    expect(set((value) => Object.assign(value, { a: {} }))).toBe(
      TEXT.replace('a:\n  c: 012\n  d: {}', 'a: {}'),
    );
    expect(set((value) => Reflect.deleteProperty(Object(value.b[1]), 'k'))).toBe(
      TEXT.replace("k: 'one\n\n    two'\n  ", ''),
    );
    expect(set((value) => value.b.push({ n: 1, o: 2 }))).toBe(TEXT.replace('- y\n', '- y\n- n: 1\n  o: 2\n'));
    expect(set((value) => value.b.shift())).toBe(TEXT.replace('- x\n', ''));
    expect(set((value) => Reflect.deleteProperty(value, 'b'))).toBe(TEXT.slice(TEXT.indexOf('a:')));
  });

  it('keeps the end of a block text, wherever it is put', () => {
    for (const script of ['x\n', 'x\n\n', 'x\n\ny', 'x\n\n\n']) {
      for (const [text, path] of [
        ['a: 1\n\nb: 2\n', 'a'],
        ['a: 1\n\nb: 2', 'b'],
        ['a: 1\n\nb: 2\n\n', 'b'],
      ] as const) {
        const result = changedText(text, (value) => Object.assign(value, { [path]: script }));
        expect(YamlDocument.parse(result).value).toEqual({ a: 1, b: 2, [path]: script });
      }
    }
  });
});
