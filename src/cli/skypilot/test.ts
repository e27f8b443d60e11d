/** `skypilot test`: `test` for a folder in which every YAML file is a case about a task. */
import { Command } from 'commander';
import { addSourceFlags, formatFlag, sourcesOf } from '../sources.ts';
import { exitWhenWritten } from '../standard-streams.ts';
import { filterFlag, junitFlag, runOnce, type TestFlags } from '../test.ts';

const MORE_HELP = `
A case is a YAML file: a task or a pipeline, the configuration and the facts of a request, and what is expected:

  name: Eight GPUs are too many
  task: {resources: {accelerators: H100:8}, run: python train.py}
  request: {user: "0a1b2c3d:alice", idle_minutes: 30}
  now: 2026-11-21T09:00:00Z
  expect: {rejected: at most 4}

The policies are those of --config-file, otherwise of blazar.conf in the folder of the case or one above it, otherwise of
the case: policies, with options. Each case has new threads for its policies, and no network. docs/reference/skypilot-test.md
has all keys.

Examples:
  blazar-enforcement skypilot test cases --config-file policy-service.conf
  blazar-enforcement skypilot test cases --filter gpus --junit report.xml`;

export function skypilotTestCommand(): Command {
  const command = new Command('test')
    .description(
      'Run a folder of cases: requests, and what the policies should answer. Exit code: 0 all as expected, 1 some are not, 2 a mistake in a case, the configuration or the command, 3 a policy failed.',
    )
    .argument('<folder>', 'Its .yaml and .yml files, and those of the folders in it, are the cases.')
    .addOption(formatFlag('table', 'json', 'junit', 'tap'))
    .addOption(filterFlag())
    .addOption(junitFlag());
  return addSourceFlags(command).addHelpText('after', MORE_HELP).action(test);
}

async function test(folder: string, flags: TestFlags): Promise<void> {
  const { schemaOfTask } = await import('../test/any-case.ts');
  const options = {
    ...({ folders: [folder], files: 'all', schemaFor: schemaOfTask } as const),
    ...{ filter: flags.filter, flags: sourcesOf(flags) },
  };
  await runOnce('blazar-enforcement skypilot test', options, flags);
  // A policy may leave timers and connections open.
  exitWhenWritten();
}
