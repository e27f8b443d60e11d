/** `scheduling-policy`: inspects scheduling policies without a cluster. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { MERGE_STRATEGIES } from '../kubernetes/merge.ts';
import type { CheckFlags, MergeFlags } from './scheduling-policy-flags.ts';
import { formatFlag } from './sources.ts';

export function schedulingPolicyCommand(): Command {
  return new Command('scheduling-policy')
    .description('Inspect scheduling policies and try them on pods, without a cluster.')
    .addCommand(checkCommand())
    .addCommand(mergeCommand())
    .addCommand(validateCommand());
}

// Each action imports its own module, because loading the YAML reader would slow down all other commands.

const POLICIES = 'A file or folder with scheduling policies, roles and bindings; repeatable.';

function checkCommand(): Command {
  const command = new Command('check')
    .description(
      'Review pods and pod templates like the webhook, and show what policies add as a diff. Exit code: 0 all allowed, 1 at least one rejected, 2 an error in the policies, the objects or the command.',
    )
    .argument(
      '<file>',
      'Pods, Deployments, StatefulSets, DaemonSets, Jobs, CronJobs or lists of them, as YAML or JSON documents; - reads standard input.',
    );
  return addAccountFlags(
    command
      .addOption(
        new Option('--policies <path>', `${POLICIES} Default: those of --config-file.`).argParser(repeatable),
      )
      .addOption(
        new Option(
          '--config-file <path>',
          'A configuration file of the service; only [kubernetes] is used. Repeatable, later files win.',
        ).argParser(repeatable),
      )
      .addOption(
        new Option(
          '--merge-strategy <strategy>',
          'How several policies combine. Default: that of --config-file, otherwise deep.',
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
    'Show what applies to an account, part by part, and which policy each part comes from; without an account, who may use which policies.',
  );
  return addAccountFlags(
    command
      .addOption(new Option('--policies <path>', POLICIES).argParser(repeatable).makeOptionMandatory())
      .addOption(
        new Option('--merge-strategy <strategy>', 'How several policies combine.')
          .choices(MERGE_STRATEGIES)
          .default('deep'),
      ),
  )
    .option('--user <name>', 'A user instead of a service account, such as one who requests a lease.', named)
    .addOption(new Option('--group <name>', 'A group of the user; repeatable.').argParser(repeatable))
    .addOption(formatFlag('table', 'json'))
    .action(async (flags: MergeFlags) => {
      const { showMerged } = await import('./scheduling-policy-merge.ts');
      await showMerged(flags);
    });
}

function validateCommand(): Command {
  return new Command('validate')
    .description(
      'Check policies, roles and bindings, and report every error with file and line. Exit code: 0 no errors, 2 errors.',
    )
    .argument('<path...>', 'Files or folders with YAML or JSON.')
    .action(async (paths: readonly string[]) => {
      const { validatePolicies } = await import('./scheduling-policy-validate.ts');
      validatePolicies(paths);
    });
}

function addAccountFlags(command: Command): Command {
  return command
    .option('--namespace <name>', 'The namespace. Default: that of the pod, otherwise default.', named)
    .option(
      '--service-account <name>',
      'The service account. Default: that of the pod, otherwise default.',
      named,
    );
}

function named(value: string): string {
  if (value === '') {
    throw new InvalidArgumentError('The value is empty.');
  }
  return value;
}

function repeatable(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}
