/** Says what is wrong with a value in plain words, without secrets. */
import { showText } from '../../config/secret.ts';
import { formatPath, type Mapping, type Path } from '../../yaml/tree.ts';
import { isSecretMember, isSecretVariable } from '../secret-names.ts';
import { SecretValues } from '../secrets.ts';
import type { Violation } from './check.ts';
import { expectation, nearestValue } from './expectation.ts';
import type { JsonSchema } from './json-schema.ts';
import { keyHint } from './nearest-key.ts';

/** A mistake in words, at the path where it was written. */
export interface Explanation {
  readonly path: Path;
  readonly message: string;
}

/** Longer names are cut. */
const MAX_NAME = 60;

/** The useful ones of all mistakes in a tree, in words. `root` is the schema of the tree. */
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
      // A key with nothing below it, whose block is not indented: the block is named.
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

/** `kubernetes.pod_config: `, with names that can be read. */
export function shownPath(path: Path): string {
  const short = path.map((step) =>
    typeof step === 'string' && step.length > MAX_NAME ? `${step.slice(0, MAX_NAME)}…` : step,
  );
  return short.length === 0 ? '' : `${formatPath(short)}: `;
}
