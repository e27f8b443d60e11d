/** `skypilot config`: what the sources of a SkyPilot configuration come to, and why. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { Command, Option } from 'commander';
import { readTextFile } from '../config/read-file.ts';
import { errorText, type Origin } from '../errors.ts';
import type { Level, MergedConfig, Source } from '../skypilot/layers.ts';
import { ExitCode, onOneLine, printTable, UsageError } from './output.ts';

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

/** Where SkyPilot looks for what no flag names. */
const DEFAULTS = {
  user: { variable: 'SKYPILOT_GLOBAL_CONFIG', path: () => join(homedir(), '.sky', 'config.yaml') },
  project: { variable: 'SKYPILOT_PROJECT_CONFIG', path: () => '.sky.yaml' },
} as const;

export function skypilotConfigCommand(): Command {
  const repeatable = (value: string, before: readonly string[] = []) => [...before, value];
  return new Command('config')
    .description(
      'Merge the sources of a SkyPilot configuration as SkyPilot does. Exit code: 0, 1 a key of the task is refused or the workspace does not exist, 2 a mistake in a file or the command.',
    )
    .option('--server <file>', "The server's configuration.")
    .option(
      '--user <file>',
      "The user's. Default: $SKYPILOT_GLOBAL_CONFIG, else ~/.sky/config.yaml if it is there.",
    )
    .option(
      '--project <file>',
      "The project's. Default: $SKYPILOT_PROJECT_CONFIG, else .sky.yaml if it is there.",
    )
    .option('--task <file>', 'A task, of which the member config counts.')
    .addOption(
      new Option(
        '--config <key=value>',
        'Sets one key, with a value in YAML; repeatable. Or one file.',
      ).argParser(repeatable),
    )
    .option('--explain', 'For each value the source that has won, and what it has beaten.')
    .option('--show-secrets', 'Print tokens and other secrets instead of hiding them.')
    .addOption(new Option('--format <format>', 'How to print it.').choices(['yaml', 'json']).default('yaml'))
    .action(config);
}

async function config(flags: ConfigFlags): Promise<void> {
  const { mergeSources, workspaceProblem } = await import('../skypilot/layers.ts');
  const { MergeError } = await import('../config/merge.ts');
  const { sources, errors } = await readAll(flags);
  let merged: MergedConfig;
  try {
    merged = mergeSources(sources);
  } catch (thrown) {
    throw thrown instanceof MergeError ? new UsageError(thrown.message) : thrown;
  }
  const workspace = workspaceProblem(merged.tree);
  const wrong = [...errors, ...(workspace === undefined ? [] : [workspace]), ...(await refusals(merged))];
  for (const message of wrong) {
    process.stderr.write(`error: ${onOneLine(message)}\n`);
  }
  await print(merged, flags);
  process.exitCode = wrong.length === 0 ? ExitCode.ok : ExitCode.rejected;
}

/** Client keys are one warning; a task with a key that it may not set is refused by SkyPilot as a whole. */
async function refusals({ refused }: MergedConfig): Promise<string[]> {
  const { formatPlace } = await import('../skypilot/layers.ts');
  const client = refused.filter(({ kind }) => kind === 'client');
  if (client.length > 0) {
    const [what, verb] = client.length === 1 ? ['key', 'is'] : ['keys', 'are'];
    const named = client.map(({ key, place }) => `${key} (${formatPlace(place)})`).join(', ');
    process.stderr.write(
      `warning: ${onOneLine(`${client.length} ${what} that only the server may set ${verb} ignored: ${named}`)}\n`,
    );
  }
  return refused
    .filter(({ kind }) => kind === 'task')
    .map(({ key, place }) => `${formatPlace(place)}: ${key}: a task may not set this key`);
}

async function readAll(flags: ConfigFlags): Promise<{ sources: Source[]; errors: string[] }> {
  const { taskConfig } = await import('../skypilot/layers.ts');
  const sources: Source[] = [];
  const errors: string[] = [];
  for (const level of ['server', 'user', 'project'] as const) {
    const file = flags[level] ?? (level === 'server' ? undefined : defaultFile(level));
    if (file !== undefined) {
      sources.push(await fileSource(level, file));
    }
  }
  if (flags.task !== undefined) {
    const file = flags.task;
    const { tree: task, originOf } = await fileSource('task', file);
    const { tree, at, errors: wrong, warnings } = taskConfig(task);
    errors.push(...wrong.map((message) => `${file}: ${message}`));
    for (const warning of warnings) {
      process.stderr.write(`warning: ${onOneLine(`${file}: ${warning}`)}\n`);
    }
    sources.push({ level: 'task', tree, originOf: (path) => originOf([...at, ...path]) });
  }
  sources.push(...(await commandLineSources(flags.config ?? [])));
  return { sources, errors };
}

function defaultFile(level: keyof typeof DEFAULTS): string | undefined {
  const { variable, path } = DEFAULTS[level];
  const named = process.env[variable];
  if (named !== undefined && named !== '') {
    if (!existsSync(named)) {
      throw new UsageError(
        `${variable}: there is no such file: ${named}; name another, or unset ${variable}`,
      );
    }
    return named;
  }
  return existsSync(path()) ? path() : undefined;
}

async function fileSource(level: Level, path: string): Promise<Source> {
  const { YamlDocument } = await import('../config/yaml/document.ts');
  const { isMapping } = await import('../config/tree.ts');
  const { expandHome } = await import('../config/dotlist.ts');
  const file = expandHome(path);
  try {
    const document = YamlDocument.parse(readTextFile(file));
    const value = document.value ?? {};
    if (!isMapping(value)) {
      throw new Error('expected a mapping in YAML');
    }
    return { level, tree: value, originOf: (at) => ({ kind: 'file', file, line: document.lineOf(at) }) };
  } catch (thrown) {
    throw new UsageError(`${file}: could not be read: ${errorText(thrown)}`);
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

async function print({ tree, leaves }: MergedConfig, flags: ConfigFlags): Promise<void> {
  const { YamlDocument } = await import('../config/yaml/document.ts');
  const { formatPlace } = await import('../skypilot/layers.ts');
  const { formatPath, valueAt } = await import('../config/tree.ts');
  const { withoutSecrets } = await import('../skypilot/secrets.ts');
  const shown = (flags.showSecrets === true ? tree : withoutSecrets(tree)) as typeof tree;
  const explained = leaves.map(({ path, source, beats }) => ({
    key: formatPath(path),
    value: valueAt(shown, path),
    source: formatPlace(source),
    beats: beats.map(formatPlace),
  }));
  if (flags.format === 'json') {
    process.stdout.write(`${jsonText(flags.explain === true ? explained : shown)}\n`);
  } else if (flags.explain === true) {
    await printTable(
      ['KEY', 'VALUE', 'SOURCE', 'BEATS'],
      explained.map(({ key, value, source, beats }) => [key, jsonText(value, 0), source, beats.join(', ')]),
    );
  } else {
    process.stdout.write(YamlDocument.from(shown).toString());
  }
}

/** A number that JavaScript can't hold is written out. */
function jsonText(value: unknown, indent = 2): string {
  return JSON.stringify(value, (_, item) => (typeof item === 'bigint' ? item.toString() : item), indent);
}
