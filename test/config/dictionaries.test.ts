/** Dictionaries from several sources: the origin of each member, and those that it overrides. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { formatOrigin, type Origin } from '../../src/base/errors.ts';
import { describeOptions } from '../../src/config/option.ts';
import { resolve } from '../../src/config/resolve.ts';
import { type ConfigSources, readSources } from '../../src/config/sources.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { configFile, shown } from './helpers.ts';

const options = describeOptions(
  's',
  z.object({
    limits: z.record(z.string(), z.int().min(-1)).default({ default: 1 }).meta({ pairs: 'id:seconds' }),
    names: z.array(z.string()).default([]),
    tokens: z.record(z.string(), z.string().max(4)).default({}).meta({ secret: true }),
  }),
);

const short = (origin: Origin) => formatOrigin(origin).replace(/^\/.*\//, '');

/** The setting of an option over files with these texts (YAML when they begin with `s:`) and other sources. */
async function resolved(texts: readonly string[], sources: ConfigSources = {}, name = 'limits') {
  const folder = temporaryFolder();
  const configFiles = texts.map((text, index) =>
    configFile(text, `${index + 1}.${text.startsWith('s:') ? 'yaml' : 'conf'}`, folder),
  );
  const { layers, problems } = await readSources({
    configFiles,
    environment: {},
    ...sources,
  });
  const resolution = resolve(layers, options);
  const setting = resolution.settings.find(({ option }) => option.name === name);
  return {
    value: setting?.value,
    origin: setting && short(setting.origin),
    beats: setting?.beats.map(short),
    members: setting?.members?.map((member) => [
      member.name,
      short(member.origin),
      ...member.beats.map(short),
    ]),
    problems: shown([...problems, ...resolution.problems]),
  };
}

describe('a mapping', () => {
  it('is merged over lower sources, and each member has its origin and those that it overrides', async () => {
    expect(
      await resolved(
        ['[s]\nlimits = a:1,b:2,c:3\n', 's:\n  limits:\n    b: 20\n    d: 40\n', 's: {limits: {b: 200}}'],
        { config: ['s.limits.c=30', 's.limits.e=50'] },
      ),
    ).toEqual({
      value: { a: 1, b: 200, c: 30, d: 40, e: 50 },
      origin: '--config s.limits.e',
      beats: ['3.yaml:1', '2.yaml:2', '1.conf:2'],
      members: [
        ['a', '1.conf:2'],
        ['b', '3.yaml:1', '2.yaml:3', '1.conf:2'],
        ['c', '--config s.limits.c', '1.conf:2'],
        ['d', '2.yaml:4'],
        ['e', '--config s.limits.e'],
      ],
      problems: [],
    });
  });

  it('is merged over variables, and code over it', async () => {
    const { value, members } = await resolved([], {
      environment: { OS_S__LIMITS: 'a:1,b:2' },
      config: ['s.limits={b: 3, c: 4}'],
      values: { s: { limits: { c: 5 } } },
    });
    expect(value).toEqual({ a: 1, b: 3, c: 5 });
    expect(members).toEqual([
      ['a', 'OS_S__LIMITS'],
      ['b', '--config s.limits', 'OS_S__LIMITS'],
      ['c', 'in code', '--config s.limits'],
    ]);
  });

  it('may have members with the names of inherited ones', async () => {
    const { value, members } = await resolved([
      's: {limits: {constructor: 1, a: 1}}',
      's: {limits: {toString: 2}}',
    ]);
    expect(value).toEqual({ constructor: 1, a: 1, toString: 2 });
    expect(members?.map(([name]) => name)).toEqual(['constructor', 'a', 'toString']);
  });

  it('cannot have the name __proto__ from any source', async () => {
    const hostile = JSON.parse('{"__proto__": 5}') as Record<string, unknown>;
    for (const sources of [
      { config: ['s.limits.__proto__=5'] },
      { config: ['s.limits={__proto__: 5}'] },
      { values: { s: { limits: hostile } } },
      { environment: { OS_S__LIMITS: '__proto__:5' } },
    ]) {
      const { problems, value } = await resolved(['s: {limits: {a: 1}}'], sources);
      expect(problems).toEqual([expect.stringContaining('(__proto__ cannot be the name of a pair')]);
      expect(value).toEqual({ default: 1 });
    }
    expect(Reflect.get({}, 'a')).toBeUndefined();
  });
});

describe('a text', () => {
  it('replaces the whole dictionary of lower sources, as in oslo.config', async () => {
    expect(
      await resolved(['s: {limits: {a: x}}', 's: {limits: {b: 2}}', '[s]\nlimits = c:3\n']),
    ).toMatchObject({ value: { c: 3 }, beats: ['2.yaml:1', '1.yaml:1'], members: undefined, problems: [] });
    expect((await resolved(['s: {limits: {a: 1}}', '[s]\nlimits =\n'])).value).toEqual({});
    expect((await resolved(['s: {limits: {a: 1}}', 's: {limits: "b:2"}'])).value).toEqual({ b: 2 });
  });

  it('of an empty variable may not replace anything', async () => {
    const environment = { OS_S__LIMITS: ' ' };
    expect((await resolved(['s: {limits: {a: 1}}'], { environment })).problems).toEqual([
      expect.stringMatching(
        /^OS_S__LIMITS: .*: the variable is empty, and would override .*1.yaml:1: unset it$/,
      ),
    ]);
    expect(await resolved([], { environment })).toMatchObject({ value: {}, problems: [] });
  });

  it('hides the sources below it from a mapping above it', async () => {
    const { value, members } = await resolved([
      's: {limits: {a: 1, b: 1}}',
      '[s]\nlimits = b:2\n',
      's: {limits: {c: 3}}',
    ]);
    expect(value).toEqual({ b: 2, c: 3 });
    expect(members).toEqual([
      ['b', '2.conf:2'],
      ['c', '3.yaml:1'],
    ]);
  });
});

describe('a wrong member', () => {
  const expected = 'expected id:seconds pairs with commas between them, each value a whole number or -1';
  it.each([
    [['[s]\nlimits = a:x\n', 's:\n  limits: {b: 1}\n'], `1.conf:2: [s] limits: ${expected}, got "a:x"`],
    [
      ['s:\n  limits:\n    a: 1\n    b: x\n', 's:\n  limits: {c: 1}\n'],
      `1.yaml:4: [s] limits: ${expected}, got {"a":"1","b":"x"} (see "b")`,
    ],
    [
      ['s:\n  limits:\n    a: 1\n    b: -5\n', 's:\n  limits: {c: 1}\n'],
      `1.yaml:4: [s] limits: ${expected}, got {"a":1,"b":-5,"c":1} (see "b")`,
    ],
  ])('is reported at its own line: %j', async (texts, problem) => {
    expect((await resolved(texts)).problems).toEqual([problem]);
  });
});
