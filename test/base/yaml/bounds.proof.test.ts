/** Texts of YAML that are too large, too deep or too wide are refused before they cost anything. */
import { describe, expect, it } from 'vitest';
import { YamlDocument } from '../../../src/base/yaml/document.ts';
import { YamlError } from '../../../src/base/yaml/tree.ts';

const LETTERS = [...'abcdefghijklmnop'];

/** Each line is nine times as large as the line before. */
function aliasBomb(item: (previous: string) => string): string {
  const lines = LETTERS.slice(1).map((name, index) => `${name}: &${name} ${item(`*${LETTERS[index]}`)}`);
  return ['a: &a {secret: 1}', ...lines].join('\n');
}

function indented(levels: number): string {
  return Array.from({ length: levels }, (_, level) => `${' '.repeat(level)}secret:`).join('\n');
}

describe('a text that is too large or too deep', () => {
  it.each([
    ['a million lines', 'secret: 1\n'.repeat(1_000_000), 'tokens'],
    ['150,000 directives', '%YAML 1.1\n'.repeat(150_000), 'tokens'],
    ['100,000 open brackets', '['.repeat(100_000), 'nested'],
    ['50,000 mappings in mappings', '{secret: '.repeat(50_000), 'nested'],
    ['100,000 lists on a line', '- '.repeat(100_000), 'nested'],
    ['100,000 questions', '? '.repeat(100_000), 'nested'],
    ['2,000 levels of lines', indented(2000), 'nested'],
    ['101 brackets', `${'['.repeat(102)}${']'.repeat(102)}`, 'nested'],
    ['an alias bomb', aliasBomb((name) => `[${Array(9).fill(name).join(', ')}]`), 'aliases'],
    ['15,000 aliases', `- &a [secret, 1]\n${'- *a\n'.repeat(15_000)}`, 'aliases'],
    ['a list within a list within a list by aliases', nestedAliases(), 'aliases'],
    ['a number of 300,000 digits', `a: ${'9'.repeat(300_000)}`, 'thousands'],
    ['a time of 200,000 parts', `a: 1${':1'.repeat(200_000)}`, 'thousands'],
    ['a quote that never ends', `a: "${'secret\n '.repeat(100_000)}`, 'missing char'],
  ])('is refused within the timeout: %s', { timeout: 600_000 }, (_, text, reason) => {
    let thrown: unknown;
    try {
      YamlDocument.parse(text);
    } catch (caught) {
      thrown = caught;
    }
    expect(thrown).toBeInstanceOf(YamlError);
    const { message } = thrown as YamlError;
    expect(message).toContain(reason);
    expect(message.length).toBeLessThan(150);
    expect(message).not.toContain('secret');
  });

  function nestedAliases(): string {
    return Array.from({ length: 2000 }, (_, index) => `- &a${index} [${index ? `*a${index - 1}` : ''}]`).join(
      '\n',
    );
  }

  it('is not one of 100 levels, or one that merges many equal names', () => {
    expect(YamlDocument.parse(`${'['.repeat(100)}${']'.repeat(100)}`).value).toBeInstanceOf(Array);
    const merged = YamlDocument.parse(aliasBomb((name) => `{<<: [${name}, ${name}]}`)).value;
    expect((merged as Record<string, unknown>).p).toEqual({ secret: 1 });
  });

  it('is refused from code too', () => {
    let value: unknown = 1;
    for (let level = 0; level < 150; level += 1) {
      value = [value];
    }
    expect(() => YamlDocument.from(value).value).toThrow(YamlError);
  });

  it('is not a list in which every item changes', () => {
    const before = Array.from({ length: 5000 }, (_, index) => index);
    const after = [...before.map((item) => item + 1_000_000), 1];
    expect(YamlDocument.from(before).with(after).value).toEqual(after);
  });
});

describe('a message never shows a part of the text', () => {
  it.each([
    ...['secret: [', 'secret: "', "secret: 'x", 'secret: @secret', 'secret: "\\q secret"', 'a: b: secret'],
    ...['- a\n secret: 1', 'secret\nsecret: 1', 'a: *secret', 'a: !secret secret', 'a: &secret: secret'],
    ...['{secret secret: , , }', '%TAG secret\n---\na', '%secret secret secret\n--- secret: 1'],
    ...['a: |secret\n  b', 'a:\n\tsecret: 1', 'secret\u0007', '? [secret]\n: 1', 'a: 0x_ # secret'],
    ...['secret: =', '<<: secret'],
  ])('%j', (text) => {
    expect(() => YamlDocument.parse(text)).toThrow(YamlError);
    expect(() => YamlDocument.parse(text)).not.toThrow(/secret/);
  });
});
