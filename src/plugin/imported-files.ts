/** The files that a module imports by relative paths, to find the one with a mistake. Reads texts and runs nothing. */
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

const IMPORT = /(?:\bfrom|\bimport|\brequire)\s*\(?\s*(["'])(\.{1,2}\/[^"'\n]{1,500})\1/g;
const MAX_FILES = 20;
/** In characters. */
const MAX_TEXT = 1_000_000;

/** The file, then the files that it imports, and those that these import. Files that cannot be read are left out. */
export function importedFiles(file: string): string[] {
  const found = new Set([resolve(file)]);
  for (const one of found) {
    const text = textOf(one);
    if (text === undefined) {
      found.delete(one);
      continue;
    }
    for (const [, , path = ''] of text.matchAll(IMPORT)) {
      if (found.size < MAX_FILES) {
        found.add(resolve(dirname(one), path));
      }
    }
  }
  return [...found];
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').slice(0, MAX_TEXT);
  } catch {
    return undefined;
  }
}
