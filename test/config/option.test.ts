import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { describeOptions, type Option } from '../../src/config/option.ts';

function option(schema: z.ZodType): Option {
  const [described] = describeOptions('s', z.object({ name: schema }));
  if (described === undefined) {
    throw new Error('no option');
  }
  return described;
}

describe('the description of an option', () => {
  it('comes from its schema', () => {
    const schema = z.int().min(0).default(60).meta({ description: 'How long.', unit: 'seconds' });
    expect(option(schema)).toEqual({
      section: 's',
      name: 'name',
      schema,
      type: 'integer',
      itemType: 'text',
      secret: false,
      url: false,
      names: [],
      secretFile: false,
      guard: false,
      file: false,
      serverOnly: false,
      watched: false,
      deprecation: undefined,
      help: 'How long.',
      unit: 'seconds',
      expected: 'a whole number of seconds, 0 or more',
      default: 60,
    });
  });

  it('says what to write instead of a deprecated one', () => {
    const schema = z.int().default(1).meta({ description: 'How long.', deprecation: 'use other' });
    expect(option(schema)).toMatchObject({
      deprecation: 'use other',
      help: 'How long. Deprecated: use other.',
    });
  });

  it.each(['secret', 'url', 'file', 'secretFile', 'guard', 'serverOnly', 'watched'] as const)(
    'has the flag %s',
    (flag) => {
      const text = z.string().default('');
      expect(option(text.meta({ [flag]: true }))).toEqual({
        ...option(text),
        schema: expect.anything(),
        [flag]: true,
      });
    },
  );

  it('has no default for an optional option', () => {
    expect(option(z.string().optional()).default).toBeUndefined();
    expect(option(z.int().optional())).toMatchObject({ type: 'integer', default: undefined });
  });

  it('is refused for an option without a default', () => {
    expect(() => option(z.string())).toThrow(/^option name: expected a default, or \.optional\(\)/);
  });
});

describe('what .meta() says of an option', () => {
  const meta = { description: 'A file.', secret: true, names: ['id' as const] };
  const inner = z.string().meta({ ...meta, watched: true });
  it.each<[string, z.ZodType]>([
    ['itself', inner.default('').meta({ description: 'Mine.' })],
    ['what it wraps', inner.optional()],
    ['what several wrap', inner.default('').readonly().optional()],
    ['the schema that a check was added to', inner.min(1).optional()],
    ['what it transforms', inner.default('').transform(String)],
    ['what it transforms before', z.preprocess(String, inner.optional())],
    ['what may be null', inner.nullable().default(null)],
    ['nothing of its items', z.array(inner).default([])],
    ['nothing', z.string().optional()],
  ])('is that of %s, as in JSON Schema', (_, schema) => {
    const json = schema.toJSONSchema({ io: 'input', unrepresentable: 'any' }) as Record<string, unknown>;
    const { help, secret, file, names, secretFile, guard, serverOnly, watched } = option(schema);
    expect({ help, names }).toEqual({ help: json.description ?? '', names: json.names ?? [] });
    const flags = { secret, file, secretFile, guard, serverOnly, watched };
    expect(flags).toEqual(Object.fromEntries(Object.keys(flags).map((flag) => [flag, json[flag] === true])));
  });
});

it.each<[string, z.ZodType, Partial<Option>]>([
  ['integer', z.int().default(1), { expected: 'a whole number' }],
  ['number', z.number().default(1), { expected: 'a number' }],
  ['boolean', z.boolean().default(true), { expected: 'true or false' }],
  ['text', z.string().default(''), { expected: 'text' }],
  ['text', z.url().optional(), { expected: 'a URL', url: true }],
  ['text', z.enum(['debug', 'info']).default('info'), { expected: 'one of debug, info' }],
  [
    'list',
    z.array(z.int().min(1)).default([]),
    {
      itemType: 'integer',
      expected: 'a list, with commas between its items, each a whole number, 1 or more',
    },
  ],
  [
    'dictionary',
    z
      .record(z.string(), z.int().min(-1).meta({ unit: 'seconds' }))
      .default({})
      .meta({ pairs: 'id:seconds' }),
    {
      itemType: 'integer',
      unit: 'seconds',
      expected: 'id:seconds pairs with commas between them, each value a whole number of seconds or -1',
    },
  ],
])('the type of an option is %s', (type, schema, rest) => {
  expect(option(schema)).toMatchObject({ type, ...rest });
});

it.each<[z.ZodType, string]>([
  [z.int().min(-1).default(-1), 'a whole number or -1'],
  [z.int().min(0).max(65535).default(0), 'a whole number from 0 to 65535'],
  [z.int().min(1).default(1), 'a whole number, 1 or more'],
  [z.number().min(0.5).max(1.5).default(1).meta({ unit: 'hours' }), 'a number of hours from 0.5 to 1.5'],
  [z.string().default('').meta({ expected: 'a host name' }), 'a host name'],
])('the expectation has range and unit: %#', (schema, expected) => {
  expect(option(schema).expected).toBe(expected);
});
