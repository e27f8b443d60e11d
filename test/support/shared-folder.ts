/** A folder that all files of one run share, for what takes long to make. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { inject } from 'vitest';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    sharedFolder: string;
  }
}

export default function setup(project: TestProject): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'blazar-enforcement-shared-'));
  project.provide('sharedFolder', folder);
  return () => rmSync(folder, { recursive: true, force: true });
}

/** Longer than anything takes to make on a busy machine. */
const DEADLINE_MILLISECONDS = 600_000;

/** The folder of this name, filled by the first file that asks for it; the others wait. Rejects for all of them where `fill` fails. */
export async function madeOnce(name: string, fill: (folder: string) => Promise<void>): Promise<string> {
  const folder = join(inject('sharedFolder'), name);
  const outcome = `${folder}.outcome`;
  if (isFirst(folder)) {
    const failure = await fill(folder).then(() => '', String);
    writeFileSync(`${outcome}.new`, failure);
    renameSync(`${outcome}.new`, outcome);
  }
  const end = performance.now() + DEADLINE_MILLISECONDS;
  while (!existsSync(outcome)) {
    if (performance.now() > end) {
      throw new Error(`${folder} was not made in time`);
    }
    await pause(50);
  }
  const failure = readFileSync(outcome, 'utf8');
  if (failure !== '') {
    throw new Error(failure);
  }
  return folder;
}

function isFirst(folder: string): boolean {
  try {
    mkdirSync(folder);
    return true;
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'EEXIST') {
      return false;
    }
    throw thrown;
  }
}
