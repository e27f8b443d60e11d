import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { describeOptions } from '../../src/config/option.ts';
import { type Resolution, resolve, schemaInput } from '../../src/config/resolve.ts';
import { showValue } from '../../src/config/secret.ts';
import { readSources } from '../../src/config/sources.ts';
import { valuesOnly } from '../support/files.ts';
import { layersOf, resolved, shown } from './helpers.ts';

const schema = z.object({
  limit: z.int().min(-1).default(-1).meta({ unit: 'seconds' }),
  tries: z.int().optional(),
  on: z.boolean().default(false),
  level: z.enum(['debug', 'info']).default('info'),
  names: z.array(z.string()).default([]),
  limits: z.record(z.string(), z.int().min(-1)).default({}).meta({ pairs: 'id:seconds' }),
  url: z.url({ protocol: /^https?$/ }).optional(),
  text: z.string().default('plain'),
  path: z.string().optional().meta({ file: true }),
  token: z.string().default('').meta({ secret: true }),
});

function setting(resolution: Resolution, name: string) {
  const found = resolution.settings.find(({ option }) => option.name === name);
  if (found === undefined) {
    throw new Error(`no setting ${name}`);
  }
  return found;
}

/** The effective value of the option that the line sets. */
async function value(line: string): Promise<unknown> {
  const resolution = await resolved(schema, line);
  expect(shown(resolution.problems)).toEqual([]);
  return setting(resolution, line.slice(0, line.indexOf(' '))).value;
}

/** The problems of a section `[s]` with these lines. */
async function problems(...lines: readonly string[]): Promise<string[]> {
  return shown((await resolved(schema, lines.join('\n'))).problems);
}

describe('a value', () => {
  it.each<[string, unknown]>([
    ['limit = +86_400', 86_400],
    ['tries =', undefined],
    ['on = Yes', true],
    ['level = debug', 'debug'],
    ['names = a, b,', ['a', 'b']],
    ['limits = constructor:1,toString:2', { constructor: 1, toString: 2 }],
    ['url = http://h:80/a?b=c', 'http://h:80/a?b=c'],
    ['text = null', 'null'],
    ['path =', undefined],
  ])('has the type of its option: %s', async (line, expected) => {
    expect(await value(line)).toEqual(expected);
  });

  it('that no source sets is the default, without a place', async () => {
    const resolution = await resolved(schema, '');
    expect(Object.fromEntries(resolution.settings.map(({ option, value }) => [option.name, value]))).toEqual({
      limit: -1,
      on: false,
      level: 'info',
      names: [],
      limits: {},
      text: 'plain',
      token: '',
      tries: undefined,
    });
    expect(schemaInput(resolution.settings, new Set(Object.keys(schema.shape)))).toEqual({});
    expect(new Set(resolution.settings.map(({ origin }) => origin.kind))).toEqual(new Set(['default']));
  });
});

it('a list or a dictionary from code is literal', async () => {
  const values = { s: { names: ['a,b', ' c '], limits: { 'a:b': 1, ' c ': '2' } } };
  const { layers } = await readSources(valuesOnly(values));
  const resolution = resolve(layers, describeOptions('s', schema));
  expect(shown(resolution.problems)).toEqual([]);
  expect(setting(resolution, 'names').value).toEqual(['a,b', ' c ']);
  expect(setting(resolution, 'limits').value).toEqual({ 'a:b': 1, ' c ': 2 });
});

describe('a wrong value', () => {
  const SECONDS = 'expected a whole number of seconds or -1, got';
  const PAIRS = 'expected id:seconds pairs with commas between them, each value a whole number or -1, got';
  it.each([
    ['limit = one day', `${SECONDS} "one day"`],
    ['limit =', `${SECONDS} ""`],
    ['limit = -2', `${SECONDS} "-2"`],
    ['limit = 60 # a minute', `${SECONDS} "60 # a minute" (a comment needs a line of its own)`],
    ['on = maybe', 'expected true or false, got "maybe"'],
    ['level = Debug', 'expected one of debug, info, got "Debug"'],
    ['names = a,,b', 'expected a list, with commas between its items, got "a,,b" (an item is empty)'],
    ['limits = a:1,b:-2', `${PAIRS} "a:1,b:-2" (see "b")`],
    ['limits = __proto__:1', `${PAIRS} "__proto__:1" (__proto__ cannot be the name of a pair)`],
    ['url = ftp://user:hush@h/', 'expected a URL, got a value that is not shown'],
  ])('is reported with what was expected, what came and where: %s', async (line = '', message) => {
    const name = line.slice(0, line.indexOf(' '));
    expect(await problems(line)).toEqual([`1.conf:2: [s] ${name}: ${message}`]);
  });

  it('is replaced by the default, and the other options are read', async () => {
    const resolution = await resolved(schema, 'limit = x\ntext = y');
    expect(setting(resolution, 'limit').value).toBe(-1);
    expect(setting(resolution, 'text').value).toBe('y');
  });

  it('is reported at its line, for every option at once', async () => {
    expect(await problems('on = x', 'limit = y', 'limit = z', '', 'level = w')).toEqual([
      '1.conf:4: [s] limit: expected a whole number of seconds or -1, got "z"',
      '1.conf:2: [s] on: expected true or false, got "x"',
      '1.conf:6: [s] level: expected one of debug, info, got "w"',
    ]);
  });

  it('is ignored when a higher layer has a right one', async () => {
    const resolution = await resolved(schema, 'limit = x', 'limit = 60');
    expect(resolution.problems).toEqual([]);
    expect(setting(resolution, 'limit').value).toBe(60);
  });
});

describe('a reference', () => {
  it('takes the effective value of the same section, then of [DEFAULT]', async () => {
    const files = [
      '[DEFAULT]\nhost = far\nregion = one\n[s]\nhost = near\nurl = http://$host/$region',
      '[DEFAULT]\nregion = two\n',
    ];
    expect(setting(await resolved(schema, ...files), 'url').value).toBe('http://near/two');
  });

  it('reaches into other sections, through further references and to defaults', async () => {
    const text = `[Other]\nport = 8\${s.tries}\n[s]\ntries = 0\nurl = http://h:\${other.port}/$limit/$text/$names`;
    expect(setting(await resolved(schema, text), 'url').value).toBe('http://h:80/-1/plain/');
  });

  it('to an option without a value is the empty text', async () => {
    expect(await value('text = <$path>')).toBe('<>');
  });

  it('to an option that is not set is an error at its line', async () => {
    expect(await problems('url = http://$nowhere/', `names = \${a.b}`)).toEqual([
      '1.conf:3: [s] names: "$a.b" refers to an option that is not set; write "$$" for a dollar sign',
      '1.conf:2: [s] url: a "$" in the value refers to an option that is not set; write "$$" for a dollar sign',
    ]);
  });

  it('to itself, also through others, is an error', async () => {
    expect(await problems('text = $text', 'url = http://$path', 'path = $url')).toEqual([
      '1.conf:3: [s] url: $path refers to itself',
      '1.conf:2: [s] text: $text refers to itself',
      '1.conf:4: [s] path: $url refers to itself',
    ]);
  });

  it('to the same option may be repeated', async () => {
    expect(
      setting(await resolved(schema, 'path = p\nnames = $path\ntext = $path$names$path'), 'text').value,
    ).toBe('ppp');
  });
});

describe('a secret', () => {
  it('is not shown when it is wrong', async () => {
    const secrets = z.object({
      token: z.string().regex(/^a/).default('a').meta({ secret: true, expected: 'ASCII' }),
      list: z.array(z.string()).default([]).meta({ secret: true }),
      pin: z.int().default(0).meta({ secret: true }),
    });
    const { problems: found } = await resolved(
      secrets,
      'token = sEcReT # x\nlist = sEcReT,,\n x\npin = sEcReT',
    );
    expect(shown(found)).toEqual([
      '1.conf:2: [s] token: expected ASCII, got a value that is not shown (a comment needs a line of its own)',
      '1.conf:3: [s] list: expected a list, with commas between its items, got a value that is not shown (an item is empty)',
      '1.conf:5: [s] pin: expected a whole number, got a value that is not shown',
    ]);
  });

  it('makes every option that refers to it a secret, also through a third one', async () => {
    const text =
      '[DEFAULT]\nmiddle = <$s.token>\n[s]\ntoken = hush\nurl = http://h/$token\ntext = $middle\npath = p';
    const resolution = await resolved(schema, text);
    for (const name of ['token', 'url', 'text']) {
      const { value: found, secret } = setting(resolution, name);
      expect(found).toContain('hush');
      expect(showValue(found, secret)).toBe('****');
    }
    expect(setting(resolution, 'path').secret).toBe(false);
  });
});

describe('an unknown name', () => {
  it('is an error in a known section, in every layer, with the nearest right name', async () => {
    const { problems: found } = await resolved(schema, 'limt = hush\nLimit = hush', 'limt = hush');
    expect(shown(found)).toEqual([
      '1.conf:2: [s] limt: unknown option; the nearest right name is "limit"',
      '1.conf:3: [s] Limit: unknown option; the nearest right name is "limit"',
      '2.conf:2: [s] limt: unknown option; the nearest right name is "limit"',
    ]);
  });

  it('is ignored in an unknown section', async () => {
    expect(await problems('[physical:host]\nlimt = 1\n[other]\na = b')).toEqual([]);
  });

  it('of a section is an error when it is nearly a known one', async () => {
    const options = describeOptions('enforcement', schema);
    const text =
      '[enforcment]\nlimit = 1\n[ enforcement ]\nlimit = 2\n[enforcers]\na = 1\n[__proto__]\nb = 1\n';
    expect(shown(resolve(await layersOf(text), options).problems)).toEqual([
      '1.conf:2: [enforcment] unknown section; the nearest right name is [enforcement]',
      '1.conf:4: [ enforcement ] unknown section; the nearest right name is [enforcement]',
    ]);
  });
});
