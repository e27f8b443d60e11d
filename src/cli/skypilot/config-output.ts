/** The output of `skypilot config`: the merged configuration, or SkyPilot's value of a key. */
import { ConfigurationError, type Problem } from '../../base/errors.ts';
import { YamlDocument } from '../../base/yaml/document.ts';
import { formatPath, valueAt } from '../../base/yaml/tree.ts';
import type { TaskSource } from '../../skypilot/config/config-file.ts';
import type { Source } from '../../skypilot/config/config-schema.ts';
import type { UnreadFile } from '../../skypilot/config/config-sources.ts';
import {
  type EffectiveValue,
  effectiveValueOf,
  type LookedAt,
} from '../../skypilot/config/effective/effective-value.ts';
import { keyOf, placeProblems, unknownKey, workspaceOf } from '../../skypilot/config/effective/question.ts';
import { RULES } from '../../skypilot/config/effective/readers.ts';
import type { Reading } from '../../skypilot/config/effective/rules.ts';
import {
  type LeafSource,
  partOf,
  placedAt,
  TracedMergeError,
  taskOverrides,
  tracedConfig,
} from '../../skypilot/config/effective/traced.ts';
import { formatPlace, type MergedConfig, mergeSources } from '../../skypilot/config/layers.ts';
import { SecretValues, withoutSecrets } from '../../skypilot/secrets.ts';
import { headingOf, type PipelineTask } from '../../skypilot/task/pipeline.ts';
import { type Columns, jsonText, onOneLine, printRows, UsageError } from '../common/output.ts';

export interface Merged {
  readonly task: PipelineTask | null;
  readonly merged: MergedConfig;
}

export interface PrintFlags {
  readonly get?: string;
  readonly context?: string;
  readonly region?: string;
  readonly zone?: string;
  readonly workspace?: string;
  readonly explain?: boolean;
  readonly showSecrets?: boolean;
  readonly format: 'yaml' | 'json';
}

/** Prints the output of each task: as one JSON value, or one after the other. */
async function printEach<One extends { readonly task: PipelineTask | null }>(
  all: readonly One[],
  { format, explain }: PrintFlags,
  key: 'config' | 'value',
  as: { json(one: One): unknown; explain(one: One): Promise<void>; tree(one: One): unknown },
): Promise<void> {
  if (format === 'json') {
    const values = all.map((one) => {
      const { task } = one;
      const value = as.json(one);
      return task === null
        ? value
        : { task: task.number, of: task.of, name: task.name, [key]: value ?? null };
    });
    process.stdout.write(`${jsonText(all.length === 1 ? (values[0] ?? null) : values, 2)}\n`);
    return;
  }
  for (const [index, one] of all.entries()) {
    const heading = one.task === null ? '' : onOneLine(headingOf(one.task));
    if (explain === true) {
      process.stdout.write(`${index === 0 ? '' : '\n'}${heading === '' ? '' : `${heading}\n`}`);
      await as.explain(one);
    } else {
      const tree = as.tree(one);
      process.stdout.write(heading === '' ? '' : `--- # ${heading}\n`);
      process.stdout.write(tree === undefined ? '' : YamlDocument.from(tree).toString());
    }
  }
}

const VALUE_COLUMNS: Columns<{ key: string; value: unknown; source: string; beats: readonly string[] }> = {
  KEY: ({ key }) => key,
  VALUE: ({ value }) => jsonText(value),
  SOURCE: ({ source }) => source,
  OVERRIDES: ({ beats }) => beats.join(', '),
};

export async function printConfig(
  all: readonly Merged[],
  unread: readonly UnreadFile[],
  flags: PrintFlags,
): Promise<void> {
  const shown = all.map(({ task, merged }) => ({ task, ...shownOf(merged, unread, flags) }));
  await printEach(shown, flags, 'config', {
    json: ({ tree, explained, dropped }) => (flags.explain === true ? [...explained, ...dropped] : tree),
    explain: async ({ explained, dropped }) => {
      await printRows(explained, VALUE_COLUMNS);
      if (dropped.length > 0) {
        process.stdout.write('\n');
        await printRows(dropped, {
          DROPPED: ({ key }) => key,
          SOURCE: ({ source }) => source,
          WHY: ({ why }) => why,
        });
      }
    },
    tree: ({ tree }) => tree,
  });
}

function shownOf({ tree, leaves, dropped }: MergedConfig, unread: readonly UnreadFile[], flags: PrintFlags) {
  const shown = (flags.showSecrets === true ? tree : withoutSecrets(tree)) as typeof tree;
  const explained = leaves.map(({ path, source, beats }) => ({
    key: formatPath(path),
    value: valueAt(shown, path),
    source: formatPlace(source),
    beats: beats.map(formatPlace),
  }));
  const files = unread.map(({ level, file, message }) => ({
    key: '(the file)',
    source: `${level} ${file}`,
    dropped: 'file',
    why: message,
  }));
  const keys = dropped.map(({ key, place, reason, message }) => ({
    key,
    source: formatPlace(place),
    dropped: reason,
    why: message,
  }));
  return { tree: shown, explained, dropped: [...files, ...keys] };
}

/** The merged sources without tasks, and the merged source of each task. */
interface ReadConfig {
  readonly config: MergedConfig;
  readonly commandLine: MergedConfig;
  /** Empty without a task file. */
  readonly tasks: readonly { readonly source: TaskSource; readonly config: MergedConfig }[];
}

interface Answer {
  /** `null` unless there are several tasks. */
  readonly task: PipelineTask | null;
  readonly reading: Reading<LeafSource>;
  readonly answer: EffectiveValue<LeafSource>;
}

/** Flags that require `--get`. */
const OWN_FLAGS = ['context', 'region', 'zone', 'workspace'] as const;

/** @throws UsageError for flags that have no effect without `--get` */
export function requireGet(flags: PrintFlags): void {
  const given = OWN_FLAGS.filter((name) => flags[name] !== undefined);
  if (given.length > 0) {
    throw new UsageError(`--${given[0]}: expected --get with it`);
  }
}

/** Merges the sources of values. Tasks are not merged in: SkyPilot applies them as overrides. */
export function readConfig(sources: readonly Source[], tasks: readonly TaskSource[]): ReadConfig {
  return {
    config: mergeSources(sources),
    commandLine: mergeSources(sources.filter(({ level }) => level === 'command line')),
    tasks: tasks.map((source) => ({ source, config: mergeSources([source.source]) })),
  };
}

/** Prints the value. Returns warnings. @throws ConfigurationError if SkyPilot cannot merge the values */
export async function printEffectiveValue(read: ReadConfig, flags: PrintFlags): Promise<Problem[]> {
  const key = keyOf(flags.get ?? '');
  if (key === undefined) {
    throw new UsageError(
      `--get: expected keys with dots between, such as kubernetes.pod_config, got "${flags.get}"`,
    );
  }
  const workspace = flags.workspace ?? workspaceOf(read.config.tree);
  const { problems, region } = placeProblems(read.config.tree, key, { ...flags, workspace });
  const commandLine = tracedConfig(read.commandLine, 'task');
  const config = tracedConfig(read.config);
  const answers = (read.tasks.length === 0 ? [null] : read.tasks).map((task): Answer => {
    const own = task === null ? undefined : tracedConfig(task.config, 'task');
    const overrides = taskOverrides(own, commandLine);
    const reading = { config, task: overrides, workspace, region, zone: flags.zone };
    return {
      task: read.tasks.length < 2 ? null : (task?.source.task ?? null),
      reading,
      answer: answered(reading, key),
    };
  });
  for (const { answer, task } of answers) {
    if (answer.value === undefined) {
      const of = task === null ? '' : ` for task ${task.number}`;
      problems.push({
        severity: 'warning',
        message: `${flags.get}: not set${of}; SkyPilot's default applies`,
      });
    }
  }
  if (answers.every(({ answer }) => answer.value === undefined)) {
    const unknown = await unknownKey(key);
    if (unknown !== undefined) {
      throw new UsageError(`--get: ${unknown}`);
    }
  }
  const shown = answers.map((one) => ({ ...one, ...shownValue(one, flags) }));
  await printEach(shown, flags, 'value', {
    json: ({ value, explained }) => (flags.explain === true ? explained : value),
    explain: ({ explained }) => printExplanation(explained),
    tree: ({ value }) => value,
  });
  return problems;
}

function answered(reading: Reading<LeafSource>, key: readonly string[]): EffectiveValue<LeafSource> {
  try {
    return effectiveValueOf(reading, key);
  } catch (thrown) {
    if (thrown instanceof TracedMergeError) {
      const origin = (thrown.source as LeafSource | undefined)?.place.origin;
      const message = `SkyPilot cannot merge the values of ${key.join('.')}: ${thrown.message}`;
      throw new ConfigurationError([{ severity: 'error', origin, message }]);
    }
    throw thrown;
  }
}

type Explained = ReturnType<typeof shownValue>['explained'];

async function printExplanation({ key, of, rule, lookedAt, values, notes }: Explained): Promise<void> {
  const lines = [`${key} for ${of}${rule === null ? '' : `: ${rule}`}`, ''];
  process.stdout.write(lines.map((line) => `${onOneLine(line)}\n`).join(''));
  if (lookedAt.length > 0) {
    await printRows(lookedAt, {
      PLACE: (place) => (place.of === 'task' ? `${place.key} of the task` : place.key),
      STATE: ({ state }) => state,
    });
    process.stdout.write('\n');
  }
  if (values.length > 0) {
    await printRows(values, VALUE_COLUMNS);
  } else {
    process.stdout.write('not set\n');
  }
  for (const note of notes) {
    process.stdout.write(`note: ${onOneLine(note)}\n`);
  }
}

function shownValue({ reading, answer }: Answer, flags: PrintFlags) {
  const { key, whole, rule, leaves, lookedAt, notes } = answer;
  const value = valueAt(withoutSecretsOf(reading, whole, flags), whole.path);
  const at = [...whole.key, ...whole.path];
  const of = [
    ...(reading.region === undefined
      ? []
      : [`${reading.region}${reading.zone === undefined ? '' : `/${reading.zone}`}`]),
    `workspace ${reading.workspace}`,
  ].join(', ');
  const explained = {
    key: key.join('.').replaceAll('.[', '['),
    of,
    region: reading.region ?? null,
    zone: reading.zone ?? null,
    workspace: reading.workspace,
    isSet: answer.value !== undefined,
    value: value ?? null,
    rule: rule === undefined ? null : RULES[rule],
    lookedAt: lookedAt.map((place: LookedAt) => ({
      key: place.key.join('.'),
      of: place.where,
      state: place.state,
    })),
    values: leaves.map(({ path, source, beats }) => ({
      key: formatPath([...at, ...path]),
      value: valueAt(value, path),
      from: formatPath(source.key),
      source: formatPlace(source.place),
      beats: [...new Set(beats.map(({ place }) => formatPlace(place)))],
    })),
    notes,
  };
  return { value, explained };
}

/** Names around a value decide whether it is secret, so it is masked as part of the whole key. */
function withoutSecretsOf(
  { config, task }: Reading<LeafSource>,
  { key, value }: EffectiveValue<LeafSource>['whole'],
  flags: PrintFlags,
): unknown {
  if (flags.showSecrets === true || value === undefined) {
    return value;
  }
  const placed = placedAt({ value, leaves: [] }, key).value;
  const shown = SecretValues.of(config.value, task.value, placed).withoutSecrets(placed);
  return partOf({ value: shown, leaves: [] }, key).value;
}
