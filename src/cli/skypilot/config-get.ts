/** `skypilot config --get`: the value that SkyPilot takes for a key, for a context, region, workspace and task. */
import { ConfigurationError, type Problem } from '../../base/errors.ts';
import type { TaskSource } from '../../skypilot/config/config-file.ts';
import type { Source } from '../../skypilot/config/config-schema.ts';
import type { EffectiveValue, LookedAt } from '../../skypilot/config/effective/effective-value.ts';
import type { Reading } from '../../skypilot/config/effective/rules.ts';
import type { LeafSource } from '../../skypilot/config/effective/traced.ts';
import type { MergedConfig } from '../../skypilot/config/layers.ts';
import type { PipelineTask } from '../../skypilot/task/pipeline.ts';
import { jsonText, onOneLine, printTable, UsageError } from '../output.ts';

export interface GetFlags {
  readonly get?: string;
  readonly context?: string;
  readonly region?: string;
  readonly zone?: string;
  readonly workspace?: string;
  readonly explain?: boolean;
  readonly showSecrets?: boolean;
  readonly format: 'yaml' | 'json';
}

/** The merged sources without tasks, and those of each task by itself. */
export interface ReadConfig {
  readonly config: MergedConfig;
  readonly commandLine: MergedConfig;
  /** Empty without a task file. */
  readonly tasks: readonly { readonly source: TaskSource; readonly config: MergedConfig }[];
}

interface Answer {
  /** `null` unless there are several. */
  readonly task: PipelineTask | null;
  readonly reading: Reading<LeafSource>;
  readonly answer: EffectiveValue<LeafSource>;
}

/** Flags that only `--get` knows. */
const OWN_FLAGS = ['context', 'region', 'zone', 'workspace'] as const;

/** @throws UsageError for flags that have no effect without `--get` */
export function requireGet(flags: GetFlags): void {
  const given = OWN_FLAGS.filter((name) => flags[name] !== undefined);
  if (given.length > 0) {
    throw new UsageError(`--${given[0]}: expected --get with it`);
  }
}

/** Merges what a value is read from: a task does not change the configuration, but overrides it where SkyPilot asks. */
export async function readConfig(
  sources: readonly Source[],
  tasks: readonly TaskSource[],
): Promise<ReadConfig> {
  const { mergeSources } = await import('../../skypilot/config/layers.ts');
  return {
    config: mergeSources(sources),
    commandLine: mergeSources(sources.filter(({ level }) => level === 'command line')),
    tasks: tasks.map((source) => ({ source, config: mergeSources([source.source]) })),
  };
}

/** Prints the value. Returns warnings. @throws ConfigurationError if SkyPilot cannot merge the values */
export async function printEffectiveValue(read: ReadConfig, flags: GetFlags): Promise<Problem[]> {
  const { keyOf, placeProblems, unknownKey, workspaceOf } = await import(
    '../../skypilot/config/effective/question.ts'
  );
  const { taskOverrides, tracedConfig } = await import('../../skypilot/config/effective/traced.ts');
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
  const answers = await Promise.all(
    (read.tasks.length === 0 ? [null] : read.tasks).map(async (task): Promise<Answer> => {
      const own = task === null ? undefined : tracedConfig(task.config, 'task');
      const overrides = taskOverrides(own, commandLine);
      const reading = { config, task: overrides, workspace, region, zone: flags.zone };
      return {
        task: read.tasks.length < 2 ? null : (task?.source.task ?? null),
        reading,
        answer: await answered(reading, key),
      };
    }),
  );
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
  await print(answers, flags);
  return problems;
}

async function answered(
  reading: Reading<LeafSource>,
  key: readonly string[],
): Promise<EffectiveValue<LeafSource>> {
  const { effectiveValueOf } = await import('../../skypilot/config/effective/effective-value.ts');
  const { TracedMergeError } = await import('../../skypilot/config/effective/traced.ts');
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

async function print(answers: readonly Answer[], flags: GetFlags): Promise<void> {
  const { YamlDocument } = await import('../../yaml/document.ts');
  const { headingOf } = await import('../../skypilot/task/pipeline.ts');
  const shown = await Promise.all(answers.map(async (one) => ({ ...one, ...(await shownOf(one, flags)) })));
  if (flags.format === 'json') {
    const values = shown.map(({ task, value, explained }) => {
      const own = flags.explain === true ? explained : value;
      return task === null ? own : { task: task.number, of: task.of, name: task.name, value: own ?? null };
    });
    process.stdout.write(`${jsonText(shown.length === 1 ? (values[0] ?? null) : values, 2)}\n`);
    return;
  }
  for (const [index, { task, value, explained }] of shown.entries()) {
    const heading = task === null ? undefined : onOneLine(headingOf(task));
    if (flags.explain === true) {
      process.stdout.write(`${index === 0 ? '' : '\n'}${heading === undefined ? '' : `${heading}\n`}`);
      await printExplanation(explained);
      continue;
    }
    process.stdout.write(heading === undefined ? '' : `--- # ${heading}\n`);
    process.stdout.write(value === undefined ? '' : YamlDocument.from(value).toString());
  }
}

type Explained = Awaited<ReturnType<typeof shownOf>>['explained'];

async function printExplanation({ key, of, rule, lookedAt, values, notes }: Explained): Promise<void> {
  const lines = [`${key} for ${of}${rule === null ? '' : `: ${rule}`}`, ''];
  process.stdout.write(lines.map((line) => `${onOneLine(line)}\n`).join(''));
  if (lookedAt.length > 0) {
    await printTable(
      ['PLACE', 'STATE'],
      lookedAt.map((place) => [place.of === 'task' ? `${place.key} of the task` : place.key, place.state]),
    );
    process.stdout.write('\n');
  }
  if (values.length > 0) {
    await printTable(
      ['KEY', 'VALUE', 'SOURCE', 'BEATS'],
      values.map(({ key: leaf, value, source, beats }) => [leaf, jsonText(value), source, beats.join(', ')]),
    );
  } else {
    process.stdout.write('not set\n');
  }
  for (const note of notes) {
    process.stdout.write(`note: ${onOneLine(note)}\n`);
  }
}

async function shownOf({ reading, answer }: Answer, flags: GetFlags) {
  const { formatPlace } = await import('../../skypilot/config/layers.ts');
  const { formatPath, valueAt } = await import('../../yaml/tree.ts');
  const { RULES } = await import('../../skypilot/config/effective/readers.ts');
  const { key, whole, rule, leaves, lookedAt, notes } = answer;
  const value = valueAt(await withoutSecretsOf(reading, whole, flags), whole.path);
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

/** Names around a value say whether it is secret, so it is hidden as part of the whole key. */
async function withoutSecretsOf(
  { config, task }: Reading<LeafSource>,
  { key, value }: EffectiveValue<LeafSource>['whole'],
  flags: GetFlags,
): Promise<unknown> {
  if (flags.showSecrets === true || value === undefined) {
    return value;
  }
  const { SecretValues } = await import('../../skypilot/secrets.ts');
  const { partOf, placedAt } = await import('../../skypilot/config/effective/traced.ts');
  const placed = placedAt({ value, leaves: [] }, key).value;
  const shown = SecretValues.of(config.value, task.value, placed).withoutSecrets(placed);
  return partOf({ value: shown, leaves: [] }, key).value;
}
