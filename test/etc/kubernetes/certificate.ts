import { spawnSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/filter-folder.ts';
import { FOLDER } from './manifests.ts';

/** A copy of etc/kubernetes that is removed after the test, without keys that someone has made there. */
export function copyOfFolder(): string {
  const folder = join(temporaryFolder(), 'kubernetes');
  cpSync(FOLDER, folder, { recursive: true, filter: (path) => !path.endsWith('/certificate') });
  return folder;
}

/** Runs certificate.sh of a folder. */
export function makeCertificate(folder: string, ...args: string[]) {
  return spawnSync(join(folder, 'certificate.sh'), args, { encoding: 'utf8' });
}
