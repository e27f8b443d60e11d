/** Files that root makes for a service that runs as another user. */
import { closeSync, existsSync, fchownSync, lstatSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf } from './errors.ts';

/**
 * Creates a file if it is not there, for its owner and group. If root makes it, it belongs to the owner of its folder: the
 * user of the service, who could not open a file of root. That user could have made a link to anything, so what a link
 * leads to belongs to root.
 */
export function createFile(path: string): void {
  if (existsSync(path)) {
    return;
  }
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  try {
    const descriptor = openSync(path, isLink ? 'a' : 'ax', 0o660);
    try {
      if (process.geteuid?.() === 0 && !isLink) {
        const { uid, gid } = statSync(dirname(path));
        fchownSync(descriptor, uid, gid);
      }
    } finally {
      closeSync(descriptor);
    }
  } catch (thrown) {
    // Another process has made it meanwhile.
    if (codeOf(thrown) !== 'EEXIST') {
      throw thrown;
    }
  }
}
