import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Generates filters like those of operators, each with its own limit on the length of a lease. */
export interface DurationFilters {
  readonly folder: string;
  readonly names: readonly string[];
  /** The options for the limits in seconds, in the same order. */
  readonly limits: readonly string[];
  remove(): void;
}

/** Writes this many filters to a folder for `filters_path`. Each one reads and compares both dates. */
export function writeDurationFilters(count: number): DurationFilters {
  const folder = mkdtempSync(join(tmpdir(), 'blazar-enforcement-bench-'));
  const numbers = Array.from({ length: count }, (_, index) => index + 1);
  for (const number of numbers) {
    writeFileSync(join(folder, `duration${number}-filter.mjs`), filterSource(number));
  }
  return {
    folder,
    names: numbers.map((number) => `Duration${number}Filter`),
    limits: numbers.map((number) => `duration${number}`),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function filterSource(number: number): string {
  return `import { allow, BaseFilter, leaseEnd, leaseStart, reject } from 'blazar-enforcement';
import { z } from 'zod';

export class Duration${number}Filter extends BaseFilter {
  static options = z.object({ duration${number}: z.int().default(0) });

  checkCreate(context, lease) {
    const seconds = Number((leaseEnd(lease) - leaseStart(lease)) / 1_000_000n);
    const limit = this.options.duration${number};
    return seconds <= limit ? allow() : reject(\`The lease is \${seconds} seconds long; \${limit} are allowed.\`);
  }

  checkUpdate(context, currentLease, newLease) {
    return this.checkCreate(context, { ...currentLease, ...newLease });
  }

  onEnd() {}
}
`;
}
