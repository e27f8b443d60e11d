import { spawnSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'vitest';
import { temporaryFolder } from '../../support/filter-folder.ts';
import { FOLDER } from './manifests.ts';

/** A copy of etc/kubernetes that is removed after the test, without keys that someone has made there. */
export function copyOfFolder(): string {
  const folder = join(temporaryFolder(), 'kubernetes');
  cpSync(FOLDER, folder, { recursive: true, filter: (path) => !path.endsWith('/certificate') });
  return folder;
}

/** Skips a test whose tool is missing, and says so. */
export function need(context: TestContext, tool: string, ...version: string[]): void {
  if (spawnSync(tool, version).status !== 0) {
    const message = `${tool} is not installed: etc/kubernetes is NOT checked with it here`;
    console.warn(message);
    context.skip(message);
  }
}

/** Runs certificate.sh of a folder. */
export function makeCertificate(folder: string, ...args: string[]) {
  return spawnSync(join(folder, 'certificate.sh'), args, { encoding: 'utf8' });
}
