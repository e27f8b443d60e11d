/** `scheduling-policy validate`: checks policies, roles and bindings. */
import { readPolicyDocuments } from '../../kubernetes/policies/documents/documents.ts';
import { ExitCode, printProblems } from '../output.ts';

export function validatePolicies(paths: readonly string[]): void {
  const { policies, roles, bindings, problems } = readPolicyDocuments(paths);
  printProblems(problems);
  if (problems.some(({ severity }) => severity === 'error')) {
    process.exitCode = ExitCode.usage;
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
