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
  /** In the notation of Python. */
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

/** Whether a value is of a type. `1.0` is a whole number, as in Python's jsonschema. A date, a symbol here, is of none. */
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

/** Whether a value has a type of a schema itself, whatever its alternatives expect. */
export function hasTypeOf({ type = [] }: JsonSchema, value: unknown): boolean {
  const types = typeof type === 'string' ? [type] : type;
  return types.length === 0 || types.some((one) => isOfType(value, one));
}

/** Whether a schema allows the type of a value, whatever else it expects. */
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

/** The names of a pattern that is a list of them, `^(a|b)$`, or in which they come first, `(?i:(a|b))`. */
export function namesInPattern(pattern: string): readonly string[] {
  const [, list = ''] = /^\^\(([\w|]+)\)\$$/.exec(pattern) ?? /\(\?i:\(([\w|]+)\)\)/.exec(pattern) ?? [];
  return list === '' ? [] : list.split('|');
}

/** What text a pattern matches. */
export function patternWords(pattern: string): string {
  return WORDS.find(([start]) => pattern.startsWith(start))?.[1] ?? `a string that matches ${pattern}`;
}

/** The SkyPilot that the data are of. `npm run skypilot-schema` compares them with another one's. */
export const SCHEMA_VERSION = { skypilot: '0.13', apiVersion: 56 } as const;

/** What SkyPilot has a schema for. */
export const SCHEMA_NAMES = ['config', 'task', 'resources', 'service', 'storage'] as const;
export type SchemaName = (typeof SCHEMA_NAMES)[number];

const READ = new Map<SchemaName, JsonSchema>();

export function schemaOf(name: SchemaName): JsonSchema {
  const read = READ.get(name);
  if (read !== undefined) {
    return read;
  }
  const schema = JSON.parse(readFileSync(schemaFile(name), 'utf8')) as JsonSchema;
  READ.set(name, schema);
  return schema;
}

/** Where the data are: beside this file, also once it is built. */
export function schemaFile(name: SchemaName): URL {
  return new URL(`data/${name}.json`, import.meta.url);
}
