/** Policies in separate threads. They run built code: `npm run build`. */
import type { EnforcementServices } from '../../src/enforcement/services.ts';
import type { ReceivedRequest } from '../../src/skypilot/request/wire.ts';
import type { WhenDone } from './filter-folder.ts';
import type { RecordingLogger } from './logger.ts';
import { chainOn, policyFiles, type RunningChain, received } from './skypilot.ts';

/** A chain of policies, each in its own thread: name → body of `validateAndMutate`. */
export function threads(
  policies: Readonly<Record<string, string>>,
  services: EnforcementServices = {},
  whenDone?: WhenDone,
): Promise<RunningChain> {
  const { specifiers } = policyFiles(policies, whenDone);
  return chainOn({ admin_policies: specifiers, isolation: 'worker' }, services, whenDone);
}

export function taskOf(name: string): ReceivedRequest {
  return received({ task: `name: ${name}\n` });
}

/** One policy with behaviour by task name; other tasks are allowed, and get a count of the tasks so far. */
export function switched(ways: Readonly<Record<string, string>>): Record<string, string> {
  const cases = Object.entries(ways).map(([name, way]) => `if (task.name === '${name}') { ${way} }`);
  return {
    SwitchPolicy: `this.count = (this.count ?? 0) + 1; task.count = this.count;\n${cases.join('\n')}`,
  };
}

/** The log for operators, without the stacks of errors. */
export function shownLines({ lines }: Pick<RecordingLogger, 'lines'>): RecordingLogger['lines'] {
  return lines
    .filter(({ level }) => level !== 'debug')
    .map(({ fields: { stack: _, ...fields }, ...line }) => ({ ...line, fields }));
}
