/**
 * Access whose credentials are replaced while the service runs: reread when one of its files changes, and
 * requested again when those of a credential plugin expire.
 */
import { isDeepStrictEqual } from 'node:util';
import { errorText } from '../../../base/errors.ts';
import type { Logger } from '../../../base/logger.ts';
import { fileState } from '../../../config/read-file.ts';
import type { ClusterAccess, ExecPlugin } from './cluster-access.ts';
import { type ExecCredential, execCredential } from './exec-plugin.ts';

/** How often files are checked, and a failing credential plugin is run. */
const LOOK_MS = 1_000;
/** How long before it expires a credential is replaced. */
const MARGIN_MS = 10_000;
/**
 * How often a plugin is run because the API server refuses its credentials: without rights, each call would
 * run it.
 */
const REFUSED_MS = 10_000;

interface RenewedAccessOptions {
  readonly logger?: Pick<Logger, 'info' | 'warn'> | undefined;
  readonly execTimeoutMs?: number | undefined;
}

export class RenewedAccess {
  readonly #read: () => ClusterAccess;
  readonly #options: RenewedAccessOptions;
  readonly #closing = new AbortController();
  #written: ClusterAccess;
  /** Of the plugin in `#written`. */
  #credential: ExecCredential | undefined;
  #access: ClusterAccess;
  /** The first check reads again: changes in between would be missed. */
  #state = '';
  #lookAt = 0;
  #refusedAt = Number.NEGATIVE_INFINITY;
  #looking: Promise<ClusterAccess> | undefined;
  /** The plugin runs. */
  #login: Promise<void> | undefined;
  #failed: Error | undefined;
  #mistake: string | undefined;

  /** @throws the errors of `read`, only here: later the last good access stays in use */
  constructor(read: () => ClusterAccess, options: RenewedAccessOptions) {
    this.#read = read;
    this.#options = options;
    this.#written = read();
    this.#access = this.#written;
  }

  /** As of the last check. */
  get latest(): ClusterAccess {
    return this.#access;
  }

  /**
   * Checks the files, at most once a second. Concurrent calls share a check. @throws ApiUnreachableError if
   * the credential plugin fails
   */
  async current(): Promise<ClusterAccess> {
    const isRunning = this.#looking !== undefined && this.#written.exec !== undefined;
    if (performance.now() >= this.#lookAt || isRunning) {
      return this.#look(false);
    }
    if (this.#failed !== undefined) {
      throw this.#failed;
    }
    return this.#access;
  }

  /**
   * Rereads the files, changed or not, and runs the credential plugin, because the API server refused the
   * credentials. `refused`: those; if another call has reread since, its result is used.
   */
  async again(refused: ClusterAccess): Promise<ClusterAccess> {
    await this.#looking;
    return this.#access === refused ? this.#look(true) : this.#access;
  }

  /** Ends a running plugin. */
  close(): void {
    this.#closing.abort();
  }

  #look(force: boolean): Promise<ClusterAccess> {
    this.#looking ??= this.#lookNow(force).finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #lookNow(force: boolean): Promise<ClusterAccess> {
    this.#lookAt = performance.now() + LOOK_MS;
    const state = await stateOf(this.#written.files);
    try {
      if (state !== this.#state || force) {
        const { exec } = this.#written;
        this.#written = this.#read();
        if (!isDeepStrictEqual(exec, this.#written.exec)) {
          this.#credential = undefined;
          this.#login = undefined;
        }
        this.#access = this.#withCredential();
        // The state before reading: a change in between is found by the next check.
        this.#state = state;
      }
      await this.#logIn(force);
      this.#failed = undefined;
      this.#recovered();
    } catch (thrown) {
      this.#complain(errorText(thrown));
      this.#failed = this.#isLoggedIn() ? undefined : (thrown as Error);
    }
    if (this.#failed !== undefined) {
      throw this.#failed;
    }
    return this.#access;
  }

  /**
   * Runs the plugin if its credentials are missing, about to expire, or refused. It may take long: those that
   * are about to expire are used meanwhile.
   */
  async #logIn(force: boolean): Promise<void> {
    const { exec } = this.#written;
    const now = performance.now();
    const isRefused = force && now - this.#refusedAt >= REFUSED_MS;
    if (exec === undefined || (this.#isLoggedIn(MARGIN_MS) && !isRefused)) {
      return;
    }
    if (isRefused) {
      this.#refusedAt = now;
    }
    this.#login ??= this.#run(exec);
    if (isRefused || !this.#isLoggedIn()) {
      await this.#login;
    }
  }

  #run(exec: ExecPlugin): Promise<void> {
    const { logger, execTimeoutMs: timeoutMs } = this.#options;
    const login = execCredential(exec, { signal: this.#closing.signal, logger, timeoutMs })
      .then((credential) => {
        if (this.#login === login) {
          this.#credential = credential;
          this.#access = this.#withCredential();
        }
      })
      .finally(() => {
        this.#lookAt = performance.now() + LOOK_MS;
        if (this.#login === login) {
          this.#login = undefined;
        }
      });
    login.then(
      () => this.#recovered(),
      (thrown) => this.#complain(errorText(thrown)),
    );
    return login;
  }

  #isLoggedIn(marginMs = 0): boolean {
    const { expiresAt = Number.POSITIVE_INFINITY } = this.#credential ?? { expiresAt: 0 };
    return this.#written.exec === undefined || expiresAt - marginMs > Date.now();
  }

  #withCredential(): ClusterAccess {
    const written = this.#written;
    if (written.exec === undefined || this.#credential === undefined) {
      return written;
    }
    const { authorization, cert, key } = this.#credential;
    return { ...written, authorization, tls: { ...written.tls, cert, key } };
  }

  #recovered(): void {
    if (this.#mistake !== undefined && this.#login === undefined) {
      this.#mistake = undefined;
      this.#options.logger?.info('the credentials for the API server can be read again');
    }
  }

  /** A file may be half written: the next check retries. Logged once. */
  #complain(mistake: string): void {
    if (mistake !== this.#mistake) {
      this.#mistake = mistake;
      this.#options.logger?.warn(
        { problem: mistake },
        'the credentials for the API server cannot be read again; those from before stay in use',
      );
    }
  }
}

/** Changes with the content of the files. */
async function stateOf(files: readonly string[]): Promise<string> {
  return JSON.stringify([files, await Promise.all(files.map(fileState))]);
}
