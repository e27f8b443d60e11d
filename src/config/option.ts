/**
 * Describes options by their zod schema, the single source of name, type, unit, range, default and help, for
 * the reader, `config sample`, the docs and `--help`.
 */
import type { z } from 'zod';
import { showText } from './secret.ts';

declare module 'zod' {
  /** What `.meta({ … })` of a schema can hold besides `description`. */
  interface GlobalMeta {
    /** The unit of a number: `seconds`, `bytes`. */
    unit?: string;
    /** The value is a secret: never shown. */
    secret?: boolean;
    /**
     * The value may be a URL, whose path and query may contain a key. Not needed for `z.url()` without
     * `.regex()`.
     */
    url?: boolean;
    /** The value is a file path, which must be readable if the filter is enabled. */
    file?: boolean;
    /** Completes "expected …" if type and range of the schema do not describe it well. */
    expected?: string;
    /** The kinds of the items of a list, or of the names in a dictionary. */
    names?: readonly NameKind[];
    /** The named file contains a secret: a world-readable file is a warning. */
    secretFile?: boolean;
    /** The option restricts access: an empty value is an error, because it would allow everyone. */
    guard?: boolean;
    /** May not be set in files of users and projects. */
    serverOnly?: boolean;
    /** A path, a list of paths, or a dictionary of paths: `serve --watch` reloads when their content changes. */
    watched?: boolean;
    /** The form of a dictionary's pairs, such as `project id:seconds`. */
    pairs?: string;
    /** The option is deprecated: the replacement, as `use other_option`. Setting it is a warning. */
    deprecation?: string;
  }
}

/**
 * The kind of a list item, or of a name in a dictionary. With several kinds, one must match; `*` is the
 * literal `*`. `name@domain` allows such names wherever an id is allowed.
 */
export type NameKind =
  | 'id'
  | 'name@domain'
  | 'tag'
  | 'resource type'
  | 'id/resource type'
  | 'tag/resource type'
  | '*';

export type OptionType = 'integer' | 'number' | 'boolean' | 'list' | 'dictionary' | 'text';

interface JsonSchema extends z.GlobalMeta {
  readonly type?: string;
  readonly format?: string;
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly items?: JsonSchema;
  readonly additionalProperties?: JsonSchema;
}

export interface Option {
  readonly section: string;
  readonly name: string;
  readonly schema: z.ZodType;
  readonly type: OptionType;
  /** The type of list items, or of dictionary values. */
  readonly itemType: OptionType;
  readonly secret: boolean;
  /** The value is a URL, or a list of URLs: wrong ones are not shown, since a key may be anywhere in them. */
  readonly url: boolean;
  readonly file: boolean;
  /** Empty = any name. */
  readonly names: readonly NameKind[];
  readonly secretFile: boolean;
  readonly guard: boolean;
  readonly serverOnly: boolean;
  readonly watched: boolean;
  readonly deprecation: string | undefined;
  readonly help: string;
  readonly unit: string | undefined;
  /** Completes "expected …". */
  readonly expected: string;
  /** The value if no source sets the option; `undefined` = not set. */
  readonly default: unknown;
}

/** Describes every option of an object schema. Throws an `Error` for a missing or invalid default. */
export function describeOptions(section: string, schema: z.ZodObject): readonly Option[] {
  const known = described.get(schema)?.get(section);
  if (known !== undefined) {
    return known;
  }
  const options = Object.entries(schema.shape).map(([name, option]) =>
    describeOption(section, name, option as z.ZodType),
  );
  described.set(schema, new Map(described.get(schema)).set(section, options));
  return options;
}

/**
 * By schema and section, to save the cost at every command and reload. Schemas never change; a filter that is
 * loaded again has new ones.
 */
const described = new WeakMap<z.ZodObject, ReadonlyMap<string, readonly Option[]>>();

function describeOption(section: string, name: string, schema: z.ZodType): Option {
  const unset = schema.safeParse(undefined);
  if (!unset.success) {
    throw new Error(
      `option ${name}: expected a default, or .optional(): every option must have a meaning when it is not set`,
    );
  }
  refuseDefault(name, schema, unset.data);
  let converted: JsonSchema | undefined;
  // Most options are not set, and only their `.meta()` is read: the conversion takes longer than all else
  // here.
  const json = () => {
    converted ??= schema.toJSONSchema({ io: 'input', unrepresentable: 'any' }) as JsonSchema;
    return converted;
  };
  const meta = metaOf(schema) ?? json();
  return {
    section,
    name,
    schema,
    get type() {
      return optionType(json());
    },
    get itemType() {
      return optionType(json().items ?? json().additionalProperties ?? {});
    },
    secret: meta.secret === true,
    get url() {
      return isUrl(json());
    },
    file: meta.file === true,
    names: meta.names ?? [],
    secretFile: meta.secretFile === true,
    guard: meta.guard === true,
    serverOnly: meta.serverOnly === true,
    watched: meta.watched === true,
    deprecation: meta.deprecation,
    help: [meta.description, meta.deprecation && `Deprecated: ${meta.deprecation}.`]
      .filter(Boolean)
      .join(' '),
    get unit() {
      return json().unit ?? json().additionalProperties?.unit;
    },
    get expected() {
      return json().expected ?? expectation(json());
    },
    default: unset.data,
  };
}

/** Schemas that wrap another one, whose `.meta()` counts unless they have their own. */
const WRAPPERS: readonly string[] = ['default', 'optional', 'prefault', 'nonoptional', 'readonly', 'catch'];
/** Schemas whose JSON Schema has the `.meta()` of a part, or none. */
const COMPOSED: readonly string[] = ['pipe', 'lazy', 'nullable', 'promise'];

/** What the conversion to JSON Schema would find in `.meta()`; `undefined` = needs the conversion. */
function metaOf(schema: z.ZodType): z.GlobalMeta | undefined {
  const { type, innerType } = schema.def as { readonly type: string; readonly innerType?: z.ZodType };
  if (COMPOSED.includes(type) || typeof schema.meta !== 'function') {
    return undefined;
  }
  const inner = WRAPPERS.includes(type) && innerType !== undefined ? metaOf(innerType) : {};
  return inner && { ...inner, ...schema.meta() };
}

/** zod does not check a default against its schema: it could be a value that is not allowed. */
function refuseDefault(name: string, schema: z.ZodType, value: unknown): void {
  if (value === undefined || transforms(schema)) {
    return;
  }
  const parsed = schema.safeParse(value);
  if (!parsed.success) {
    const message = parsed.error.issues[0]?.message ?? 'invalid value';
    throw new Error(`option ${name}: its own schema refuses its default ${showText(value)}: ${message}`);
  }
}

/**
 * Whether the output of a schema may differ from its input. Checks the structure: a filter may have another
 * copy of zod.
 */
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

function isUrl({ url, format, items }: JsonSchema): boolean {
  return url === true || format === 'uri' || items?.format === 'uri';
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

function range({ minimum, exclusiveMinimum: above, maximum }: JsonSchema): string {
  const low = minimum === undefined || minimum <= Number.MIN_SAFE_INTEGER ? undefined : minimum;
  const high = maximum === undefined || maximum >= Number.MAX_SAFE_INTEGER ? undefined : maximum;
  if (above !== undefined && high !== undefined) {
    return `, more than ${above}, ${high} or less`;
  }
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
