import { describe, expect, it } from 'vitest';
import { YamlDocument } from '../../src/yaml/document.ts';

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
  it('is after the last character at the end', () => {
    expect(writtenAt('a:\n  text: ab', 2).place).toBe('2:11');
    expect(writtenAt("a:\n  text: 'ab'", 2).place).toBe('2:12');
    expect(writtenAt('a:\n  text: >-\n    ab\n    cd\n', 5).place).toBe('4:7');
  });
});
