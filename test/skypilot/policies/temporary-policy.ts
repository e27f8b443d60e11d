import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { classFileName } from '../../../src/plugin/class-names.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';

/** The specifier of a policy in a file that is gone after the test. It changes nothing; `options` are members of its zod object. */
export function temporaryPolicy(name: string, options = ''): string {
  const file = join(temporaryFolder(), `${classFileName(name)}.js`);
  writeFileSync(
    file,
    `import { AdminPolicy, MutatedUserRequest } from 'blazar-enforcement/skypilot';
import { z } from 'zod';
export class ${name} extends AdminPolicy {
  static options = z.object({ ${options} });
  validateAndMutate({ task, skypilotConfig }) { return new MutatedUserRequest(task, skypilotConfig); }
}
`,
  );
  return `${file}#${name}`;
}
