import { temporaryFile } from '../../support/files.ts';
import { policySource } from '../../support/skypilot.ts';

/** The specifier of a policy in a file that is gone after the test. */
export function policyFile(
  name: string,
  ...source: readonly [text?: string, more?: { extra?: string; imports?: string }]
): string {
  return `${temporaryFile(`${name}.js`, policySource(name, ...source))}#${name}`;
}

/** One that changes nothing; `options` are members of its zod object. */
export function temporaryPolicy(name: string, options = ''): string {
  const extra = `static options = z.object({ ${options} });`;
  return policyFile(name, '', { imports: "import { z } from 'zod';", extra });
}
