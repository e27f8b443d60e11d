/** The files of a folder: the page, its measurements and its pictures. */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Measurements, parseMeasurements, writtenMeasurements } from './measurements.ts';
import { renderedPage } from './page.ts';
import { pictures } from './pictures.ts';

const MEASUREMENTS = 'performance.json';

/** Empty if the folder has none. Throws if they are unreadable, since they would be lost. */
export function readMeasurements(folder: string): Measurements {
  const path = join(folder, MEASUREMENTS);
  if (!existsSync(path)) {
    return { topics: {} };
  }
  try {
    return parseMeasurements(readFileSync(path, 'utf8'));
  } catch (thrown) {
    throw new Error(`${path}: expected what an earlier bench has measured: ${String(thrown)}`);
  }
}

/** Writes each file atomically, so that readers and interruptions never leave a part. */
export function writePerformance(folder: string, measurements: Measurements): void {
  const files = performanceFiles(measurements);
  for (const [name, content] of files) {
    const path = join(folder, name);
    const unfinished = `${path}.${process.pid}.tmp`;
    mkdirSync(dirname(path), { recursive: true });
    try {
      writeFileSync(unfinished, content);
      renameSync(unfinished, path);
    } finally {
      rmSync(unfinished, { force: true });
    }
  }
}

/** File contents by path in the folder. */
export function performanceFiles(measurements: Measurements): ReadonlyMap<string, string> {
  return new Map([
    // First, because the others can be recreated from it.
    [MEASUREMENTS, writtenMeasurements(measurements)],
    ...pictures(measurements).map(({ file, svg }) => [join('images', file), svg] as const),
    ['performance.md', renderedPage(measurements)],
  ]);
}
