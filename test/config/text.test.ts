import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { describeOptions, type Option } from '../../src/config/option.ts';
import { assignmentText, optionsTable, sampleText, valueText } from '../../src/config/text.ts';
import { configuration, effective, resolved } from './helpers.ts';

const schema = z.object({
  limit: z.int().min(-1).default(-1).meta({ description: 'How long a lease may be.', unit: 'seconds' }),
  tries: z.int().optional().meta({ description: 'How often.' }),
  token: z.string().default('').meta({ description: 'What is sent | shown.', secret: true }),
  names: z.array(z.string()).default(['a', 'b']).meta({ description: 'Some names.' }),
  limits: z.record(z.string(), z.int()).default({ a: 1, b: 2 }).meta({ description: 'Some limits.' }),
  odd: z.string().default(' "$x" # ').meta({ description: 'Odd text.' }),
});

/** Every option of the package. */
async function allOptions(): Promise<Option[]> {
  const { settings } = await configuration('[enforcement]\n');
  return settings.map(({ option }) => option);
}

describe('a value as text', () => {
  it.each([
    [60, '60'],
    [true, 'true'],
    ['text', 'text'],
    [['a', 'b'], 'a,b'],
    [[], ''],
    [{ a: 1, b: 2 }, 'a:1,b:2'],
    [{}, ''],
    [undefined, ''],
    [null, ''],
  ])('%j is written as it is read', (value, text) => {
    expect(valueText(value)).toBe(text);
  });

  it.each([
    ['limit', 60, 'limit = 60'],
    ['token', '', 'token ='],
    ['tries', undefined, '# tries ='],
    ['odd', ' a', 'odd = " a"'],
    ['odd', '$x', 'odd = $$x'],
    ['odd', 'a\nb', 'odd = a\n    b'],
  ])('follows its name: %s = %j', (name, value, text) => {
    expect(assignmentText(name, value)).toBe(text);
  });

  it('is read back as the same value', async () => {
    const values = { limit: 60, token: ' #;"$y" ', names: ['c'], limits: { c: 3 }, odd: "'q'" };
    const lines = Object.entries(values).map(([name, value]) => assignmentText(name, value));
    const { settings, problems } = await resolved(schema, lines.join('\n'));
    expect(problems).toEqual([]);
    expect(Object.fromEntries(settings.map(({ option, value }) => [option.name, value]))).toEqual({
      ...values,
      tries: undefined,
    });
  });
});

describe('a sample', () => {
  it('has help, expected value and default of every option in comments', () => {
    expect(sampleText(describeOptions('s', schema))).toBe(`[s]

# How long a lease may be.
# Expected: a whole number of seconds or -1
# Default: -1
#limit = -1

# How often.
# Expected: a whole number
# Default: not set
#tries =

# What is sent | shown.
# Expected: text (a secret)
# Default: empty
#token =

# Some names.
# Expected: a list, with commas between its items
# Default: a,b
#names = a,b

# Some limits.
# Expected: name:value pairs with commas between them, each value a whole number
# Default: a:1,b:2
#limits = a:1,b:2

# Odd text.
# Expected: text
# Default: " "$$x" # "
#odd = " "$$x" # "
`);
  });

  it('wraps long help without losing a word', () => {
    const description = Array.from({ length: 60 }, (_, index) => `word${index}`).join(' ');
    const long = z.object({ a: z.string().default('').meta({ description }) });
    const help = sampleText(describeOptions('s', long))
      .split('\n')
      .filter((line) => line.startsWith('# word'));
    expect(help.length).toBeGreaterThan(3);
    expect(help.every((line) => line.length <= 100)).toBe(true);
    expect(help.map((line) => line.slice(2)).join(' ')).toBe(description);
  });

  it('has every section of the options', () => {
    const options = [...describeOptions('s', schema), ...describeOptions('t', schema)];
    expect(sampleText(options).match(/^\[.*\]$/gm)).toEqual(['[s]', '[t]']);
  });

  it('of the package sets nothing, and without the comment signs the defaults', async () => {
    const options = await allOptions();
    const sample = sampleText(options);
    expect((await configuration(sample)).settings.every(({ origin }) => origin.kind === 'default')).toBe(
      true,
    );

    const uncommented = sample.replace(
      /^#(\w+ = .+|(?:\w+_filters|\w+_token|\w+_projects|filters_path) =)$/gm,
      '$1',
    );
    expect(uncommented).not.toBe(sample);
    const read = await configuration(uncommented);
    expect(read.problems.filter(({ severity }) => severity === 'error')).toEqual([]);
    for (const option of options) {
      expect(effective(read, option.name, option.section), option.name).toEqual(option.default);
    }
  });
});

describe('the table of the options', () => {
  it('has a row per option: name, expected value, default, meaning', () => {
    expect(optionsTable(describeOptions('s', schema))).toBe(`### [s]

| option | expected | default | meaning |
| --- | --- | --- | --- |
| \`limit\` | a whole number of seconds or -1 | -1 | How long a lease may be. |
| \`tries\` | a whole number | not set | How often. |
| \`token\` | text (a secret) | empty | What is sent \\| shown. |
| \`names\` | a list, with commas between its items | a,b | Some names. |
| \`limits\` | name:value pairs with commas between them, each value a whole number | a:1,b:2 | Some limits. |
| \`odd\` | text |  "$x" #  | Odd text. |
`);
  });

  it('has every option of the package, as the sample does, with help', async () => {
    const options = await allOptions();
    const [table, sample] = [optionsTable(options), sampleText(options)];
    expect(options.length).toBeGreaterThan(20);
    for (const { name, help } of options) {
      expect(help, name).toMatch(/^[A-Z].*[.]$/);
      expect(table).toContain(`| \`${name}\` |`);
      expect(sample).toMatch(new RegExp(`^#${name} =`, 'm'));
    }
  });
});
