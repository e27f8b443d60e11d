/** The part of JSON Schema (draft 7) that SkyPilot uses, with its own keywords for enumerations. */
import { readFileSync } from 'node:fs';

export type TypeName = 'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object' | 'null';

export interface JsonSchema {
  readonly type?: TypeName | readonly TypeName[];
  readonly enum?: readonly unknown[];
  /** SkyPilot's own. */
  readonly case_insensitive_enum?: readonly string[];
  /** SkyPilot's own. */
  readonly case_sensitive_enum?: readonly string[];
  /** In Python's notation. */
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly patternProperties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: boolean | JsonSchema;
  readonly required?: readonly string[];
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly not?: JsonSchema;
}

/** The schemas directly below one that apply to the same value. */
export function alternativesOf({ anyOf = [], oneOf = [] }: JsonSchema): readonly JsonSchema[] {
  return [...anyOf, ...oneOf];
}

/** Whether a value has a type. `1.0` is an integer, as in Python's jsonschema. Dates (symbols) have none. */
export function isOfType(value: unknown, type: TypeName): boolean {
  switch (type) {
    case 'string':
    case 'boolean':
      return typeof value === type;
    case 'number':
      return typeof value === 'number' || typeof value === 'bigint';
    case 'integer':
      return Number.isInteger(value) || typeof value === 'bigint';
    case 'null':
      return value === null;
    case 'array':
      return Array.isArray(value);
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value);
  }
}

/** Whether a value has a type of the schema itself, regardless of its alternatives. */
export function hasTypeOf({ type = [] }: JsonSchema, value: unknown): boolean {
  const types = typeof type === 'string' ? [type] : type;
  return types.length === 0 || types.some((one) => isOfType(value, one));
}

/** Whether a schema allows the type of a value, regardless of its other conditions. */
export function allowsTypeOf(schema: JsonSchema, value: unknown): boolean {
  if (!hasTypeOf(schema, value)) {
    return false;
  }
  const below = alternativesOf(schema);
  return below.length === 0 || below.some((one) => allowsTypeOf(one, value));
}

const WORDS: readonly (readonly [start: string, words: string])[] = [
  ['^[0-9]+(kb|ki|mb|mi|', 'a size such as 256GB'],
  ['^[0-9]+(b|k|m|g|t|p|', 'a size such as 512M'],
  ['^[0-9]+(m|h|d|w|', 'a duration such as 10m'],
  ['^(?:(?:[-+]?(?:\\d+', 'a duration such as 1h30m'],
  ['^(?:(?i:(aws|', 'a cloud with optional region and zone such as aws/us-east-1 or k8s/my-context'],
  ['^[^\\n]*$', 'a string on one line'],
  ['^all$', '"all"'],
  ['^https?://.*$', 'an http or https URL'],
  ['^[a-zA-Z0-9.-]+$', 'a host name'],
  ['^(https|s3|gs|r2|cos)://.+', 'a bucket URL that starts with s3://, gs://, r2://, cos:// or https://'],
  [
    '^(?:[-a-z0-9]+/)?[-a-z0-9]+$',
    'the name of a VPC such as my-vpc or my-project/my-vpc (lowercase letters, digits and hyphens)',
  ],
  ['^(/|~/|~$)', 'a path that starts with / or ~'],
  ['^sky_.+$', 'a token that starts with sky_'],
  ['^[a-zA-Z_][a-zA-Z0-9_]*(\\.', 'a dotted name such as my_package.MyPolicy'],
  ['^[a-zA-Z0-9._-][a-zA-Z0-9./_-]*$', 'a relative path of letters, digits and ._-/'],
  ['^[a-zA-Z_][a-zA-Z0-9_]*$', 'a name of letters, digits and _, not starting with a digit'],
  ['^[A-Z0-9]+(?::[0-9]+)?$', 'an accelerator such as A100:8'],
];

/** The names in a pattern that is a list, `^(a|b)$`, or starts with one, `(?i:(a|b))`. */
export function namesInPattern(pattern: string): readonly string[] {
  const [, list = ''] = /^\^\(([\w|]+)\)\$$/.exec(pattern) ?? /\(\?i:\(([\w|]+)\)\)/.exec(pattern) ?? [];
  return list === '' ? [] : list.split('|');
}

/** The matching text of a pattern, in plain words. */
export function patternWords(pattern: string): string {
  return WORDS.find(([start]) => pattern.startsWith(start))?.[1] ?? `a string that matches ${pattern}`;
}

/** The SkyPilot version of the data. `npm run skypilot-schema` compares them with another version. */
export const SCHEMA_VERSION = { skypilot: '0.13', apiVersion: 56 } as const;

/** The schemas of SkyPilot. */
export const SCHEMA_NAMES = ['config', 'task', 'resources', 'service', 'storage'] as const;
export type SchemaName = (typeof SCHEMA_NAMES)[number];

let schemas: Readonly<Record<SchemaName, JsonSchema>> | undefined;

export function schemaOf(name: SchemaName): JsonSchema {
  schemas ??= readSchemas();
  return schemas[name];
}

/** As `npm run skypilot-schema` writes them: `{ $ref }` is a definition, which refers only to earlier ones. */
function readSchemas() {
  // Next to this file, also in the build.
  const file = new URL('data.json', import.meta.url);
  const { $defs, ...written } = JSON.parse(readFileSync(file, 'utf8')) as { readonly $defs: object };
  const definitions = new Map<unknown, unknown>();
  for (const [name, definition] of Object.entries($defs)) {
    definitions.set(`#/$defs/${name}`, withoutReferences(definition, definitions));
  }
  return withoutReferences(written, definitions) as Readonly<Record<SchemaName, JsonSchema>>;
}

function withoutReferences(part: unknown, definitions: ReadonlyMap<unknown, unknown>): unknown {
  if (Array.isArray(part)) {
    return part.map((one) => withoutReferences(one, definitions));
  }
  if (typeof part !== 'object' || part === null) {
    return part;
  }
  return '$ref' in part
    ? definitions.get(part.$ref)
    : Object.fromEntries(
        Object.entries(part).map(([keyword, value]) => [keyword, withoutReferences(value, definitions)]),
      );
}
