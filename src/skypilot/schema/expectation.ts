/** What a schema expects, in plain words. */
import { nearest } from '../../config/nearest.ts';
import { alternativesOf, type JsonSchema, type TypeName } from './json-schema.ts';
import { namesInPattern, patternWords } from './pattern-words.ts';

const TYPE_WORDS: Readonly<Record<TypeName, string>> = {
  string: 'a string',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a mapping',
  null: 'null',
};

/** Lists of names with more are shortened. */
const MAX_NAMES = 10;

/** `a whole number from 0 to 255`, `true or false`, `one of ALL, BUILD`. */
export function expectation(schema: JsonSchema): string {
  const { type = [], pattern } = schema;
  const names = namesIn(schema);
  if (names !== undefined) {
    return namesWords(names);
  }
  if (alternativesOf(schema).length > 0) {
    return joined(leavesOf(schema).map(expectation));
  }
  if (pattern !== undefined) {
    return patternWords(pattern);
  }
  return joined((typeof type === 'string' ? [type] : type).map((one) => typeWords(one, schema)));
}

/** `; the nearest right one is "aws"`; empty if none is near. */
export function nearestValue(schema: JsonSchema, value: unknown): string {
  if (typeof value !== 'string') {
    return '';
  }
  const choices = [schema, ...alternativesOf(schema)];
  const names = choices.flatMap((one) => namesIn(one) ?? []);
  const clouds = choices.flatMap(({ pattern }) => (pattern === undefined ? [] : namesInPattern(pattern)));
  if (clouds.length > 0) {
    const [cloud = ''] = value.split('/');
    const known = [...clouds, 'kubernetes', 'k8s'];
    return known.includes(cloud.toLowerCase()) ? '' : nearestOf(known, cloud);
  }
  return nearestOf(names, value);
}

function nearestOf(names: readonly string[], value: string): string {
  const near = nearest(value, names);
  return near === undefined ? '' : `; the nearest right one is "${near}"`;
}

/** Alternatives of alternatives are alternatives. */
function leavesOf(schema: JsonSchema): readonly JsonSchema[] {
  const below = alternativesOf(schema);
  return below.length === 0 ? [schema] : below.flatMap(leavesOf);
}

function namesIn(schema: JsonSchema): readonly string[] | undefined {
  return schema.case_insensitive_enum ?? schema.case_sensitive_enum ?? schema.enum?.map((one) => String(one));
}

function namesWords(names: readonly string[]): string {
  const what = names.includes('kubernetes') && names.includes('aws') ? 'a cloud' : 'one of';
  if (names.length === 1) {
    return `"${names[0]}"`;
  }
  const shown = names.slice(0, MAX_NAMES).join(', ');
  const rest = names.length - MAX_NAMES;
  const list = rest > 0 ? `${shown} and ${rest} more` : shown;
  return what === 'a cloud' ? `a cloud (${list})` : `one of ${list}`;
}

function typeWords(type: TypeName, schema: JsonSchema): string {
  const words = TYPE_WORDS[type];
  switch (type) {
    case 'integer':
    case 'number':
      return `${words}${numberWords(schema)}`;
    case 'string':
      return schema.minLength === 1 && schema.maxLength === undefined
        ? 'a string that is not empty'
        : `${words}${countWords('characters', schema.minLength, schema.maxLength)}`;
    case 'array':
      return `${words}${countWords('items', schema.minItems, schema.maxItems)}`;
    case 'object':
      return `${words}${countWords('keys', schema.minProperties, schema.maxProperties)}`;
    default:
      return words;
  }
}

function numberWords({ minimum, maximum, exclusiveMinimum }: JsonSchema): string {
  if (minimum !== undefined && maximum !== undefined) {
    return ` from ${minimum} to ${maximum}`;
  }
  return [
    ...(minimum === undefined ? [] : [` of at least ${minimum}`]),
    ...(exclusiveMinimum === undefined ? [] : [` greater than ${exclusiveMinimum}`]),
    ...(maximum === undefined ? [] : [` of at most ${maximum}`]),
  ].join(' and');
}

/** ` with at least 1 items` is no English. */
function countWords(unit: string, min = 0, max = Number.POSITIVE_INFINITY): string {
  const of = (count: number) => `${count} ${count === 1 ? unit.slice(0, -1) : unit}`;
  if (min === max) {
    return ` with ${of(min)}`;
  }
  return [
    ...(min > 0 ? [` with at least ${of(min)}`] : []),
    ...(max < Number.POSITIVE_INFINITY ? [` with at most ${of(max)}`] : []),
  ].join(' and');
}

/** `a string, a list or null` */
function joined(words: readonly string[]): string {
  const unique = [...new Set(words)];
  const last = unique.at(-1) ?? 'another value';
  return unique.length < 2 ? last : `${unique.slice(0, -1).join(', ')} or ${last}`;
}
