/** `scheduling-policy`: what scheduling policies say, without a cluster. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { MERGE_STRATEGIES } from '../kubernetes/merge-strategy.ts';
import type { CheckFlags, MergeFlags } from './scheduling-policy-flags.ts';
import { formatFlag } from './sources.ts';

export function schedulingPolicyCommand(): Command {
  return new Command('scheduling-policy')
    .description('Look at scheduling policies and try them on pods, without a cluster.')
    .addCommand(checkCommand())
    .addCommand(mergeCommand())
    .addCommand(validateCommand());
}

// What reads YAML is loaded by the command that is called: every other one would start later for it.

const POLICIES = 'A file, or a folder of files, with scheduling policies, roles and bindings; repeatable.';

function checkCommand(): Command {
  const command = new Command('check')
    .description(
      'Judge pods, and the templates of what makes pods, as the webhook would, and show what is added to them as a diff. Exit code: 0 all allowed, 1 one rejected, 2 a mistake in the policies, the objects or the command.',
    )
    .argument(
      '<file>',
      'Pods, Deployments, StatefulSets, DaemonSets, Jobs, CronJobs or lists of them, in YAML or JSON, in one document or several; - is standard input.',
    );
  return addAccountFlags(
    command
      .addOption(
        new Option('--policies <path>', `${POLICIES} Default: those of --config-file.`).argParser(repeatable),
      )
      .addOption(
        new Option(
          '--config-file <path>',
          'A file of the configuration of the service, of which [kubernetes] counts; repeatable, a later one wins.',
        ).argParser(repeatable),
      )
      .addOption(
        new Option(
          '--merge-strategy <strategy>',
          'What several policies say together. Default: that of --config-file, else deep.',
        ).choices(MERGE_STRATEGIES),
      )
      .option(
        '--default-priority-class <name>',
        'The PriorityClass of the cluster with globalDefault: true. Default: that of --config-file.',
        named,
      ),
  )
    .addOption(formatFlag('diff', 'json'))
    .action(async (file: string, flags: CheckFlags) => {
      const { checkPods } = await import('./scheduling-policy-check.ts');
      await checkPods(file, flags);
    });
}

function mergeCommand(): Command {
  const command = new Command('merge').description(
    'Show what applies to an account, part by part, and which policy each part is from; without an account, who may use which policies.',
  );
  return addAccountFlags(
    command
      .addOption(new Option('--policies <path>', POLICIES).argParser(repeatable).makeOptionMandatory())
      .addOption(
        new Option('--merge-strategy <strategy>', 'What several policies say together.')
          .choices(MERGE_STRATEGIES)
          .default('deep'),
      ),
  )
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
    .option('--namespace <name>', "The namespace. Default: the pod's, else default.", named)
    .option('--service-account <name>', "The service account. Default: the pod's, else default.", named);
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
