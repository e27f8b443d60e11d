import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errorText } from '../../base/errors.ts';

const POLL_MS = 1000;
/** File names that are watched in folders: configuration, scheduling policies and filters. */
const READ_IN_FOLDERS = /^[^.].*\.(conf|ya?ml|json|[cm]?[jt]s)$/i;

/**
 * Calls back when a file, or the target of a link, changes, appears or disappears; in a folder, only for
 * configuration, policy and filter files. Changes in a row cause one call, after a poll without a further
 * change: a file that is still being written must not be read. Polls, since kernel events miss mounts and
 * swapped links, as Kubernetes uses them. Does not keep the process alive.
 */
export class WatchedFiles {
  readonly #changed: () => void;
  readonly #pollMs: number;
  readonly #looks = new Map<string, string>();
  #timer: NodeJS.Timeout | undefined;
  #settling = false;
  #closed = false;

  constructor(changed: () => void, pollMs = POLL_MS) {
    this.#changed = changed;
    this.#pollMs = pollMs;
  }

  /**
   * Replaces the watched paths. Changes after it has resolved are noticed, so read the files then. Resolves
   * to whether a path was not watched before.
   */
  async watch(paths: readonly string[]): Promise<boolean> {
    for (const path of [...this.#looks.keys()].filter((old) => !paths.includes(old))) {
      this.#looks.delete(path);
    }
    const added = paths.filter((next) => !this.#looks.has(next));
    for (const path of added) {
      this.#looks.set(path, await lookOf(path));
    }
    return added.length > 0;
  }

  start(): void {
    this.#lookLater();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  #lookLater(): void {
    if (!this.#closed) {
      this.#timer = setTimeout(() => void this.#look(), this.#pollMs).unref();
    }
  }

  async #look(): Promise<void> {
    let changed = false;
    for (const [path, before] of this.#looks) {
      const now = await lookOf(path);
      if (this.#looks.get(path) === before && now !== before) {
        this.#looks.set(path, now);
        changed = true;
      }
    }
    const settled = this.#settling && !changed;
    this.#settling = changed;
    if (settled && !this.#closed) {
      this.#changed();
    }
    this.#lookLater();
  }
}

/** A fingerprint of the file, or of the files in the folder, that differs after every change. */
async function lookOf(path: string): Promise<string> {
  try {
    const stats = await stat(path, { bigint: true });
    if (!stats.isDirectory()) {
      return [stats.dev, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join(' ');
    }
    const names = (await readdir(path)).filter((name) => READ_IN_FOLDERS.test(name)).sort();
    const looks = await Promise.all(names.map(async (name) => [name, await lookOf(join(path, name))]));
    return looks.flat().join(' ');
  } catch (thrown) {
    return errorText(thrown);
  }
}
