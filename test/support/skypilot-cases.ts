/** Folders of cases, and a policy for them. */
import { readFileSync, writeFileSync } from 'node:fs';
import { skypilotTestCommand } from '../../src/cli/skypilot.ts';
import { runInProcess } from './command-in-process.ts';
import { policyFiles } from './skypilot.ts';

/** Runs `skypilot test`. */
export const runCases = (folder: string, ...args: string[]) =>
  runInProcess(skypilotTestCommand(), [folder, ...args]);

const LIMIT = `if (task.num_nodes > 2) throw new PolicyRejected(task.num_nodes + ' nodes are too many');
  if (task.name === 'boom') throw new Error('s3cret cause');
  if (task.name === 'net') await fetch('http://127.0.0.1:8642/').catch(({ cause }) => { throw cause; });
  if (task.name === 'grow') task.num_nodes += 1;
  if (task.name === 'own') config.assign(['gcp', 'vpc_name'], request.requestName + task.num_nodes);
  if (task.name === 'clock') task.envs = { NOW: this.services.clock.now().toISOString(), DATE: new Date().toISOString() };
  task.resources = { ...task.resources, labels: { team: request.user?.name ?? 'client' } };`;

/** The specifier of the policy. */
export function limitPolicy(): string {
  const [specifier = ''] = policyFiles({ LimitPolicy: '' }).specifiers;
  const file = specifier.replace(/#.*/, '');
  const text = readFileSync(file, 'utf8');
  writeFileSync(
    file,
    text.replace('validateAndMutate', 'async validateAndMutate').replace('    \n', () => `${LIMIT}\n`),
  );
  return specifier;
}
