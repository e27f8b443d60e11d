/** `scheduling-policy`: inspects scheduling policies in files or a cluster. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { createLogger } from '../base/logger.ts';
import { MERGE_STRATEGIES } from '../kubernetes/policies/merge.ts';
import { ExitCode, printedErrors, UsageError } from './common/output.ts';
import { formatFlag, repeatable } from './common/sources.ts';
import type {
  CheckFlags,
  ExportFlags,
  MergeFlags,
  ScanFlags,
  WhoCanFlags,
} from './scheduling-policy/options.ts';

export function schedulingPolicyCommand(): Command {
  return new Command('scheduling-policy')
    .description('Inspect scheduling policies and try them on pods, with or without a cluster.')
    .addCommand(checkCommand())
    .addCommand(mergeCommand())
    .addCommand(validateCommand())
    .addCommand(whoCanCommand())
    .addCommand(scanCommand())
    .addCommand(exportCommand())
    .addCommand(certificatesCommand());
}

// Each action imports its own module, because loading the YAML reader would slow down all other commands.

const CLUSTER = 'Ask the cluster for policies and rights, instead of reading files.';
const POLICIES = 'A file or folder with scheduling policies, roles and bindings; repeatable.';

function checkCommand(): Command {
  const command = new Command('check')
    .description(
      'Review pods and pod templates like the webhook, and show what policies add as a diff. Exit code: 0 all allowed, 1 at least one rejected, 2 an error in the policies, the objects or the command, 3 the cluster gives no answer, or a rule broke.',
    )
    .argument(
      '<file>',
      'Pods, Deployments, StatefulSets, DaemonSets, Jobs, CronJobs or lists of them, as YAML or JSON documents; - reads standard input.',
    );
  return addAccountFlags(
    addJudgeFlags(
      addClusterFlags(
        command
          .option('--policies <path>', `${POLICIES} Default: those of --config-file.`, repeatable)
          .option('--cluster', CLUSTER),
      ),
    ),
  )
    .addOption(formatFlag('diff', 'json'))
    .action(async (file: string, flags: CheckFlags) =>
      (await import('./scheduling-policy/check.ts')).checkPods(file, flags),
    );
}

function mergeCommand(): Command {
  const command = new Command('merge').description(
    'Show what applies to an account, part by part, and which policy each part comes from; without an account, who may use which policies. Exit code: 0 done, 2 an error in the policies or the command, or the cluster forbids it, 3 the cluster gives no answer.',
  );
  return addAccountFlags(
    addClusterFlags(
      command
        .addOption(new Option('--policies <path>', POLICIES).argParser(repeatable))
        .option('--cluster', CLUSTER),
    ).addOption(
      new Option('--merge-strategy <strategy>', 'How several policies combine.')
        .choices(MERGE_STRATEGIES)
        .default('deep'),
    ),
  )
    .option('--user <name>', 'A user instead of a service account, such as one who requests a lease.', named)
    .option('--group <name>', 'A group of the user; repeatable.', repeatable)
    .addOption(formatFlag('table', 'json'))
    .action(async (flags: MergeFlags) => (await import('./scheduling-policy/merge.ts')).showMerged(flags));
}

function validateCommand(): Command {
  return new Command('validate')
    .description(
      'Check policies, roles and bindings, and report every error with file and line. Exit code: 0 no errors, 2 errors.',
    )
    .argument('<path...>', 'Files or folders with YAML or JSON.')
    .action(validatePolicies);
}

function whoCanCommand(): Command {
  return addClusterFlags(
    new Command('who-can')
      .description(
        'Show which users, groups and service accounts may use a policy of the cluster, and the binding that grants it. Each is confirmed by the API server. Not listed: accounts that another authorizer than RBAC allows; ask for one of them by its name. Exit code: 0 done, or the account may use the policy; 1 the account may not; 2 a mistake in the command, or the cluster forbids it; 3 the cluster gives no answer.',
      )
      .argument('<name>', 'The name of a scheduling policy.')
      .option(
        '-n, --namespace <name>',
        'Show who may use the policy in this namespace. Default: in all, or in any of them.',
        namespaceName,
      )
      .option(
        '--service-account <namespace/name>',
        'Answer yes or no for this service account, in its namespace.',
        named,
      )
      .option('--user <name>', 'Answer yes or no for this user.', named)
      .option(
        '--group <name>',
        'A group of the user, who is in system:authenticated too; without --user, answer for any member of it. Repeatable.',
        each(named),
      ),
  )
    .addOption(formatFlag('table', 'json'))
    .action(async (name: string, flags: WhoCanFlags) =>
      (await import('./scheduling-policy/who-can.ts')).showWhoCan(name, flags),
    );
}

function scanCommand(): Command {
  return addJudgeFlags(
    addClusterFlags(
      new Command('scan')
        .description(
          'Go through the running pods of the cluster and show which would be refused if they were created now, with all policies enforced, also those in audit mode. What Kubernetes has added to a pod does not count: the node chosen by the scheduler, tolerations of the system and of DaemonSets. Exit code: 0 all would be allowed, 1 at least one would be refused, 2 a mistake in the command, or the cluster forbids it, 3 the cluster gives no answer.',
        )
        .option(
          '-n, --namespace <name>',
          'Scan this namespace; repeatable. Default: all but the exempt ones.',
          each(namespaceName),
        )
        .option('-A, --all-namespaces', 'Scan all namespaces but the exempt ones. This is the default.')
        .option(
          '-l, --selector <labels>',
          'Scan only what has these labels, as in kubectl: app=web,tier!=db.',
          named,
        )
        .option(
          '--exempt-namespace <name>',
          'A namespace whose pods the webhooks do not judge; repeatable. Default: kube-system and blazar-enforcement, as in etc/kubernetes.',
          each(named),
        )
        .option(
          '--workloads',
          'Also judge the templates of Deployments, StatefulSets, DaemonSets, Jobs and CronJobs, which may have no pods now.',
        ),
    ),
  )
    .addOption(formatFlag('table', 'json', 'junit'))
    .action(async (flags: ScanFlags) => (await import('./scheduling-policy/scan.ts')).scanCluster(flags));
}

function exportCommand(): Command {
  return addJudgeFlags(
    addClusterFlags(
      new Command('export')
        .description(
          'Write scheduling policies as ValidatingAdmissionPolicies with bindings, which Kubernetes 1.30 or newer evaluates without a webhook. They judge pods, templates of DaemonSets and bindings as the webhook does, but add no defaults. What cannot be expressed in CEL is a warning, and a comment in the output. Exit code: 0 written, 1 something cannot be expressed (with --strict), 2 a mistake in the policies or the command, or the cluster forbids it, 3 the cluster gives no answer.',
        )
        .argument('[name...]', 'Names of the policies. Default: all.')
        .option(
          '--policies <path>',
          'A file or folder with scheduling policies; - reads standard input; repeatable. Default: those of --config-file.',
          repeatable,
        )
        .option('--cluster', 'Read the policies of the cluster, instead of files.')
        .option(
          '--rules <path>',
          'Export the rules for pods of a file or folder, instead of policies.',
          named,
        ),
    ),
  )
    .addOption(formatFlag('vap'))
    .option('--name <name>', 'The first part of the names of all objects.', named, 'scheduling-policies')
    .option(
      '--exempt-namespace <name>',
      'A namespace whose pods are not judged; repeatable. Default: kube-system.',
      repeatable,
    )
    .option('--warn-only', 'Warn instead of refusing. Default if audit = * in --config-file.')
    .option('--strict', 'Exit with 1 if something cannot be expressed.')
    .action(async (names: readonly string[], flags: ExportFlags) =>
      (await import('./scheduling-policy/export.ts')).exportPolicies(names, flags),
    );
}

function addClusterFlags(command: Command): Command {
  return command
    .option(
      '--kubeconfig <path>',
      'The kubeconfig for the cluster. Default: $KUBECONFIG, else ~/.kube/config, else the service account of the pod.',
      named,
    )
    .option('--context <name>', 'The context of the kubeconfig. Default: its current one.', named);
}

function addJudgeFlags(command: Command): Command {
  return command
    .option(
      '--config-file <path>',
      'A configuration file of the service; only [kubernetes] is used. Repeatable, later files win.',
      repeatable,
    )
    .addOption(
      new Option(
        '--merge-strategy <strategy>',
        'How several policies combine. Default: that of --config-file, otherwise deep.',
      ).choices(MERGE_STRATEGIES),
    )
    .option(
      '--default-priority-class <name>',
      'The PriorityClass of the cluster with globalDefault: true. Default: that of --config-file, or of the cluster if it is asked.',
      named,
    );
}

function certificatesCommand(): Command {
  return new Command('certificates')
    .description(
      'Write the certificate that the service makes for itself, before its first start: certificate_secret in [kubernetes]. Tries again, and logs why, while the API server gives no answer, rights are missing or the file cannot be written. Exit code: 0 written, 2 an error in the configuration, 3 stopped by a signal before.',
    )
    .addOption(
      new Option('--config-file <path>', 'A configuration file of the service. Repeatable, later files win.')
        .argParser(repeatable)
        .makeOptionMandatory(),
    )
    .action(async ({ configFile }: { readonly configFile: readonly string[] }) => {
      await writeCertificates(configFile);
    });
}

function addAccountFlags(command: Command): Command {
  return command
    .option(
      '--namespace <name>',
      'The namespace. Default: that of the pod, otherwise default.',
      namespaceName,
    )
    .option(
      '--service-account <name>',
      'The service account. Default: that of the pod, otherwise default.',
      accountName,
    );
}

/** Otherwise `who-can --service-account NAMESPACE/NAME` would be an account here that has no policies. Source: as below. */
function accountName(value: string): string {
  if (!/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(named(value))) {
    throw new InvalidArgumentError(
      'Expected the name of a service account: lower-case letters, digits, "-" and ".". Its namespace is --namespace.',
    );
  }
  return value;
}

function named(value: string): string {
  if (value === '') {
    throw new InvalidArgumentError('The value is empty.');
  }
  return value;
}

function each(parse: (value: string) => string) {
  return (value: string, before: readonly string[] = []): readonly string[] => [...before, parse(value)];
}

/** It becomes part of paths. Source: Kubernetes, names of namespaces (RFC 1123). */
function namespaceName(value: string): string {
  if (!/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(named(value))) {
    throw new InvalidArgumentError('Expected the name of a namespace: lower-case letters, digits and "-".');
  }
  return value;
}

async function validatePolicies(paths: readonly string[]): Promise<void> {
  const { readPolicyDocuments } = await import('../kubernetes/policies/documents/documents.ts');
  const { policies, roles, bindings, problems } = readPolicyDocuments(paths);
  if (printedErrors(problems)) {
    return;
  }
  const counts = [
    counted(policies.length, 'scheduling policy', 'scheduling policies'),
    counted(roles.length, 'role', 'roles'),
    counted(bindings.length, 'binding', 'bindings'),
  ];
  process.stdout.write(`no mistakes in ${counts.join(', ')}\n`);
}

function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}

async function writeCertificates(configFiles: readonly string[]): Promise<void> {
  const { readKubernetes } = await import('./scheduling-policy/options.ts');
  const { configuredRotator } = await import('../kubernetes/cluster/certificates/certificate-rotator.ts');
  // Tokens are not there yet, nor is what this command writes.
  const options = await readKubernetes(configFiles, ['tokens_file', 'client_ca_file']);
  const configured = await configuredRotator(options, createLogger('info', 'json'));
  if (configured === undefined) {
    throw new UsageError('expected certificate_secret in [kubernetes] of --config-file');
  }
  const stop = () => void configured.close();
  process.once('SIGTERM', stop).once('SIGINT', stop);
  try {
    process.exitCode = (await configured.rotator.prepare()) ? ExitCode.ok : ExitCode.failed;
  } finally {
    process.off('SIGTERM', stop).off('SIGINT', stop);
    await configured.close();
  }
}
