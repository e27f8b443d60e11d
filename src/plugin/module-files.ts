/** The code in a folder of plug-ins, and whether it has changed since it was loaded. */
import { hash } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const MODULE = /^[^.].*\.([cm]?[jt]s|json)$/;
/** Further files in a folder are ignored: `filters_path = /` must not read the whole disk. */
const MAX_FILES = 1000;

/**
 * The files that code in a folder may import: in the folder, then in its subfolders, sorted by name. Hidden
 * folders, `node_modules` and links to folders are omitted. Empty if the folder cannot be read.
 */
export function moduleFiles(folder: string): string[] {
  const files: string[] = [];
  const folders = [folder];
  for (let next = folders.shift(); next !== undefined && files.length < MAX_FILES; next = folders.shift()) {
    for (const entry of entriesOf(next)) {
      if (!entry.isDirectory() && MODULE.test(entry.name)) {
        files.push(join(next, entry.name));
      } else if (entry.isDirectory() && /^[^.]/.test(entry.name) && entry.name !== 'node_modules') {
        folders.push(join(next, entry.name));
      }
    }
  }
  return files.slice(0, MAX_FILES);
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch {
    return [];
  }
}

interface Versions {
  readonly first: string;
  latest: string;
}

const versions = new Map<string, Versions>();
const commonJs = createRequire(import.meta.url);

/**
 * The version of some files on disk: `null` = the one that this process loaded first, else a text, different
 * for each version. `place`: their folder or file.
 *
 * Node caches modules for good, by URL. Import another version of a module by another URL, with
 * `withVersion`. CommonJS modules are cached by path; older versions are dropped here.
 */
export function versionOf(place: string, files: readonly string[]): string | null {
  const version = hash('sha256', JSON.stringify(files.map(stampOf)), 'base64url').slice(0, 16);
  const known = versions.get(place);
  if (known === undefined) {
    versions.set(place, { first: version, latest: version });
    return null;
  }
  if (version !== known.latest) {
    known.latest = version;
    for (const file of files) {
      delete commonJs.cache[file];
    }
  }
  return version === known.first ? null : version;
}

function stampOf(file: string): string[] {
  try {
    const { ino, size, mtimeNs } = statSync(file, { bigint: true });
    return [file, `${ino}`, `${size}`, `${mtimeNs}`];
  } catch {
    return [file];
  }
}
