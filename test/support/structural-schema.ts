/** JSON schemas as zod writes them, in the words that a CustomResourceDefinition has for the same. */
import { isMapping, type Mapping } from '../../src/base/yaml/tree.ts';

/** What zod has to say and Kubernetes doesn't: it refuses unknown fields by itself. */
const WITHOUT_WORD = ['$schema', 'additionalProperties', 'propertyNames', 'const', 'anyOf'];

/**
 * A structural schema that accepts what this one does. Knows the keywords that are used here, and passes the others on: what
 * Kubernetes would not take is for `structuralMistakes` to find.
 */
export function structuralSchema(schema: unknown): Mapping {
  if (!isMapping(schema)) {
    throw new TypeError(`expected a schema, got ${JSON.stringify(schema)}`);
  }
  const { additionalProperties, propertyNames, const: only, anyOf } = schema;
  const kept = Object.entries(schema)
    .filter(([keyword]) => !WITHOUT_WORD.includes(keyword))
    .map(([keyword, value]) => [keyword, below(keyword, value)]);
  return {
    ...(anyOf === undefined ? {} : alternatives(anyOf)),
    ...(only === undefined ? {} : { enum: [only] }),
    ...Object.fromEntries(kept),
    ...(isMapping(additionalProperties)
      ? { additionalProperties: structuralSchema(additionalProperties) }
      : {}),
    ...(isMapping(propertyNames) ? names(propertyNames) : {}),
    ...extensions(schema),
  };
}

/**
 * Unknown fields are kept, for the webhook to refuse: without that the API server drops them, and a rule with a typing mistake is
 * empty. Lists and mappings of labels are one part: what several appliers merge could become empty, which means everything.
 */
function extensions({ type, properties, additionalProperties }: Mapping): Mapping {
  return {
    ...(type === 'object' && isMapping(properties) && { 'x-kubernetes-preserve-unknown-fields': true }),
    ...(type === 'object' && isMapping(additionalProperties) && { 'x-kubernetes-map-type': 'atomic' }),
    ...(type === 'array' && { 'x-kubernetes-list-type': 'atomic' }),
  };
}

function below(keyword: string, value: unknown): unknown {
  if (keyword === 'properties' && isMapping(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, structuralSchema(one)]));
  }
  return keyword === 'items' ? structuralSchema(value) : value;
}

/** The only ones that have a word: something, or null. */
function alternatives(anyOf: unknown): Mapping {
  if (!Array.isArray(anyOf)) {
    throw new TypeError('expected a list under anyOf');
  }
  const others = anyOf.filter((one) => one.type !== 'null');
  if (anyOf.length !== 2 || others.length !== 1) {
    throw new TypeError(`expected something or null under anyOf, got ${JSON.stringify(anyOf)}`);
  }
  return { ...structuralSchema(others[0]), nullable: true };
}

/** Of the names in a mapping it can only be said which must not be there. */
function names({ type, minLength, ...others }: Mapping): Mapping {
  if (type !== 'string' || Object.keys(others).length > 0 || (minLength !== undefined && minLength !== 1)) {
    throw new TypeError(
      `expected names that are not empty, got ${JSON.stringify({ type, minLength, ...others })}`,
    );
  }
  return minLength === undefined ? {} : { not: { required: [''] } };
}
