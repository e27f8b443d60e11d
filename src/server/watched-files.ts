import { unwatchFile, watchFile } from 'node:fs';

const POLL_MS = 1000;
/** So long nothing may have changed: a file that is being written is not to be read half. */
const SETTLE_MS = 1000;

/**
 * Calls back when one of the files has changed, appeared or gone, or what a link leads to: once for changes that come
 * together. Polls, since the events of the kernel miss what is mounted or swapped behind a link, as Kubernetes does.
 * A folder has changed when a file came or went. Keeps no process alive.
 */
export class WatchedFiles {
  readonly #changed: () => void;
  #paths: readonly string[] = [];
  #settling: NodeJS.Timeout | undefined;

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /** Watches these paths, in place of those before. */
  watch(paths: readonly string[]): void {
    for (const path of this.#paths.filter((old) => !paths.includes(old))) {
      unwatchFile(path, this.#seen);
    }
    for (const path of paths.filter((next) => !this.#paths.includes(next))) {
      watchFile(path, { interval: POLL_MS, persistent: false }, this.#seen);
    }
    this.#paths = [...paths];
  }

  close(): void {
    this.watch([]);
    clearTimeout(this.#settling);
  }

  readonly #seen = () => {
    clearTimeout(this.#settling);
    this.#settling = setTimeout(this.#changed, SETTLE_MS).unref();
  };
}
