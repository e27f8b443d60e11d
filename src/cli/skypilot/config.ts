/** `skypilot config`: merges the sources of a SkyPilot configuration and explains the result. */
import { Command, Option } from 'commander';
import type { Problem } from '../../base/errors.ts';
import type { FoundSources, NamedSources } from '../../skypilot/config/config-sources.ts';
import type { Result } from '../../skypilot/config/source-problems.ts';
import { ExitCode, printProblems } from '../common/output.ts';
import { repeatable } from '../common/sources.ts';
import type { Merged, PrintFlags } from './config-output.ts';

interface ValidationFlags {
  readonly validation: 'error' | 'warning' | 'ignore';
}

type ConfigFlags = NamedSources & PrintFlags & ValidationFlags;

export function skypilotConfigCommand(): Command {
  return new Command('config')
    .description(
      'Merge the sources of a SkyPilot configuration as SkyPilot does, and validate them. Exit code: 0 success, 1 SkyPilot would refuse the configuration or the task, 2 an error in a file or the command.',
    )
    .option('--server <file>', 'The configuration of the server.')
    .option(
      '--user <file>',
      'The configuration of the user. Default: $SKYPILOT_GLOBAL_CONFIG, otherwise ~/.sky/config.yaml if it exists; with IS_SKYPILOT_SERVER, these are the default of --server, and there is no user or project. SKYPILOT_CONFIG replaces all of them.',
    )
    .option(
      '--project <file>',
      'The configuration of the project. Default: $SKYPILOT_PROJECT_CONFIG, otherwise .sky.yaml if it exists.',
    )
    .option(
      '--task <file>',
      'A task file; its config is merged. For a pipeline, the result is shown for each task.',
    )
    .option(
      '--config <key=value>',
      'Set one key to a YAML value; repeatable. Or the name of one file.',
      repeatable,
    )
    .option(
      '--get <key>',
      'Print the value that SkyPilot takes for a key, such as kubernetes.pod_config, instead of the configuration.',
    )
    .option('--context <name>', 'With --get: the Kubernetes context or SSH node pool.')
    .option('--region <name>', 'With --get: the region, or the cluster of Slurm.')
    .option('--zone <name>', 'With --get: the partition of Slurm.')
    .option('--workspace <name>', 'With --get: the workspace. Default: active_workspace, otherwise default.')
    .option('--explain', 'Show which source each value comes from, and which sources it overrides.')
    .option('--show-secrets', 'Print tokens and other secrets instead of hiding them.')
    .addOption(
      new Option(
        '--validation <severity>',
        "Whether what does not match SkyPilot's schema is an error, a warning, or ignored. This command does not read [skypilot] config_validation: name here what the service should do.",
      )
        .choices(['error', 'warning', 'ignore'])
        .default('error'),
    )
    .addOption(new Option('--format <format>', 'Output format.').choices(['yaml', 'json']).default('yaml'))
    .action(config);
}

async function config(flags: ConfigFlags): Promise<void> {
  const { mergeSources } = await import('../../skypilot/config/layers.ts');
  const { findSources } = await import('../../skypilot/config/config-sources.ts');
  const read = findSources(flags);
  if (flags.get !== undefined) {
    await getValue(flags, read);
    return;
  }
  const { printConfig, requireGet } = await import('./config-output.ts');
  requireGet(flags);
  const { sources, tasks, unread } = read;
  const results = (tasks.length === 0 ? [null] : tasks).map((task) => ({
    task,
    merged: mergeSources(task === null ? sources : [...sources, task.source]),
  }));
  const all = results.map(
    ({ task, merged }): Merged => ({ task: tasks.length < 2 ? null : (task?.task ?? null), merged }),
  );
  report(await problemsOf(flags, read, results, results));
  await printConfig(all, unread, flags);
}

async function getValue(flags: ConfigFlags, found: FoundSources): Promise<void> {
  const { printEffectiveValue, readConfig } = await import('./config-output.ts');
  const read = readConfig(found.sources, found.tasks);
  const whole = { task: null, merged: read.config };
  const results = [whole, ...read.tasks.map(({ source, config: merged }) => ({ task: source, merged }))];
  const problems = await problemsOf(flags, found, results, flags.workspace === undefined ? [whole] : []);
  report([...problems, ...(await printEffectiveValue(read, flags))]);
}

/** Schema violations have the severity of `--validation`. `selecting`: the results that select the workspace. */
async function problemsOf(
  { validation }: ConfigFlags,
  { sources, problems }: FoundSources,
  results: readonly Result[],
  selecting: readonly Result[],
): Promise<Problem[]> {
  const { workspaceProblems } = await import('../../skypilot/config/layers.ts');
  const { configurationProblems, droppedProblems } = await import('../../skypilot/config/source-problems.ts');
  const mismatches =
    validation === 'ignore'
      ? []
      : configurationProblems(sources, results).map((problem) => ({ ...problem, severity: validation }));
  return [
    ...problems,
    ...mismatches,
    ...results.flatMap(({ merged }) => droppedProblems(merged.dropped)),
    ...selecting.flatMap(({ merged }) => workspaceProblems(merged)),
  ];
}

/** Prints problems and sets the exit code. */
function report(found: readonly Problem[]): void {
  printProblems(found);
  process.exitCode = found.some(({ severity }) => severity === 'error') ? ExitCode.rejected : ExitCode.ok;
}
