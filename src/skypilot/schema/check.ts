/**
 * Checks a value against one of SkyPilot's schemas, with the verdict of Python's jsonschema, and keeps the
 * useful mistakes: of alternatives, those of the intended one.
 */
import { isMapping, type Mapping, member, type Path } from '../../base/yaml/tree.ts';
import { allowsTypeOf, hasTypeOf, type JsonSchema } from './json-schema.ts';

/** A mismatch. `path`: of the value; `schema`: what the value was expected to match. */
export type Violation = {
  readonly path: Path;
  readonly schema: JsonSchema;
  readonly value: unknown;
} & (
  | { readonly kind: 'value' }
  | { readonly kind: 'unknown key' | 'missing key'; readonly key: string }
  | { readonly kind: 'repeated item' }
  /** None of these keys is allowed. */
  | { readonly kind: 'forbidden keys'; readonly keys: readonly string[] }
  /** Only one of these keys is allowed; if there is none, one is expected. */
  | { readonly kind: 'one of keys'; readonly keys: readonly string[] }
);

/** Further ones are not collected: these are enough to refuse. */
const MAX_VIOLATIONS = 100;
/** No configuration needs this many steps; a hostile one stops here, after some 0.1 seconds. */
const MAX_STEPS = 200_000;

/** The value has too many parts to be checked. It counts as invalid. */
export class TooLargeError extends Error {
  override readonly name = 'TooLargeError';
}

/** All mistakes in the order of the value, some hundred at most; empty = valid. @throws TooLargeError */
export function violationsOf(schema: JsonSchema, value: unknown): Violation[] {
  return new Check().violations(schema, value, []);
}

class Check {
  #steps = 0;

  violations(schema: JsonSchema, value: unknown, path: Path): Violation[] {
    this.#steps += 1;
    if (this.#steps > MAX_STEPS) {
      throw new TooLargeError('too large to be checked');
    }
    if (!isPlainMatch(schema, value)) {
      return [{ path, schema, value, kind: 'value' }];
    }
    const found: Violation[] = [];
    if (Array.isArray(value)) {
      this.#items(schema, value, path, found);
    } else if (isMapping(value)) {
      this.#members(schema, value, path, found);
    }
    this.#combinations(schema, value, path, found);
    return found;
  }

  #items(schema: JsonSchema, value: readonly unknown[], path: Path, found: Violation[]): void {
    const { items, uniqueItems } = schema;
    if (uniqueItems === true && hasRepetition(value)) {
      found.push({ path, schema, value, kind: 'repeated item' });
    }
    if (items === undefined) {
      return;
    }
    for (const [index, item] of value.entries()) {
      add(found, this.violations(items, item, [...path, index]));
      if (found.length >= MAX_VIOLATIONS) {
        return;
      }
    }
  }

  #members(schema: JsonSchema, value: Mapping, path: Path, found: Violation[]): void {
    const { properties = {}, patternProperties = {}, additionalProperties: further = true } = schema;
    for (const key of schema.required ?? []) {
      if (!Object.hasOwn(value, key)) {
        found.push({ path, schema, value, kind: 'missing key', key });
      }
    }
    const patterns = Object.entries(patternProperties);
    if (further === true && patterns.length === 0 && schema.properties === undefined) {
      return;
    }
    for (const [key, item] of Object.entries(value)) {
      const below = [...path, key];
      const own = member(properties, key);
      const named = patterns.flatMap(([pattern, one]) => (pythonPattern(pattern).test(key) ? one : []));
      if (own !== undefined) {
        named.push(own);
      }
      for (const one of named) {
        add(found, this.violations(one, item, below));
      }
      if (named.length === 0 && further === false) {
        found.push({ path, schema, value, kind: 'unknown key', key });
      } else if (named.length === 0 && further !== true && further !== false) {
        add(found, this.violations(further, item, below));
      }
      if (found.length >= MAX_VIOLATIONS) {
        return;
      }
    }
  }

  #combinations(schema: JsonSchema, value: unknown, path: Path, found: Violation[]): void {
    const { anyOf, oneOf, not } = schema;
    if (anyOf !== undefined) {
      const branches = anyOf.map((branch) => this.violations(branch, value, path));
      if (branches.every(({ length }) => length > 0)) {
        add(found, meant({ path, schema, value }, anyOf, branches));
      }
    }
    if (oneOf !== undefined) {
      const branches = oneOf.map((branch) => this.violations(branch, value, path));
      if (branches.filter(({ length }) => length === 0).length !== 1) {
        const keys = [...new Set(oneOf.flatMap(requiredIn))];
        add(
          found,
          oneOf.every(isAboutKeys)
            ? [{ path, schema, value, kind: 'one of keys', keys }]
            : meant({ path, schema, value }, oneOf, branches),
        );
      }
    }
    if (not !== undefined && this.violations(not, value, path).length === 0) {
      const { required = [] } = not;
      const kind = required.length > 1 ? 'one of keys' : 'forbidden keys';
      found.push({ path, schema, value, kind, keys: requiredIn(not) });
    }
  }
}

function add(found: Violation[], more: readonly Violation[]): void {
  found.push(...more.slice(0, MAX_VIOLATIONS - found.length));
}

/** Checks without looking at the parts of the value. As in Python, keywords ignore values of other types. */
function isPlainMatch(schema: JsonSchema, value: unknown): boolean {
  const { pattern } = schema;
  if (!hasTypeOf(schema, value)) {
    return false;
  }
  if (schema.enum !== undefined && !schema.enum.includes(value)) {
    return false;
  }
  if (schema.case_sensitive_enum !== undefined && !schema.case_sensitive_enum.some((one) => one === value)) {
    return false;
  }
  const { case_insensitive_enum: names } = schema;
  if (
    names !== undefined &&
    !(typeof value === 'string' && names.some((one) => one.toLowerCase() === value.toLowerCase()))
  ) {
    return false;
  }
  if (typeof value === 'string') {
    // In characters, each of one or two code units.
    const isLong = (limit: number) =>
      value.length >= 2 * limit || (value.length >= limit && [...value].length >= limit);
    return (
      (pattern === undefined || pythonPattern(pattern).test(value)) &&
      (schema.minLength === undefined || isLong(schema.minLength)) &&
      (schema.maxLength === undefined || !isLong(schema.maxLength + 1))
    );
  }
  if (typeof value === 'number' || typeof value === 'bigint') {
    // Nothing is less than NaN.
    return !(
      (schema.minimum !== undefined && value < schema.minimum) ||
      (schema.maximum !== undefined && value > schema.maximum) ||
      (schema.exclusiveMinimum !== undefined && value <= schema.exclusiveMinimum)
    );
  }
  if (Array.isArray(value)) {
    return isWithin(value.length, schema.minItems, schema.maxItems);
  }
  return !isMapping(value) || isWithin(Object.keys(value).length, schema.minProperties, schema.maxProperties);
}

function isWithin(count: number, min = 0, max = Number.POSITIVE_INFINITY): boolean {
  return count >= min && count <= max;
}

function hasRepetition(items: readonly unknown[]): boolean {
  const seen = new Set(items.map((item) => `${typeof item} ${JSON.stringify(item, plain)}`));
  return seen.size < items.length;
}

/** Normalizes for Python's comparison: whole numbers of any size, and names in any order. */
function plain(_: string, value: unknown): unknown {
  if (typeof value === 'bigint' || typeof value === 'symbol') {
    return `${typeof value} ${String(value)}`;
  }
  return isMapping(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
    : value;
}

/** The mistakes of the alternative for which the value was meant, or one mistake that names them all. */
function meant(
  at: Pick<Violation, 'path' | 'schema' | 'value'>,
  schemas: readonly JsonSchema[],
  branches: readonly (readonly Violation[])[],
): readonly Violation[] {
  const fitting = branches.filter((_, index) => allowsTypeOf(schemas[index] ?? {}, at.value));
  const deep = fitting.filter((found) =>
    found.every(({ path, kind }) => kind !== 'value' || path.length > at.path.length),
  );
  const [best] = [...deep].sort((a, b) => a.length - b.length);
  return best === undefined || best.length === 0 ? [{ ...at, kind: 'value' }] : best;
}

/** Whether a schema only restricts the keys of a mapping. */
function isAboutKeys({ required, not, anyOf, ...further }: JsonSchema): boolean {
  return (
    Object.keys(further).length === 0 &&
    (required !== undefined || not !== undefined || anyOf !== undefined) &&
    [...(not === undefined ? [] : [not]), ...(anyOf ?? [])].every(isAboutKeys)
  );
}

function requiredIn({ required = [], anyOf = [], not }: JsonSchema): string[] {
  return [...required, ...anyOf.flatMap(requiredIn), ...(not === undefined ? [] : requiredIn(not))];
}

/**
 * Patterns in the notation of Python's `re`, as regular expressions. They differ: `$` also matches before a
 * last line break, `.` excludes only `\n`, `\d` is any decimal digit, and `(?i:…)` ignores case in a group,
 * which Node 20 does not support.
 */
const TOKEN = /\\.|\[(?:\\.|[^\]\\])*\]|\(\?i:|\(\?:|[()$.]|[A-Za-z]/gsu;

const KNOWN = new Map<string, RegExp>();

/** To be searched for, not anchored. @throws SyntaxError for an invalid pattern */
export function pythonPattern(pattern: string): RegExp {
  const known = KNOWN.get(pattern);
  if (known !== undefined) {
    return known;
  }
  // One entry for each open group: whether it ignores case.
  const groups: boolean[] = [];
  const source = pattern.replace(TOKEN, (token) => {
    const ignoresCase = groups.at(-1) ?? false;
    switch (token) {
      case '(?i:':
        groups.push(true);
        return '(?:';
      case '(':
      case '(?:':
        groups.push(ignoresCase);
        return token;
      case ')':
        groups.pop();
        return token;
      case '$':
        return '(?=\\n?(?![^]))';
      case '.':
        return '[^\\n]';
      case '\\d':
        return '\\p{Nd}';
      default:
        return ignoresCase && /^[A-Za-z]$/.test(token) ? eitherCase(token) : token;
    }
  });
  const expression = new RegExp(source, 'u');
  KNOWN.set(pattern, expression);
  return expression;
}

/** Python also matches the long s and the kelvin sign. */
function eitherCase(letter: string): string {
  const further: Readonly<Record<string, string>> = { s: 'ſ', k: '\u212a' };
  const small = letter.toLowerCase();
  return `[${small}${small.toUpperCase()}${further[small] ?? ''}]`;
}
