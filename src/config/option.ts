/**
 * What an option is, read off its zod schema. The schema is the one place where name, type, unit, range, default and
 * help are written; the reader, `config sample`, the docs and `--help` all start from what stands here.
 */
import type { z } from 'zod';
import { showText } from './secret.ts';

declare module 'zod' {
  /** What a schema says of itself with `.meta({ … })`, next to `description`. */
  interface GlobalMeta {
    /** Of a number: `seconds`, `bytes`. */
    unit?: string;
    /** The value is a secret: it is never shown. */
    secret?: boolean;
    /** A path that must lead to a readable file when the filter is enabled. */
    file?: boolean;
    /** What is expected, where the schema's type and range don't say it well. */
    expected?: string;
    /** What the items of a list, or the names of a dictionary, are. */
    names?: readonly NameKind[];
    /** The file that it names holds a secret: everyone may read it is a warning. */
    secretFile?: boolean;
    /** It keeps somebody out: set and empty is an error, since what was left of it would let everyone in. */
    guard?: boolean;
    /** Neither a user's nor a project's file may set it. */
    serverOnly?: boolean;
    /** A path, or a list of paths: `serve --watch` reloads when what is there changes. */
    watched?: boolean;
    /** Of a dictionary: what its pairs are, such as `project id:seconds`. */
    pairs?: string;
  }
}

/** What the items of a list, or the names of a dictionary, are. With several kinds one has to fit; `*` stands for itself. */
export type NameKind = 'id' | 'resource type' | 'id/resource type' | '*';

/** The JSON types that a value of blazar.conf can have. */
export type OptionType = 'integer' | 'number' | 'boolean' | 'list' | 'dictionary' | 'text';

/** The parts of a JSON Schema that options use. */
interface JsonSchema {
  readonly type?: string;
  readonly format?: string;
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: JsonSchema;
  readonly additionalProperties?: JsonSchema;
  readonly description?: string;
  readonly unit?: string;
  readonly secret?: boolean;
  readonly file?: boolean;
  readonly expected?: string;
  readonly names?: readonly NameKind[];
  readonly secretFile?: boolean;
  readonly guard?: boolean;
  readonly serverOnly?: boolean;
  readonly watched?: boolean;
  readonly pairs?: string;
}

/** One option of one section. */
export interface Option {
  readonly section: string;
  readonly name: string;
  readonly schema: z.ZodType;
  readonly type: OptionType;
  /** Of the items of a list or the values of a dictionary. */
  readonly itemType: OptionType;
  readonly secret: boolean;
  readonly file: boolean;
  /** Empty = they may be anything. */
  readonly names: readonly NameKind[];
  readonly secretFile: boolean;
  readonly guard: boolean;
  readonly serverOnly: boolean;
  readonly watched: boolean;
  readonly help: string;
  readonly unit: string | undefined;
  /** Completes "expected …". */
  readonly expected: string;
  /** The value when nothing sets it; `undefined` = not set. */
  readonly default: unknown;
}

/** Describes every option of an object schema. Throws an `Error` for a schema that can't be read from text. */
export function describeOptions(section: string, schema: z.ZodObject): Option[] {
  // All at once: each conversion has a price of its own, and every command pays it.
  const { properties = {} } = schema.toJSONSchema({ io: 'input', unrepresentable: 'any' });
  return Object.entries(schema.shape).map(([name, option]) =>
    describeOption(section, name, option as z.ZodType, properties[name] as JsonSchema),
  );
}

function describeOption(section: string, name: string, schema: z.ZodType, json: JsonSchema): Option {
  const unset = schema.safeParse(undefined);
  if (!unset.success) {
    throw new Error(
      `option ${name}: expected a default, or .optional(): an option that is not written must have a meaning`,
    );
  }
  refuseDefault(name, schema, unset.data);
  const type = optionType(json);
  return {
    section,
    name,
    schema,
    type,
    itemType: optionType(json.items ?? json.additionalProperties ?? {}),
    secret: json.secret === true,
    file: json.file === true,
    names: json.names ?? [],
    secretFile: json.secretFile === true,
    guard: json.guard === true,
    serverOnly: json.serverOnly === true,
    watched: json.watched === true,
    help: json.description ?? '',
    unit: json.unit ?? json.additionalProperties?.unit,
    expected: json.expected ?? expectation(json),
    default: unset.data,
  };
}

/** A default is not held against its schema by zod: it would be a limit that nobody may set. */
function refuseDefault(name: string, schema: z.ZodType, value: unknown): void {
  if (value === undefined || transforms(schema)) {
    return;
  }
  const parsed = schema.safeParse(value);
  if (!parsed.success) {
    const message = parsed.error.issues[0]?.message ?? 'it is none of its values';
    throw new Error(`option ${name}: its own schema refuses its default ${showText(value)}: ${message}`);
  }
}

/** Whether what comes out of a schema may be nothing that goes into it. By its form: filters may have a zod of their own. */
function transforms(schema: unknown, depth = 0): boolean {
  if (typeof schema !== 'object' || schema === null || depth > 20) {
    return false;
  }
  const def = 'def' in schema ? schema.def : undefined;
  if (typeof def !== 'object' || def === null) {
    return false;
  }
  if ('type' in def && (def.type === 'pipe' || def.type === 'transform')) {
    return true;
  }
  const parts = ['innerType', 'element', 'keyType', 'valueType', 'options', 'items'].flatMap(
    (part) => (def as Readonly<Record<string, unknown>>)[part],
  );
  return parts.some((part) => transforms(part, depth + 1));
}

function optionType(json: JsonSchema): OptionType {
  switch (json.type) {
    case 'integer':
    case 'number':
    case 'boolean':
      return json.type;
    case 'array':
      return 'list';
    case 'object':
      return 'dictionary';
    default:
      return 'text';
  }
}

function expectation(json: JsonSchema): string {
  switch (optionType(json)) {
    case 'integer':
      return `a whole number${ofUnit(json)}${range(json)}`;
    case 'number':
      return `a number${ofUnit(json)}${range(json)}`;
    case 'boolean':
      return 'true or false';
    case 'list':
      return `a list, with commas between its items${json.items?.type === 'string' ? '' : `, each ${expectation(json.items ?? {})}`}`;
    case 'dictionary':
      return `${json.pairs ?? 'name:value'} pairs with commas between them, each value ${expectation(json.additionalProperties ?? {})}`;
    case 'text':
      if (json.enum !== undefined) {
        return `one of ${json.enum.map(String).join(', ')}`;
      }
      return json.format === 'uri' ? 'a URL' : 'text';
  }
}

function ofUnit(json: JsonSchema): string {
  return json.unit === undefined ? '' : ` of ${json.unit}`;
}

function range({ minimum, maximum }: JsonSchema): string {
  const low = minimum === undefined || minimum <= Number.MIN_SAFE_INTEGER ? undefined : minimum;
  const high = maximum === undefined || maximum >= Number.MAX_SAFE_INTEGER ? undefined : maximum;
  if (low === -1 && high === undefined) {
    return ' or -1';
  }
  if (low !== undefined && high !== undefined) {
    return ` from ${low} to ${high}`;
  }
  if (low !== undefined) {
    return `, ${low} or more`;
  }
  return high === undefined ? '' : `, ${high} or less`;
}
