/** blazar.conf in YAML: the same options and types, and mistakes with their lines. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { describeOptions } from '../../src/config/option.ts';
import { resolve } from '../../src/config/resolve.ts';
import { readSources } from '../../src/config/sources.ts';
import { readConfiguration } from '../../src/enforcement/configuration.ts';
import { configFile, configuration, effective, service, shown } from './helpers.ts';

const schema = z.object({
  limit: z.int().min(-1).default(-1),
  tries: z.int().optional(),
  rate: z.number().default(1),
  on: z.boolean().default(false),
  names: z.array(z.string()).default([]),
  limits: z.record(z.string(), z.int()).default({}),
  labels: z.record(z.string(), z.string()).default({}),
  text: z.string().default('plain'),
});

async function resolved(text: string) {
  const configFiles = [configFile(text, 'x.yaml')];
  const { layers, problems } = await readSources({ configFiles, environment: {} });
  const resolution = resolve(layers, describeOptions('s', schema));
  return { ...resolution, problems: shown([...problems, ...resolution.problems]) };
}

/** The value of the option that the line sets in a section `s`. */
async function value(line: string): Promise<unknown> {
  const resolution = await resolved(`s:\n  ${line}\n`);
  expect(resolution.problems).toEqual([]);
  return effective(resolution, line.slice(0, line.indexOf(':')), 's');
}

const problems = async (text: string) => (await resolved(text)).problems;

describe('a value in YAML', () => {
  it.each<[string, unknown]>([
    ['limit: 60', 60],
    ['limit: "+86_400"', 86_400],
    // Decimal, as in an INI file, unlike YAML 1.1, where it is octal.
    ['limit: 012', 12],
    ['tries:', undefined],
    ['rate: 1.5', 1.5],
    ['on: yes', true],
    ['on: "yes"', true],
    ['text: yes', 'yes'],
    ['text: 012', '012'],
    ['text: 2026-11-21', '2026-11-21'],
    ['text: null', ''],
    ['text: "a # b"', 'a # b'],
    ['text: |-\n    a\n    b', 'a\nb'],
    ['names: [a, 1, yes]', ['a', '1', 'yes']],
    ['names:\n  - a\n  - " b "', ['a', 'b']],
    ['names: a, b', ['a', 'b']],
    ['names:', []],
    ['limits: {a: 60, 1: -1}', { a: 60, 1: -1 }],
    ['limits: a:60, b:-1', { a: 60, b: -1 }],
    ['labels: {a: yes, b: 012, c: }', { a: 'yes', b: '012', c: '' }],
  ])('is read by the type of its option: %s', async (line, expected) => {
    expect(await value(line)).toEqual(expected);
  });

  const INTEGER = 'limit: expected a whole number or -1, got';
  const LIST = 'names: expected a list, with commas between its items, got';
  const PAIRS = 'limits: expected name:value pairs with commas between them, each value a whole number, got';
  it.each([
    ['limit: 1.5', 2, `${INTEGER} "1.5"`],
    ['limit:', 2, `${INTEGER} ""`],
    ['limit: [60]', 2, `${INTEGER} ["60"]`],
    ['on: maybe', 2, 'on: expected true or false, got "maybe"'],
    ['names: [[a]]', 2, `${LIST} [["a"]] (see item 1)`],
    ['names: [a, ""]', 2, `${LIST} ["a",""] (an item is empty; see item 2)`],
    ['names: ["a, b"]', 2, `${LIST} ["a, b"] (an item contains a comma; see item 1)`],
    ['limits:\n    a: 1\n    b: one day', 4, `${PAIRS} {"a":"1","b":"one day"} (see "b")`],
    ['limits:\n    a: 1\n    b: {c: 1}', 4, `${PAIRS} {"a":"1","b":{"c":"1"}} (see "b")`],
    [
      'limits:\n    a: 1\n    __proto__: 1',
      4,
      `${PAIRS} {"a":"1","__proto__":"1"} (__proto__ cannot be the name of a pair; see "__proto__")`,
    ],
    ['limits: {"a,b": 1}', 2, `${PAIRS} {"a,b":"1"} (a name is empty, or contains a comma; see "a,b")`],
    ['__proto__: 1', 2, '__proto__: unknown option'],
    ['text: http://user:hush@h/', undefined, ''],
    ['names: {a: "http://user:hush@h/"}', 2, `${LIST} {"a":"http://****@h/"}`],
  ])('is refused with its line: %s', async (line, at, problem) => {
    expect(await problems(`s:\n  ${line}\n`)).toEqual(
      at === undefined ? [] : [`x.yaml:${at}: [s] ${problem}`],
    );
  });

  it('may refer to other options with "$", in lists and mappings too', async () => {
    const { settings, problems: found } = await resolved(
      `DEFAULT: {host: far}\nother: {PORT: 8, names: [x, y]}\ns:\n  limit: 7\n  text: $host:\${other.PORT}/$$/\${other.names}\n  names: [$limit, "<$host>"]\n  limits: {a: $limit}\n`,
    );
    expect(found).toEqual([]);
    expect(effective({ settings }, 'text', 's')).toBe('far:8/$/x,y');
    expect(effective({ settings }, 'names', 's')).toEqual(['7', '<far>']);
    expect(effective({ settings }, 'limits', 's')).toEqual({ a: 7 });
  });

  it('cannot be used by "$" when it is a mapping', async () => {
    expect(await problems('s:\n  limits: {a: 1}\n  text: $limits\n')).toEqual([
      'x.yaml:3: [s] text: $limits cannot be used here: it is a mapping',
    ]);
  });
});

describe('a file in YAML', () => {
  it('may have no options: empty, a comment, empty sections', async () => {
    for (const text of ['', '# nothing\n', '---\n', '{}', 's:\n', 's: {}\nother: null\n']) {
      expect(await problems(text)).toEqual([]);
      const { emptyFiles } = await configuration('', { configFiles: [configFile(text, 'x.yaml')] });
      expect(emptyFiles).toHaveLength(1);
    }
  });

  const section = 'expected a section such as "enforcement:", with options below it';
  it.each([
    ['- s', 1, 'expected sections such as "enforcement:", with options below them'],
    ['just text', 1, 'expected sections such as "enforcement:", with options below them'],
    ['other:\n  a: 1\ns:\n  - limit', 3, section],
    ['s: text', 1, section],
    ['s: []', 1, section],
    ['__proto__: 5', 1, section],
    ['s:\n  limit: {', 2, 'expected YAML: bad indent'],
    ['s: {limit: *nothing}', 1, 'expected YAML: an alias has no anchor before it'],
    [`s: ${'['.repeat(200)}${']'.repeat(200)}`, 1, 'expected YAML: it is nested deeper than 100 levels'],
    ['s: {limit: 1}\n---\ns: {limit: 2}\n', 2, 'expected YAML: another document begins here'],
    ['s:\n  limit: 1\nt: {}\ns:\n  on: yes\n', 4, 'this name is repeated'],
    ['s:\n  limit: 1\n  on: yes\n  limit: 2\n', 4, 'this name is repeated'],
  ])('is refused with its line, and is not taken for empty: %j', async (text, line, problem) => {
    expect((await problems(text))[0]).toBe(`x.yaml:${line}: ${problem}`);
    const sources = { configFiles: [configFile(text, 'x.yaml')], environment: {} };
    const { problems: all } = await readConfiguration(sources, [service]);
    expect(shown(all, 'error')).toContain(`x.yaml:${line}: ${problem}`);
    // No warning that no filter is enforced: that is unknown.
    expect(shown(all, 'warning')).toEqual([]);
  });

  it('may use anchors, merge keys, and names that are equal only as numbers', async () => {
    const text = 'x: &x {limit: 5, on: yes}\ny: &y {1: a, 1.0: b, "01": c}\ns:\n  <<: *x\n  limit: 6\n';
    const resolution = await resolved(text);
    expect(resolution.problems).toEqual([]);
    expect(resolution.settings.slice(0, 4).map(({ value: one }) => one)).toEqual([6, undefined, 1, true]);
  });

  it('may be large, and no alias bomb', async () => {
    const read = async (text: string) =>
      shown((await readSources({ configFiles: [configFile(text, 'x.yaml')], environment: {} })).problems);
    expect(await read(`s: {a: ${'x'.repeat(1_000_000)}}`)).toEqual([]);
    const bomb = Array.from({ length: 30 }, (_, index) =>
      index === 0 ? 'a0: &a0 [x]' : `a${index}: &a${index} [*a${index - 1}, *a${index - 1}]`,
    );
    expect(await read(bomb.join('\n'))).toEqual([expect.stringMatching(/^x\.yaml:\d+: expected YAML: /)]);
    expect(await read('- '.repeat(400_000))).toEqual([
      expect.stringMatching(/^x\.yaml:\d+: expected YAML: /),
    ]);
  });
});

it('YAML and INI files of the same content are the same configuration', async () => {
  const ini = await configuration(
    '[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 60\nmax_lease_duration_project_limits = a:1,b:-1\n[service]\nport = 80\ntokens = a-0123456789abcdef, b-0123456789abcdef\n',
  );
  const text =
    'enforcement:\n  enabled_filters: [MaxLeaseDurationFilter]\n  max_lease_duration: 60\n  max_lease_duration_project_limits: {a: 1, b: -1}\nservice:\n  port: 80\n  tokens: [a-0123456789abcdef, b-0123456789abcdef]\n';
  const yaml = await configuration('', { configFiles: [configFile(text, 'x.yaml')] });
  expect(yaml.problems).toEqual([]);
  const values = ({ settings }: typeof ini) => settings.map(({ option, value: one }) => [option.name, one]);
  expect(values(yaml)).toEqual(values(ini));
});
