/** `skypilot config`: merges the sources of a SkyPilot configuration and explains the result. */
import { existsSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { Command, Option } from 'commander';
import { readTextFile } from '../config/read-file.ts';
import { ConfigurationError, errorText, formatProblem, type Origin, type Problem } from '../errors.ts';
import type { Level, MergedConfig, Source } from '../skypilot/layers.ts';
import type { PipelineTask } from '../skypilot/pipeline.ts';
import type { YamlDocument } from '../yaml/document.ts';
import type { Path } from '../yaml/tree.ts';
import { ExitCode, jsonText, onOneLine, printProblems, printTable, UsageError } from './output.ts';

interface ConfigFlags {
  readonly server?: string;
  readonly user?: string;
  readonly project?: string;
  readonly task?: string;
  readonly config?: readonly string[];
  readonly explain?: boolean;
  readonly showSecrets?: boolean;
  readonly format: 'yaml' | 'json';
}

/** Default files, as in SkyPilot. */
const DEFAULTS = {
  user: { variable: 'SKYPILOT_GLOBAL_CONFIG', path: () => join(homedir(), '.sky', 'config.yaml') },
  project: { variable: 'SKYPILOT_PROJECT_CONFIG', path: () => '.sky.yaml' },
} as const;

export function skypilotConfigCommand(): Command {
  const repeatable = (value: string, before: readonly string[] = []) => [...before, value];
  return new Command('config')
    .description(
      'Merge the sources of a SkyPilot configuration as SkyPilot does. Exit code: 0 success, 1 a task sets a key that it may not set or the workspace does not exist, 2 an error in a file or the command.',
    )
    .option('--server <file>', 'The configuration of the server.')
    .option(
      '--user <file>',
      'The configuration of the user. Default: $SKYPILOT_GLOBAL_CONFIG, otherwise ~/.sky/config.yaml if it exists.',
    )
    .option(
      '--project <file>',
      'The configuration of the project. Default: $SKYPILOT_PROJECT_CONFIG, otherwise .sky.yaml if it exists.',
    )
    .option(
      '--task <file>',
      'A task file; its config is merged. For a pipeline, the result is shown for each task.',
    )
    .addOption(
      new Option(
        '--config <key=value>',
        'Set one key to a YAML value; repeatable. Or the name of one file.',
      ).argParser(repeatable),
    )
    .option('--explain', 'Show which source each value comes from, and which sources it overrides.')
    .option('--show-secrets', 'Print tokens and other secrets instead of hiding them.')
    .addOption(new Option('--format <format>', 'Output format.').choices(['yaml', 'json']).default('yaml'))
    .action(config);
}

async function config(flags: ConfigFlags): Promise<void> {
  const { mergeSources, workspaceProblem } = await import('../skypilot/layers.ts');
  const { sources, problems, tasks } = await readAll(flags);
  const all: Merged[] = (tasks.length === 0 ? [null] : tasks).map((task) => ({
    task: tasks.length < 2 ? null : (task?.task ?? null),
    merged: mergeSources(task === null ? sources : [...sources, task.source]),
  }));
  const found = [...problems];
  for (const { merged } of all) {
    const workspace = workspaceProblem(merged);
    found.push(...(await refusals(merged)), ...(workspace === undefined ? [] : [workspace]));
  }
  // Problems of a file are the same for each task.
  printProblems([...new Map(found.map((problem) => [formatProblem(problem), problem])).values()]);
  await print(all, flags);
  process.exitCode = found.some(({ severity }) => severity === 'error') ? ExitCode.rejected : ExitCode.ok;
}

/** All client keys make one warning. SkyPilot rejects a task with a key that it may not set. */
async function refusals({ refused }: MergedConfig): Promise<Problem[]> {
  const { formatPlace } = await import('../skypilot/layers.ts');
  const client = refused.filter(({ kind }) => kind === 'client');
  const [what, verb] = client.length === 1 ? ['key', 'is'] : ['keys', 'are'];
  const named = client.map(({ key, place }) => `${key} (${formatPlace(place)})`).join(', ');
  const message = `${client.length} ${what} that only the server may set ${verb} ignored: ${named}`;
  return [
    ...(client.length === 0 ? [] : [{ severity: 'warning', message } as const]),
    ...refused
      .filter(({ kind }) => kind === 'task')
      .map(
        ({ key, place: { origin } }): Problem => ({
          severity: 'error',
          origin,
          message: `${key}: a task may not set this key`,
        }),
      ),
  ];
}

/** The merged configuration, for one task of a pipeline or alone. */
interface Merged {
  readonly task: PipelineTask | null;
  readonly merged: MergedConfig;
}

interface Read {
  /** Without those of tasks. */
  readonly sources: Source[];
  readonly tasks: { readonly task: PipelineTask; readonly source: Source }[];
  /** Problems that do not prevent merging. */
  readonly problems: Problem[];
}

async function readAll(flags: ConfigFlags): Promise<Read> {
  const { taskConfig } = await import('../skypilot/layers.ts');
  const { expandHome } = await import('../config/dotlist.ts');
  const { tasksOf } = await import('../skypilot/pipeline.ts');
  const sources: Source[] = [];
  const tasks: Read['tasks'] = [];
  const problems: Problem[] = [];
  const files: { level: Level; file: string }[] = [];
  for (const level of ['server', 'user', 'project'] as const) {
    const named = flags[level];
    const path = named ?? (level === 'server' ? undefined : defaultFile(level, expandHome));
    if (path === undefined) {
      continue;
    }
    const file = expandHome(path);
    const same = files.find((other) => isSameFile(other.file, file));
    if (same === undefined) {
      files.push({ level, file });
      sources.push(await fileSource(level, file));
      continue;
    }
    // Merging it twice would duplicate list items.
    const message = `already used as the ${same.level}'s configuration, not read again as the ${level}'s`;
    problems.push({ severity: 'warning', message: `${file}: ${message}` });
  }
  if (flags.task !== undefined) {
    const file = expandHome(flags.task);
    for (const task of await readingYaml(file, tasksOf)) {
      const originOf = originsIn(file, task.document);
      const { tree, at, problems: wrong } = taskConfig(task.value, originOf);
      problems.push(...wrong);
      const source = { level: 'task', tree, originOf: (path: Path) => originOf([...at, ...path]) } as const;
      tasks.push({ task, source });
    }
  }
  sources.push(...(await commandLineSources(flags.config ?? [])));
  return { sources, problems, tasks };
}

/** Whether two paths name the same file. Devices and pipes, such as `/dev/null`, are never the same. */
function isSameFile(first: string, second: string): boolean {
  const [one, other] = [first, second].map((file) => statSync(file, { throwIfNoEntry: false }));
  return one?.isFile() === true && one.dev === other?.dev && one.ino === other.ino;
}

function defaultFile(level: keyof typeof DEFAULTS, expandHome: (path: string) => string): string | undefined {
  const { variable, path } = DEFAULTS[level];
  const named = process.env[variable];
  if (named === undefined || named === '') {
    return existsSync(path()) ? path() : undefined;
  }
  if (!existsSync(expandHome(named))) {
    throw new UsageError(`${variable}: there is no such file: ${named}; name another, or unset ${variable}`);
  }
  return named;
}

async function fileSource(level: Level, file: string): Promise<Source> {
  const { YamlDocument } = await import('../yaml/document.ts');
  const { isMapping } = await import('../yaml/tree.ts');
  const document = await readingYaml(file, (text) => YamlDocument.parse(text));
  const value = document.value ?? {};
  if (!isMapping(value)) {
    throw mistake(
      file,
      document.lineOf([]),
      'expected a mapping, such as "kubernetes:" with options below it',
    );
  }
  return { level, tree: value, originOf: originsIn(file, document) };
}

function originsIn(file: string, document: YamlDocument): Source['originOf'] {
  return (at) => ({ kind: 'file', file, line: document.lineOf(at) });
}

function mistake(file: string, line: number, message: string): ConfigurationError {
  return new ConfigurationError([{ severity: 'error', origin: { kind: 'file', file, line }, message }]);
}

async function readingYaml<Result>(file: string, read: (text: string) => Result): Promise<Result> {
  const { YamlError } = await import('../yaml/error.ts');
  try {
    return read(readTextFile(file));
  } catch (thrown) {
    throw thrown instanceof YamlError
      ? mistake(file, thrown.line ?? 1, `expected YAML: ${thrown.reason}`)
      : new UsageError(`${file}: could not be read: ${errorText(thrown)}`);
  }
}

async function commandLineSources(texts: readonly string[]): Promise<Source[]> {
  if (texts.length === 0) {
    return [];
  }
  const { readDotlist } = await import('../config/dotlist.ts');
  const dotlist = readDotlist(texts);
  if ('file' in dotlist) {
    return [await fileSource('command line', dotlist.file)];
  }
  const [problem] = dotlist.problems;
  if (problem !== undefined) {
    throw new UsageError(dotlist.problems.join('; '));
  }
  return dotlist.pairs.map(({ path, value }) => {
    const origin: Origin = { kind: 'command line', flag: `--config ${path.join('.')}` };
    const tree = path.reduceRight<unknown>((below, key) => ({ [key]: below }), value.value);
    return { level: 'command line', tree: tree as Source['tree'], originOf: () => origin };
  });
}

async function print(all: readonly Merged[], flags: ConfigFlags): Promise<void> {
  const { YamlDocument } = await import('../yaml/document.ts');
  const { headingOf } = await import('../skypilot/pipeline.ts');
  const isExplained = flags.explain === true;
  const shown = await Promise.all(
    all.map(async (one) => ({ ...one, ...(await shownOf(one.merged, flags)) })),
  );
  if (flags.format === 'json') {
    const values = shown.map(({ task, tree, explained }) => {
      const config = isExplained ? explained : tree;
      return task === null ? config : { task: task.number, of: task.of, name: task.name, config };
    });
    process.stdout.write(`${jsonText(shown.length === 1 ? values[0] : values, 2)}\n`);
    return;
  }
  for (const [index, { task, tree, explained }] of shown.entries()) {
    if (task !== null) {
      const heading = onOneLine(headingOf(task));
      process.stdout.write(isExplained ? `${index === 0 ? '' : '\n'}${heading}\n` : `--- # ${heading}\n`);
    }
    if (isExplained) {
      await printTable(
        ['KEY', 'VALUE', 'SOURCE', 'BEATS'],
        explained.map(({ key, value, source, beats }) => [key, jsonText(value), source, beats.join(', ')]),
      );
    } else {
      process.stdout.write(YamlDocument.from(tree).toString());
    }
  }
}

async function shownOf({ tree, leaves }: MergedConfig, flags: ConfigFlags) {
  const { formatPlace } = await import('../skypilot/layers.ts');
  const { formatPath, valueAt } = await import('../yaml/tree.ts');
  const { withoutSecrets } = await import('../skypilot/secrets.ts');
  const shown = (flags.showSecrets === true ? tree : withoutSecrets(tree)) as typeof tree;
  const explained = leaves.map(({ path, source, beats }) => ({
    key: formatPath(path),
    value: valueAt(shown, path),
    source: formatPlace(source),
    beats: beats.map(formatPlace),
  }));
  return { tree: shown, explained };
}
