/** What zod has against a document, in words that an operator can act on. */
import type { z } from 'zod';
import { nearestName } from '../config/nearest.ts';
import { formatPath, isMapping, type Mapping, type Path } from '../yaml/tree.ts';
import { DRAFT_SPELLINGS } from './policy-schema.ts';

const AFFINITY_KINDS = ['nodeAffinities', 'podAffinities', 'podAntiAffinities'];
const AFFINITIES = ['affinities', 'allowedAffinities'];

/** One or more of an issue, each with its place. */
export function* mistakes(
  issue: z.core.$ZodIssue,
  value: Mapping,
): Generator<{ path: Path; message: string }> {
  const path = issue.path as Path;
  if (issue.code === 'unrecognized_keys') {
    const known = issue.message.split(' ').filter((name) => !DRAFT_SPELLINGS.has(name));
    for (const key of issue.keys) {
      yield { path: [...path, key], message: unknownField(key, path, known) };
    }
    return;
  }
  if (issue.code === 'invalid_key') {
    const [key] = path.slice(-1);
    yield { path: path.slice(0, -1), message: `expected names of labels, got ${shown(key)}` };
    return;
  }
  const got = valueAt(value, path);
  yield { path, message: `expected ${issue.message}${got === undefined ? '' : `, got ${shown(got)}`}` };
}

function unknownField(key: string, path: Path, known: readonly string[]): string {
  const affinities = path.findIndex((step) => AFFINITIES.includes(String(step)));
  if (AFFINITY_KINDS.includes(key) && affinities >= 0) {
    return `nested too deep: it belongs under ${formatPath(path.slice(0, affinities + 1))}`;
  }
  return known.every((name) => name === '')
    ? 'unknown field; {} allows all of it, and there is nothing finer'
    : `unknown field${nearestName(key, known)}`;
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (at, step) => (typeof at === 'object' && at !== null ? (at as Record<string, unknown>)[step] : undefined),
    value,
  );
}

/** Without repeating what may be long. */
export function shown(value: unknown): string {
  if (typeof value === 'string') {
    return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value);
  }
  if (Array.isArray(value)) {
    return value.length === 0 ? 'an empty list' : `a list of ${value.length}`;
  }
  if (isMapping(value)) {
    return Object.keys(value).length === 0 ? 'an empty mapping' : 'a mapping';
  }
  return value === undefined ? 'nothing' : String(value);
}
