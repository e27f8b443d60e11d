import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errorText } from '../errors.ts';

const POLL_MS = 1000;
/** The files that are read in a folder: configuration, scheduling policies, filters. */
const READ_IN_FOLDERS = /^[^.].*\.(conf|ya?ml|json|[cm]?[jt]s)$/;

/**
 * Calls back when one of the files has changed, appeared or gone, or what a link leads to; of a folder, a configuration, policy or code file in it.
 * Once for changes that come together, and not before another look has found nothing more: a file that is being written is
 * not to be read half. Polls, since the events of the kernel miss what is mounted or swapped behind a link, as Kubernetes
 * does. Keeps no process alive.
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

  /** These paths, in place of those before. What changes after it has resolved will be seen: read them then. */
  async watch(paths: readonly string[]): Promise<void> {
    for (const path of [...this.#looks.keys()].filter((old) => !paths.includes(old))) {
      this.#looks.delete(path);
    }
    for (const path of paths.filter((next) => !this.#looks.has(next))) {
      this.#looks.set(path, await lookOf(path));
    }
  }

  /** From now on it calls back. */
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

/** A text that is another one whenever the file is, or those of the folder are. */
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
