import { describe, expect, it } from 'vitest';
import { YamlDocument } from '../../../src/base/yaml/document.ts';
import { YamlError } from '../../../src/base/yaml/tree.ts';

function mistakeOf(text: string): YamlError {
  try {
    YamlDocument.parse(text);
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(YamlError);
    return thrown as YamlError;
  }
  throw new Error(`${JSON.stringify(text)} is not refused`);
}

describe('a text that PyYAML would read differently', () => {
  it.each([
    ['\u0085', 'a comment'],
    ['\u2028', 'a comment'],
    ['\u2029', 'a comment'],
    ['\r', 'a comment'],
  ])('is refused for %j, which ends %s only in PyYAML', (character) => {
    expect(mistakeOf(`a: 1\nb: 2 # c${character}admin_policy: x\n`).line).toBe(2);
  });

  it.each([
    '\0',
    '\u0007',
    '\u001b',
    '\u007f',
    '\u0080',
    '\ufffe',
    '\uffff',
    '\ud800',
    'a\ufeff',
    '\n\ufeff',
  ])('is refused for %j, which PyYAML refuses', (character) => {
    expect(mistakeOf(`x${character}`).reason).toBe(
      'a control character or an unusual line break, which must be escaped',
    );
    expect(mistakeOf(`"x${character}"`).reason).toContain('control character');
  });

  it('may have a byte order mark, CRLF, and any other character', () => {
    expect(YamlDocument.parse('\ufeffa: 1\r\nb: é\u00a0😀\r\n').value).toEqual({ a: 1, b: 'é\u00a0😀' });
    expect(YamlDocument.parse('\ufeff- - a\n  - b\n- c\n').value).toEqual([['a', 'b'], 'c']);
    expect(YamlDocument.parse('\ufeff- - ').value).toEqual([[null]]);
    expect(() => YamlDocument.parse('\ufeff\ufeffa: 1')).toThrow(YamlError);
  });

  it('is refused for a block text that is not indented', () => {
    for (const text of ['|\n#', '|\r\n#', '>\na\n b\n', '# c\n|\n\ny']) {
      expect(() => YamlDocument.parse(text), text).toThrow('a block text that is not indented');
    }
    expect(YamlDocument.parse('|\n a\n  b\n#c\n').value).toBe('a\n b\n');
  });

  it('is refused for several null names, which are equal in PyYAML', () => {
    for (const text of ['null:\r\n?', '~: 1\nnull: 2', '{? , null: 1}', 'a: {~: 1, Null: 2}']) {
      expect(() => YamlDocument.parse(text), text).toThrow('two names that are null');
    }
    expect(YamlDocument.parse('null: 1\n"null": 2').value).toEqual({ null: 2 });
  });

  it.each([
    'a: ! 12',
    'a: !own x',
    'a: !!float 1',
    'a: !!int x',
    'a: !!int 1.0x',
    'a: !!bool 1',
    'a: !!null x',
    'a: !!str [b]',
    'a: !!map [b]',
    'a: !!seq {b: 1}',
    'a: !!timestamp x',
    'a: !!python/name:os.system x',
  ])('is refused for a tag that does not match its value: %s', (text) => {
    expect(mistakeOf(`# first\n${text}`)).toMatchObject({
      reason: 'a tag does not match the value after it',
      line: 2,
    });
  });

  it.each(['&a:b c', 'x: &ä 1', '- &a 1\n- *a:b'])('is refused for the name of an anchor: %s', (text) => {
    expect(mistakeOf(text).reason).toContain('an anchor has characters in its name');
  });

  it.each(['[?a]', '{?a: b}', '[[b], ?a]'])('is refused for a question mark between brackets: %s', (text) => {
    expect(mistakeOf(text).reason).toBe('an unquoted text between brackets begins with "?"');
  });

  it('is refused for a key between brackets that is too long for PyYAML', () => {
    expect(mistakeOf(`{${'k'.repeat(1025)}: 1}`).reason).toContain('1024');
    expect(YamlDocument.parse(`{${'k'.repeat(1024)}: 1}`).value).toEqual({ ['k'.repeat(1024)]: 1 });
  });
});
