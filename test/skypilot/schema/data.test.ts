import { describe, expect, it } from 'vitest';
import { pythonPattern } from '../../../src/skypilot/schema/check.ts';
import { expectation } from '../../../src/skypilot/schema/explain.ts';
import { type JsonSchema, SCHEMA_NAMES, schemaOf } from '../../../src/skypilot/schema/json-schema.ts';

/** Every keyword that `check.ts` knows: it would ignore others. */
const KEYWORDS = new Set<string>([
  ...(['type', 'enum', 'case_insensitive_enum', 'case_sensitive_enum', 'pattern', 'minLength'] as const),
  ...(['maxLength', 'minimum', 'maximum', 'exclusiveMinimum', 'properties', 'patternProperties'] as const),
  ...(['additionalProperties', 'required', 'minProperties', 'maxProperties', 'items', 'minItems'] as const),
  ...(['maxItems', 'uniqueItems', 'anyOf', 'oneOf', 'not'] as const),
] satisfies (keyof JsonSchema)[]);

/** Each schema of the data, with its keywords. */
function schemasIn(schema: JsonSchema): JsonSchema[] {
  const {
    properties = {},
    patternProperties = {},
    additionalProperties,
    items,
    anyOf = [],
    oneOf = [],
    not,
  } = schema;
  const below = [
    ...Object.values(properties),
    ...Object.values(patternProperties),
    ...(typeof additionalProperties === 'object' ? [additionalProperties] : []),
    ...(items === undefined ? [] : [items]),
    ...anyOf,
    ...oneOf,
    ...(not === undefined ? [] : [not]),
  ];
  return [schema, ...below.flatMap(schemasIn)];
}

describe.for(SCHEMA_NAMES)("SkyPilot's schema of %s", (name) => {
  const schemas = schemasIn(schemaOf(name));

  it('has only keywords that are checked', () => {
    const keywords = new Set(schemas.flatMap((schema) => Object.keys(schema)));
    expect([...keywords].filter((keyword) => !KEYWORDS.has(keyword))).toEqual([]);
  });

  it('has only patterns that are understood, in words', () => {
    for (const { pattern, patternProperties = {} } of schemas) {
      for (const one of [...(pattern === undefined ? [] : [pattern]), ...Object.keys(patternProperties)]) {
        expect(() => pythonPattern(one)).not.toThrow();
        if (one === pattern) {
          expect(expectation({ pattern: one })).not.toContain(one);
        }
      }
    }
  });
});

it.for([
  ['^all$', 'all\n', true],
  ['^all$', 'all\n\n', false],
  ['a.c', 'a\nc', false],
  ['^(?i:aws|k8s)$', 'AwS', true],
  ['^(?i:aws|k8s)$', '\u212a8S', true],
  ['^(?i:aws)/x$', 'AWS/X', false],
  ['^\\d+$', '٣', true],
  ['^[^\\n]*$', 'a\n', true],
  ['^[.$]$', '.', true],
  ['^[.$]$', 'a', false],
] as const)("a pattern of Python's %j and %j: %s", ([pattern, text, matches]) => {
  expect(pythonPattern(pattern).test(text)).toBe(matches);
});
