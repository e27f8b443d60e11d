/** An access that is read again when one of its files changes: tokens and certificates are replaced while the service runs. */
import { stat } from 'node:fs/promises';
import { errorText } from '../../errors.ts';
import type { Logger } from '../../logger.ts';
import type { ClusterAccess } from './cluster-access.ts';

/** How often the files are looked at. */
const LOOK_MS = 1_000;

export class RenewedAccess {
  readonly #read: () => ClusterAccess;
  readonly #logger: Pick<Logger, 'info' | 'warn'> | undefined;
  #access: ClusterAccess;
  #state: string;
  #lookAt: number;
  #looking: Promise<ClusterAccess> | undefined;
  #mistake: string | undefined;

  /** @throws what `read` throws, here only: later the last good access stays in use. */
  constructor(read: () => ClusterAccess, logger: Pick<Logger, 'info' | 'warn'> | undefined) {
    this.#read = read;
    this.#logger = logger;
    this.#access = read();
    // The first look reads again: what changed meanwhile would go unnoticed.
    this.#state = '';
    this.#lookAt = 0;
  }

  /** As it was at the last look. */
  get latest(): ClusterAccess {
    return this.#access;
  }

  /** Looks at the files, at most once a second. Concurrent calls share a look. */
  current(): ClusterAccess | Promise<ClusterAccess> {
    return performance.now() < this.#lookAt ? this.#access : this.#look(false);
  }

  /**
   * Reads the files whether they seem changed or not, because the API server refuses what was read from them. `refused`: what was used;
   * where others have read again since, theirs is tried.
   */
  async again(refused: ClusterAccess): Promise<ClusterAccess> {
    await this.#looking;
    return this.#access === refused ? this.#look(true) : this.#access;
  }

  #look(force: boolean): Promise<ClusterAccess> {
    this.#looking ??= this.#lookNow(force).finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #lookNow(force: boolean): Promise<ClusterAccess> {
    this.#lookAt = performance.now() + LOOK_MS;
    const state = await stateOf(this.#access.files);
    if (state !== this.#state || force) {
      try {
        this.#access = this.#read();
        // Of the files before they were read: a change in between is found by the next look.
        this.#state = state;
        if (this.#mistake !== undefined) {
          this.#mistake = undefined;
          this.#logger?.info('the credentials for the API server can be read again');
        }
      } catch (thrown) {
        this.#complain(errorText(thrown));
      }
    }
    return this.#access;
  }

  /** A file may be half written: the next look tries again. Said once. */
  #complain(mistake: string): void {
    if (mistake !== this.#mistake) {
      this.#mistake = mistake;
      this.#logger?.warn(
        { problem: mistake },
        'the credentials for the API server cannot be read again; those from before stay in use',
      );
    }
  }
}

/** Changes with the content of the files, also where a symbolic link is swapped. */
async function stateOf(files: readonly string[]): Promise<string> {
  const states = await Promise.all(
    files.map(async (file) => {
      try {
        const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
        return [dev, ino, size, mtimeNs, ctimeNs].join();
      } catch {
        return '';
      }
    }),
  );
  return `${files.join('\0')}\0${states.join()}`;
}
