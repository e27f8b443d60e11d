/** A schema without what does not decide, so that two of them can be compared. */

/** They explain, or mean nothing. */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set(['$schema', 'title', 'description', 'default']);
/** Their members are names of keys, not keywords. */
const OF_NAMES: ReadonlySet<string> = new Set(['properties', 'patternProperties']);

export type Schema = { readonly [keyword: string]: unknown };

export function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function normalForm(schema: Schema): Schema {
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([keyword, value]) => !WITHOUT_EFFECT.has(keyword) && !isEmpty(keyword, value))
      .map(([keyword, value]) => [keyword, OF_NAMES.has(keyword) ? named(value) : below(value)]),
  );
}

function isEmpty(keyword: string, value: unknown): boolean {
  return keyword === 'required' && Array.isArray(value) && value.length === 0;
}

function named(value: unknown): unknown {
  return isSchema(value)
    ? Object.fromEntries(Object.entries(value).map(([name, schema]) => [name, below(schema)]))
    : value;
}

function below(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(below);
  }
  return isSchema(value) ? normalForm(value) : value;
}
