/** The part of JSON Schema (draft 7) that SkyPilot uses, with its own keywords for enumerations. */

export const TYPES = ['string', 'integer', 'number', 'boolean', 'array', 'object', 'null'] as const;
export type TypeName = (typeof TYPES)[number];

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

/** Every keyword that `check.ts` knows: it would ignore others. */
export const KEYWORDS: ReadonlySet<string> = new Set<keyof JsonSchema>([
  'type',
  'enum',
  'case_insensitive_enum',
  'case_sensitive_enum',
  'pattern',
  'minLength',
  'maxLength',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'properties',
  'patternProperties',
  'additionalProperties',
  'required',
  'minProperties',
  'maxProperties',
  'items',
  'minItems',
  'maxItems',
  'uniqueItems',
  'anyOf',
  'oneOf',
  'not',
]);

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

/** Whether a schema allows the type of a value, whatever else it expects. */
export function allowsTypeOf(schema: JsonSchema, value: unknown): boolean {
  const { type = [] } = schema;
  const types = typeof type === 'string' ? [type] : type;
  if (types.length > 0 && !types.some((one) => isOfType(value, one))) {
    return false;
  }
  const below = alternativesOf(schema);
  return below.length === 0 || below.some((one) => allowsTypeOf(one, value));
}
