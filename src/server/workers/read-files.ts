/** What the files of a configuration hold, in one text: workers with the same one decide the same. */
import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errorText } from '../../errors.ts';
import { READ_IN_FOLDERS } from '../watched-files.ts';

export class ReadFiles {
  #digest = '';

  /** Of the files that were read last. */
  get digest(): string {
    return this.#digest;
  }

  /**
   * Reads them, after a configuration was read from them. Resolves to whether they hold what they held the last time: if not, they may have
   * changed after the configuration was read, which must be read once more.
   */
  async areRead(paths: readonly string[]): Promise<boolean> {
    const before = this.#digest;
    this.#digest = await digestOf(paths);
    return this.#digest === before;
  }
}

async function digestOf(paths: readonly string[]): Promise<string> {
  const hash = createHash('sha256');
  for (const path of new Set(paths)) {
    await add(hash, path);
  }
  return hash.digest('base64');
}

async function add(hash: ReturnType<typeof createHash>, path: string): Promise<void> {
  try {
    const found = await stat(path);
    if (found.isDirectory()) {
      const names = (await readdir(path)).filter((name) => READ_IN_FOLDERS.test(name)).sort();
      for (const name of names) {
        await add(hash, join(path, name));
      }
      return;
    }
    if (!found.isFile()) {
      // Reading a pipe might never end.
      hash.update(JSON.stringify([path, found.ino]));
      return;
    }
    const bytes = await readFile(path);
    hash.update(JSON.stringify([path, bytes.length])).update(bytes);
  } catch (thrown) {
    hash.update(JSON.stringify([path, errorText(thrown)]));
  }
}
