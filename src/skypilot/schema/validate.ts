/**
 * Validates a SkyPilot configuration or task as SkyPilot's API server does when it reads one. Source:
 * SkyPilot 0.13, its schemas and where it applies them.
 */
import type { Origin, Problem } from '../../base/errors.ts';
import { isMapping, type Mapping, mapMembers, member, type Path, setMember } from '../../base/yaml/tree.ts';
import { TooLargeError, violationsOf } from './check.ts';
import { type Explanation, explained } from './explain.ts';
import { type JsonSchema, schemaOf } from './json-schema.ts';

/** The file and line of the value at a path. */
export type OriginOf = (path: Path) => Origin | undefined;

/** Maximum number of listed problems. */
export const MAX_PROBLEMS = 50;

/**
 * The problems of a configuration: one file, or the merged result. All are errors, with file and line,
 * without secrets. Empty = SkyPilot accepts it. `tree`: `YamlDocument.typed`, in which dates are not texts.
 */
export function validateConfig(tree: Mapping, originOf: OriginOf): Problem[] {
  return problemsOf(schemaOf('config'), tree, originOf);
}

/**
 * The problems of one task, in a file or as sent, with its resources, service, storage and configuration. As
 * `validateConfig`.
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

/** SkyPilot's copy of the user's text: not part of the task. */
const AS_WRITTEN = '_user_specified_yaml';
const ALTERNATIVES = ['any_of', 'ordered'] as const;

let schema: JsonSchema | undefined;

/** The schema of a task, including the schemas of its parts. */
export function taskSchema(): JsonSchema {
  schema ??= combined();
  return schema;
}

function combined(): JsonSchema {
  const task = schemaOf('task');
  const service = schemaOf('service');
  const resources = schemaOf('resources');
  const overrides = { _cluster_config_overrides: propertyOf(task, 'config') };
  const alternatives = ALTERNATIVES.map((name) => {
    const list = propertyOf(resources, name);
    return [name, { ...list, items: withAlias(list.items ?? {}, overrides) }] as const;
  });
  return extended(task, {
    resources: withAlias(resources, { ...overrides, ...Object.fromEntries(alternatives) }),
    service,
    pool: propertyOf(service, 'pool'),
    file_mounts: {
      type: 'object',
      additionalProperties: { anyOf: [{ type: 'string' }, schemaOf('storage')] },
    },
  });
}

/** `gpus` is another name of `accelerators`; SkyPilot refuses both together. */
function withAlias(resources: JsonSchema, further: Readonly<Record<string, JsonSchema>>): JsonSchema {
  const gpus = propertyOf(resources, 'accelerators');
  return { ...extended(resources, { gpus, ...further }), not: { required: ['accelerators', 'gpus'] } };
}

function extended(schema: JsonSchema, further: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return { ...schema, properties: { ...schema.properties, ...further } };
}

function propertyOf(schema: JsonSchema, name: string): JsonSchema {
  return schema.properties?.[name] ?? {};
}

/** The task as SkyPilot checks it, with the same paths. */
function taskForm(task: Mapping): Mapping {
  const { [AS_WRITTEN]: _, ...written } = task;
  const form: Record<string, unknown> = withoutNulls(written);
  const variables = { ...textsIn(form.envs), ...textsIn(form.secrets) };
  for (const name of ['envs', 'secrets'] as const) {
    if (name in form) {
      form[name] = asTexts(form[name]);
    }
  }
  if (isMapping(form.resources)) {
    form.resources = withoutNulls(form.resources);
  }
  if (isMapping(form.service)) {
    form.service = withoutNulls(filled(form.service, variables) as Mapping);
  }
  if (isMapping(form.file_mounts)) {
    form.file_mounts = mapMembers(form.file_mounts, (mount) =>
      isMapping(mount) ? storageForm(filled(mount, variables) as Mapping) : mount,
    );
  }
  return form;
}

/** Removes keys without a value at the top of each part: SkyPilot treats them as absent. */
function withoutNulls(mapping: Mapping): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(mapping)) {
    if (value !== null) {
      setMember(kept, name, value);
    }
  }
  return kept;
}

/** A volume of the old form has no schema. */
function storageForm(storage: Mapping): unknown {
  return storage.store === 'volume' ? 'volume' : withoutNulls(storage);
}

/** SkyPilot converts the values of variables to text. */
function asTexts(value: unknown): unknown {
  if (isMapping(value)) {
    return mapMembers(value, (one) => (one === null ? null : textOf(one)));
  }
  return Array.isArray(value) ? value.map(textOf) : value;
}

function textsIn(value: unknown): Record<string, unknown> {
  return isMapping(value) ? withoutNulls(value) : {};
}

/** Only its type matters, not its form. */
function textOf(value: unknown): string {
  return typeof value === 'object'
    ? ''
    : typeof value === 'symbol'
      ? (value.description ?? '')
      : String(value);
}

/** Replaces `$NAME` and `${NAME}` in texts, as SkyPilot does before it checks a storage or service. */
function filled(value: unknown, variables: Mapping): unknown {
  if (typeof value === 'string') {
    return value.replace(/\$\{?\b([a-zA-Z_][a-zA-Z0-9_]*)\b\}?/g, (all, name: string) => {
      const variable = member(variables, name);
      return variable === undefined ? all : textOf(variable);
    });
  }
  if (Array.isArray(value)) {
    return value.map((item) => filled(item, variables));
  }
  return isMapping(value) ? mapMembers(value, (item) => filled(item, variables)) : value;
}
