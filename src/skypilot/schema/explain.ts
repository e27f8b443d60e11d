/** Describes mistakes in plain words, without secrets. */

import { formatPath, type Mapping, type Path } from '../../base/yaml/tree.ts';
import { nearest } from '../../config/nearest.ts';
import { showText } from '../../config/secret.ts';
import { isSecretMember, isSecretVariable, SecretValues } from '../secrets.ts';
import type { Violation } from './check.ts';
import {
  alternativesOf,
  type JsonSchema,
  namesInPattern,
  patternWords,
  type TypeName,
} from './json-schema.ts';
import { keyHint } from './nearest-key.ts';

/** A mistake in words, with the path where it was written. */
export interface Explanation {
  readonly path: Path;
  readonly message: string;
}

/** Longer names are cut. */
const MAX_NAME = 60;

/** The useful mistakes of a tree, in words. `root` is the schema of the tree. */
export function explained(violations: readonly Violation[], root: JsonSchema, tree: Mapping): Explanation[] {
  const secrets = SecretValues.of(tree);
  const meantFor = new Set<string>();
  const all = violations.map((violation) => {
    const { path, kind } = violation;
    if (kind !== 'unknown key') {
      return { violation, path, words: wordsFor(violation, secrets) };
    }
    const { key, schema } = violation;
    const hint = keyHint({ key, at: path, schema }, root, tree);
    if (hint.meantFor !== undefined) {
      meantFor.add(JSON.stringify(hint.meantFor));
    }
    return { violation, path: [...path, key], words: hint.words };
  });
  return (
    all
      // Drops an empty key whose block is not indented: the block is reported instead.
      .filter(
        ({ violation: { kind, value, path } }) =>
          kind !== 'value' || value !== null || !meantFor.has(JSON.stringify(path)),
      )
      .map(({ path, words }) => ({ path, message: `${shownPath(path)}${words}` }))
  );
}

function wordsFor(violation: Violation, secrets: SecretValues): string {
  switch (violation.kind) {
    case 'missing key':
      return `expected the key "${violation.key}" in it`;
    case 'unknown key':
      return 'unknown key';
    case 'repeated item':
      return 'expected no item twice';
    case 'forbidden keys':
      return `expected none of the keys ${violation.keys.join(', ')} in it`;
    case 'one of keys':
      return `expected only one of the keys ${violation.keys.join(', ')} in it`;
    case 'value':
      return valueWords(violation, secrets);
  }
}

function valueWords({ schema, value, path }: Violation, secrets: SecretValues): string {
  const expected = `expected ${expectation(schema)}`;
  return isSecretPath(path)
    ? expected
    : `${expected}, got ${secrets.hideIn(shownValue(value))}${nearestValue(schema, value)}`;
}

function shownValue(value: unknown): string {
  if (value === null || value === undefined) {
    return 'nothing';
  }
  if (Array.isArray(value)) {
    return value.length === 0 ? 'an empty list' : 'a list';
  }
  if (typeof value === 'symbol') {
    return `the date ${value.description ?? ''}; for a text, write it in quotes`;
  }
  return typeof value === 'object'
    ? 'a mapping'
    : showText(typeof value === 'bigint' ? String(value) : value);
}

/** Whether a value may be a secret, by the names above it. */
function isSecretPath(path: Path): boolean {
  return path.some(
    (step, index) =>
      typeof step === 'string' &&
      (step === 'secrets' || (path[index - 1] === 'envs' ? isSecretVariable(step) : isSecretMember(step))),
  );
}

/** `kubernetes.pod_config: `, with long names cut. */
function shownPath(path: Path): string {
  const short = path.map((step) =>
    typeof step === 'string' && step.length > MAX_NAME ? `${step.slice(0, MAX_NAME)}…` : step,
  );
  return short.length === 0 ? '' : `${formatPath(short)}: `;
}

const TYPE_WORDS: Readonly<Record<TypeName, string>> = {
  string: 'a string',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a mapping',
  null: 'null',
};

const MAX_NAMES = 10;

/** The expected value: `a whole number from 0 to 255`, `true or false`, `one of ALL, BUILD`. */
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

/** `; the nearest right one is "aws"`; empty = none is near. */
function nearestValue(schema: JsonSchema, value: unknown): string {
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

/** Uses the singular for 1. */
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
