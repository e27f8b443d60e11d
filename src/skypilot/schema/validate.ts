/**
 * Validates a SkyPilot configuration or task as SkyPilot's API server does when it reads one. Source: SkyPilot 0.13, its schemas
 * and when it applies them.
 */
import type { Origin, Problem } from '../../base/errors.ts';
import type { Mapping, Path } from '../../yaml/tree.ts';
import { TooLargeError, violationsOf } from './check.ts';
import { schemaOf } from './data.ts';
import { type Explanation, explained } from './explain.ts';
import type { JsonSchema } from './json-schema.ts';
import { taskForm, taskSchema } from './task-form.ts';

/** The file and line of the value at a path. */
export type OriginOf = (path: Path) => Origin | undefined;

/** Further problems are not listed. */
export const MAX_PROBLEMS = 50;

/**
 * The problems of a configuration: one file, or the merged result. All are errors, with the file and line, and without secrets.
 * Empty if SkyPilot accepts it. `tree`: `YamlDocument.typed`, in which dates are no texts.
 */
export function validateConfig(tree: Mapping, originOf: OriginOf): Problem[] {
  return problemsOf(schemaOf('config'), tree, originOf);
}

/**
 * The problems of one task, in a file or as SkyPilot sends it, with its resources, service, storage and configuration. As
 * for `validateConfig`.
 */
export function validateTask(tree: Mapping, originOf: OriginOf): Problem[] {
  return problemsOf(taskSchema(), taskForm(tree), originOf);
}

function problemsOf(schema: JsonSchema, form: Mapping, originOf: OriginOf): Problem[] {
  const found = mistakes(schema, form);
  const listed = found
    .slice(0, MAX_PROBLEMS)
    .map(({ path, message }): Problem => ({ severity: 'error', origin: originOf(path), message }));
  return found.length <= MAX_PROBLEMS
    ? listed
    : [...listed, { severity: 'error', origin: originOf([]), message: 'further problems are not listed' }];
}

function mistakes(schema: JsonSchema, form: Mapping): Explanation[] {
  try {
    const violations = violationsOf(schema, form);
    return violations.length === 0 ? [] : explained(violations, schema, form);
  } catch (thrown) {
    if (thrown instanceof TooLargeError) {
      return [{ path: [], message: thrown.message }];
    }
    throw thrown;
  }
}
