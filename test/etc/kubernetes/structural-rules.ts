/**
 * What the API server refuses in the schema of a CustomResourceDefinition.
 * Source: Kubernetes docs, "Extend the Kubernetes API with CustomResourceDefinitions", specifying a structural schema.
 */
import { isMapping, type Mapping } from '../../../src/base/yaml/tree.ts';

const STRUCTURE = [
  'type',
  'properties',
  'additionalProperties',
  'items',
  'nullable',
  'description',
  'title',
  'default',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
];
const JUNCTORS = ['allOf', 'anyOf', 'oneOf', 'not'];
/** Value validations, which are also allowed in junctors. */
const VALIDATIONS = [
  'enum',
  'format',
  'pattern',
  'required',
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  ...['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'],
];
const TYPES = ['object', 'array', 'string', 'integer', 'number', 'boolean'];

/** Each with its place, such as `spec.required: …`. Empty if the API server accepts the schema. */
export function structuralMistakes(schema: unknown, at = 'schema'): string[] {
  if (!isMapping(schema)) {
    return [`${at}: no schema`];
  }
  const { type, properties, additionalProperties, items } = schema;
  const unknown = Object.keys(schema).filter(
    (keyword) => ![...STRUCTURE, ...JUNCTORS, ...VALIDATIONS].includes(keyword),
  );
  return [
    ...unknown.map((keyword) => `${at}: ${keyword} is not allowed`),
    ...(TYPES.includes(String(type)) ? [] : [`${at}: no type`]),
    ...(properties !== undefined && additionalProperties !== undefined
      ? [`${at}: properties and additionalProperties exclude each other`]
      : []),
    ...(type === 'array' && items === undefined ? [`${at}: no items`] : []),
    ...mapKeyMistakes(schema).map((mistake) => `${at}: ${mistake}`),
    ...fieldsOf(schema).flatMap(([name, field]) => structuralMistakes(field, `${at}.${name}`)),
    ...(additionalProperties === undefined ? [] : structuralMistakes(additionalProperties, `${at}.*`)),
    ...(items === undefined ? [] : structuralMistakes(items, `${at}[]`)),
    ...inJunctors(schema).flatMap(([name, inner]) => junctorMistakes(inner, schema, `${at}.${name}`)),
  ];
}

/** The keys of a list that is a map: fields of its items that each item must have. */
function mapKeyMistakes(schema: Mapping): string[] {
  const keys = schema['x-kubernetes-list-map-keys'];
  const isMap = schema['x-kubernetes-list-type'] === 'map';
  if (keys === undefined && !isMap) {
    return [];
  }
  if (!Array.isArray(keys) || keys.length === 0 || !isMap || !isMapping(schema.items)) {
    return ['a list of the type map has keys, and no other has'];
  }
  const { required } = schema.items;
  return keys
    .filter((key) => !Array.isArray(required) || !required.includes(key))
    .map((key) => `its key ${String(key)} is not required`);
}

/** A junctor contains only value validations, of fields that are specified outside of it. */
function junctorMistakes(schema: unknown, outside: unknown, at: string): string[] {
  if (!isMapping(schema)) {
    return [`${at}: no schema`];
  }
  const { items } = schema;
  const specified = isMapping(outside) ? outside : {};
  const known = Object.fromEntries(fieldsOf(specified));
  const unknown = Object.keys(schema).filter(
    (keyword) => !['properties', 'items', ...JUNCTORS, ...VALIDATIONS].includes(keyword),
  );
  return [
    ...unknown.map((keyword) => `${at}: ${keyword} is not allowed inside of ${JUNCTORS.join(', ')}`),
    ...fieldsOf(schema).flatMap(([name, field]) =>
      name in known
        ? junctorMistakes(field, known[name], `${at}.${name}`)
        : [`${at}.${name}: not specified outside`],
    ),
    ...(items === undefined
      ? []
      : specified.items === undefined
        ? [`${at}[]: not specified outside`]
        : junctorMistakes(items, specified.items, `${at}[]`)),
    ...inJunctors(schema).flatMap(([name, inner]) => junctorMistakes(inner, specified, `${at}.${name}`)),
  ];
}

function fieldsOf({ properties }: Mapping): [string, unknown][] {
  return isMapping(properties) ? Object.entries(properties) : [];
}

function inJunctors(schema: Mapping): [string, unknown][] {
  return JUNCTORS.flatMap((name) => {
    const inner = schema[name];
    const all = inner === undefined ? [] : Array.isArray(inner) ? inner : [inner];
    return all.map((one): [string, unknown] => [name, one]);
  });
}
