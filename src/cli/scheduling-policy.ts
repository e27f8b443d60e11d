/** `scheduling-policy`: what scheduling policies say, without a cluster. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { MERGE_STRATEGIES, type MergeStrategy } from '../kubernetes/merge-strategy.ts';
import { formatFlag } from './sources.ts';

/** Of the commands that ask what applies to somebody. */
export interface AccountFlags {
  readonly policies: readonly string[];
  readonly namespace?: string;
  readonly serviceAccount?: string;
  readonly mergeStrategy: MergeStrategy;
}

export interface CheckFlags extends AccountFlags {
  readonly format: 'diff' | 'json';
}

export interface MergeFlags extends AccountFlags {
  readonly user?: string;
  readonly group?: readonly string[];
  readonly format: 'table' | 'json';
}

export function schedulingPolicyCommand(): Command {
  return new Command('scheduling-policy')
    .description('Look at scheduling policies and try them on pods, without a cluster.')
    .addCommand(checkCommand())
    .addCommand(mergeCommand())
    .addCommand(validateCommand());
}

// What reads YAML is loaded by the command that is called: every other one would start later for it.

function checkCommand(): Command {
  const command = new Command('check')
    .description(
      'Judge a pod as the webhook would, and show what is added to it as a diff. Exit code: 0 allowed, 1 rejected, 2 a mistake in the policies, the pod or the command.',
    )
    .argument('<file>', 'A pod in YAML or JSON; - is standard input.');
  return addAccountFlags(command)
    .addOption(formatFlag('diff', 'json'))
    .action(async (file: string, flags: CheckFlags) => {
      const { checkPod } = await import('./scheduling-policy-check.ts');
      await checkPod(file, flags);
    });
}

function mergeCommand(): Command {
  const command = new Command('merge').description(
    'Show what applies to an account, part by part, and which policy each part is from; without an account, who may use which policies.',
  );
  return addAccountFlags(command)
    .option('--user <name>', 'In place of a service account, a user, such as one who wants a lease.', named)
    .addOption(new Option('--group <name>', 'A group of that user; repeatable.').argParser(repeatable))
    .addOption(formatFlag('table', 'json'))
    .action(async (flags: MergeFlags) => {
      const { showMerged } = await import('./scheduling-policy-merge.ts');
      await showMerged(flags);
    });
}

function validateCommand(): Command {
  return new Command('validate')
    .description(
      'Read policies, roles and bindings, and report every mistake with its file and line. Exit code: 0 no mistakes, 2 mistakes.',
    )
    .argument('<path...>', 'Files, and folders of files, in YAML or JSON.')
    .action(async (paths: readonly string[]) => {
      const { validatePolicies } = await import('./scheduling-policy-validate.ts');
      validatePolicies(paths);
    });
}

function addAccountFlags(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--policies <path>',
        'A file, or a folder of files, with scheduling policies, roles and bindings; repeatable.',
      )
        .argParser(repeatable)
        .makeOptionMandatory(),
    )
    .option('--namespace <name>', "The namespace. Default: the pod's, else default.", named)
    .option('--service-account <name>', "The service account. Default: the pod's, else default.", named)
    .addOption(
      new Option('--merge-strategy <strategy>', 'What several policies say together.')
        .choices(MERGE_STRATEGIES)
        .default('deep'),
    );
}

function named(value: string): string {
  if (value === '') {
    throw new InvalidArgumentError('It is empty.');
  }
  return value;
}

function repeatable(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}
