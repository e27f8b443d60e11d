/** What the tests of `scheduling-policy` share: its commands in this process, and policies to ask about. */
import { schedulingPolicyCommand } from '../../../src/cli/scheduling-policy.ts';
import { runInProcess } from '../../support/command-in-process.ts';
import { temporaryFile } from '../../support/files.ts';
import type { CommandResult } from '../../support/run-command.ts';

export function run(
  name: 'check' | 'export' | 'merge' | 'validate',
  ...args: string[]
): Promise<CommandResult> {
  const command = schedulingPolicyCommand().commands.find((one) => one.name() === name);
  if (command === undefined) {
    throw new Error(`there is no command ${name}`);
  }
  return runInProcess(command, args);
}

export function policy(name: string, spec: string): string {
  return `apiVersion: extensions/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: ${name}}\nspec: ${spec}\n`;
}

/** A role that may use one policy, and who has it: everywhere, or in one namespace. */
export function grant(name: string, subject: string, namespace?: string): string {
  const binding = namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding';
  const place = namespace === undefined ? '' : `, namespace: ${namespace}`;
  return `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: ${name}}
rules: [{apiGroups: [extensions], resources: [schedulingpolicies], resourceNames: [${name}], verbs: [use]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ${binding}
metadata: {name: ${name}${place}}
roleRef: {kind: ClusterRole, name: ${name}}
subjects: [${subject}]
`;
}

export const EVERYBODY = '{kind: Group, name: system:authenticated}';

export function policyFile(...documents: string[]): string {
  return temporaryFile('policies.yaml', documents.join('---\n'));
}

/** A file of policies that everybody may use: spec by name. */
export function policiesOfAll(specs: Readonly<Record<string, string>>): string {
  return policyFile(
    ...Object.entries(specs).flatMap(([name, spec]) => [policy(name, spec), grant(name, EVERYBODY)]),
  );
}

/** Everybody chooses a disk, ssd by default; who builds in `ci` may tolerate the taint of its nodes as well. */
export function basicPolicies(): string {
  return policyFile(
    policy(
      'basic',
      '{allowed: {schedulerNames: [default-scheduler], nodeSelectors: {disk: [hdd]}}, default: {nodeSelector: {disk: ssd}}}',
    ),
    grant('basic', EVERYBODY),
    policy('ci', '{allowed: {tolerations: [{keys: [ci], operators: [Exists], effects: []}]}}'),
    grant('ci', '{kind: ServiceAccount, name: builder, namespace: ci}', 'ci'),
  );
}

/** A pod with a spec, in YAML. */
export function podFile(spec: string, metadata = '{name: web}'): string {
  return temporaryFile('pod.yaml', `apiVersion: v1\nkind: Pod\nmetadata: ${metadata}\nspec: ${spec}\n`);
}

/** Checks a file by `basicPolicies`. */
export function check(file: string, ...flags: string[]): Promise<CommandResult> {
  return run('check', file, '--policies', basicPolicies(), ...flags);
}
