/** Turns zod issues into messages for operators. */
import type { z } from 'zod';
import { formatPath, type Mapping, type Path, shown, valueAt } from '../../../base/yaml/tree.ts';
import { nearestName } from '../../../config/nearest.ts';
import { DRAFT_SPELLINGS, policySpecSchema } from './policy-schema.ts';

const AFFINITY_KINDS = ['nodeAffinities', 'podAffinities', 'podAntiAffinities'];
const AFFINITIES = ['affinities', 'allowedAffinities'];

export function* schemaProblems(
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
    yield { path: path.slice(0, -1), message: `expected a label name, got ${shown(key)}` };
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
  if (path.length === 0 && Object.hasOwn(policySpecSchema.shape, key)) {
    return 'unknown field; it belongs under spec';
  }
  return known.every((name) => name === '')
    ? 'unknown field; only {} is possible here, and it allows everything'
    : `unknown field${nearestName(key, known)}`;
}
