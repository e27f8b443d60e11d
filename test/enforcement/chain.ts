/** A chain of filters written for one test. */
import { vi } from 'vitest';

import { type CheckOptions, UsageEnforcement } from '../../src/index.ts';
import { classFileName } from '../../src/plugin/class-names.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';
import { recordingLogger } from '../support/logger.ts';
import { createPhysicalHost } from '../support/requests.ts';

export type Hooks = Parameters<typeof filterSource>[1];

/** The message that a user sees after a failure. */
export const GENERIC = 'The lease could not be checked. Please try again later, or ask the operator.';

/** Class name → bodies of hooks. All filters are enabled, unless `options` differs. Files start with an import of zod. */
export async function chain(
  filters: Record<string, Hooks>,
  options: Record<string, unknown> = {},
  config: readonly string[] = [],
) {
  const folder = filterFolder(
    Object.fromEntries(
      Object.entries(filters).map(([name, hooks]) => [
        `${classFileName(name)}.js`,
        `import { z } from 'zod';\n${filterSource(name, hooks)}`,
      ]),
    ),
  );
  const logger = recordingLogger();
  const values = {
    enforcement: { enabled_filters: Object.keys(filters), filters_path: [folder], ...options },
  };
  const enforcement = await UsageEnforcement.load(
    { environment: {}, configFiles: [], config, values },
    { logger },
  );
  return {
    enforcement,
    logger,
    create: (check?: CheckOptions) => enforcement.checkCreate(createPhysicalHost(), check),
  };
}

/** The notes that filters push to `globalThis.notes` in this test. */
export function notes(): unknown[] {
  const list: unknown[] = [];
  vi.stubGlobal('notes', list);
  return list;
}
