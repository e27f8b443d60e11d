/**
 * Follows all objects of one kind: a list, then a watch from there, as long as the service runs.
 *
 * A frozen API server, and a connection that a firewall has dropped, are as silent as a cluster without
 * changes. So each watch requests its end after some seconds, and an overdue one is given up. After an end on
 * time, the API server must show that etcd answers, and with no older version: it serves watches from its
 * memory, on time and without an event, even while etcd is unavailable, or after etcd was restored from a
 * backup. Only then does the next watch continue where this one ended. After anything else (errors, silence,
 * an early end) a list is read again.
 */
import { errorText } from '../../../base/errors.ts';
import type { Logger } from '../../../base/logger.ts';
import type { Following, ObjectListener } from '../live/contract.ts';
import { type ApiClient, ApiUnreachableError, type RestartReason, type WatchEvent } from './contract.ts';
import { isExpired, listObjects, listPage, type ObjectList } from './list.ts';
import { Backoff, elapsed } from './timing.ts';
import { isOlder, problemWords, reasonOf, SilentError } from './watch-stream.ts';

/** For metrics. Must not throw. */
export interface WatchObserver {
  listed?(seconds: number): void;
  restarted?(reason: RestartReason): void;
}

export interface ListWatchTimes {
  /** Shortest and longest time of a watch, in whole seconds. Default: 7 and 10. */
  readonly watchSeconds: readonly [number, number];
  /** How long the end of a watch may be overdue. Default: 4000. */
  readonly graceMs: number;
  /** Shortest and longest pause after a failure. Default: 100 and 15000. */
  readonly backoffMs: readonly [number, number];
  /** How often a list is read without a failure, against unforeseen faults. Default: 300000. */
  readonly listEveryMs: number;
}

export interface ListWatchOptions {
  readonly client: ApiClient;
  /** `/apis/rbac.authorization.k8s.io/v1/clusterroles` */
  readonly path: string;
  /** Such as `fieldSelector`. */
  readonly query?: Readonly<Record<string, string>>;
  /** If it throws, it has missed a change: all is listed for it again. */
  readonly listener: ObjectListener;
  readonly logger?: Pick<Logger, 'info' | 'warn' | 'error'>;
  readonly observer?: WatchObserver;
  /** What to do if the API server has no such kind, or the account may not read it. */
  readonly hints?: { readonly notFound?: string; readonly forbidden?: string };
  readonly times?: Partial<ListWatchTimes>;
}

const TIMES: ListWatchTimes = {
  watchSeconds: [7, 10],
  graceMs: 4_000,
  backoffMs: [100, 15_000],
  listEveryMs: 300_000,
};

/**
 * A watch that ends more than this before its time was ended by something else. The API server starts
 * counting later than we do.
 */
const EARLY_MS = 100;

/** The listener has thrown; the error is logged. */
class ListenerError extends Error {}

export class ListWatch {
  readonly #options: ListWatchOptions;
  readonly #times: ListWatchTimes;
  readonly #backoff: Backoff;
  readonly #closing = new AbortController();
  #running: Promise<void> | undefined;
  #hasList = false;
  #currentAt: number | undefined;
  #problem: string | undefined;
  #isBack = false;
  /** The API server of the followed list. */
  #listedFrom: string | undefined;

  constructor(options: ListWatchOptions) {
    this.#options = options;
    this.#times = { ...TIMES, ...options.times };
    this.#backoff = new Backoff(...this.#times.backoffMs);
  }

  /**
   * `currentAt`: when the last list or confirmation of a watch was requested, or the last event arrived. A
   * bookmark proves nothing.
   */
  get following(): Following {
    return { hasList: this.#hasList, currentAt: this.#currentAt, problem: this.#problem };
  }

  /** A second call has no effect. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Once it has resolved, the listener is no longer called. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('closed'));
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        await this.#listAndWatch();
        this.#backoff.reset();
      } catch (thrown) {
        if (signal.aborted) {
          return;
        }
        this.#options.observer?.restarted?.(reasonOf(thrown));
        this.#complain(thrown);
        await this.#backoff.wait(signal);
      }
    }
  }

  /** Ends when a list is due. @throws why it could not continue */
  async #listAndWatch(): Promise<void> {
    const { observer } = this.#options;
    const listAt = elapsed() + this.#times.listEveryMs * (0.8 + 0.4 * Math.random());
    let version = await this.#deliverList();
    while (!this.#closing.signal.aborted) {
      version = await this.#watch(version);
      await this.#confirm(version);
      // Not reset if every watch fails at once: the pauses grow.
      this.#backoff.reset();
      if (elapsed() >= listAt) {
        observer?.restarted?.('renewed');
        return;
      }
      observer?.restarted?.('ended');
    }
  }

  /**
   * Resolves to the version of the list. A separate function, since the one that watches would keep all
   * objects in memory.
   */
  async #deliverList(): Promise<string> {
    const { listener, observer } = this.#options;
    const started = elapsed();
    const { objects, resourceVersion } = await this.#list();
    if (this.#closing.signal.aborted) {
      return resourceVersion;
    }
    this.#tell(() => listener.replaced(objects));
    this.#hasList = true;
    if (!this.#isBack) {
      this.#currentAt = started;
      this.#recovered();
    }
    observer?.listed?.((elapsed() - started) / 1000);
    return resourceVersion;
  }

  async #list(): Promise<ObjectList> {
    const { client, path, query } = this.#options;
    const { signal } = this.#closing;
    const { server } = client;
    const list = await listObjects(client, path, { query, signal }).catch((thrown: unknown) => {
      if (!isExpired(thrown)) {
        throw thrown;
      }
      // The versions of its pages expired while reading; a single answer cannot expire.
      return listObjects(client, path, { query, signal, page: 0 });
    });
    if (!/^[^0].*$/.test(list.resourceVersion)) {
      // A watch without a version could begin anywhere.
      throw new ApiUnreachableError(`${client.server}: a list without a resourceVersion`);
    }
    this.#listedFrom = server;
    this.#checkServer();
    return list;
  }

  /** One watch. If it ended on time, resolves to the version up to which everything is known. */
  async #watch(from: string): Promise<string> {
    const { client, path, query } = this.#options;
    const [shortest, longest] = this.#times.watchSeconds;
    const seconds = shortest + Math.floor(Math.random() * (longest - shortest + 1));
    const started = elapsed();
    const overdue = new AbortController();
    const stop = () => overdue.abort(new Error('closed'));
    this.#closing.signal.addEventListener('abort', stop, { once: true });
    const allowed = seconds * 1000 + this.#times.graceMs;
    const timer = setTimeout(() => overdue.abort(new SilentError()), allowed);
    let version = from;
    try {
      const events = client.watch(
        path,
        { ...query, resourceVersion: from, allowWatchBookmarks: 'true', timeoutSeconds: String(seconds) },
        overdue.signal,
      );
      for await (const event of events) {
        if (this.#closing.signal.aborted) {
          return version;
        }
        version = this.#deliver(event, version);
      }
    } catch (thrown) {
      throw overdue.signal.reason instanceof SilentError
        ? new SilentError(`${client.server}: silent for up to ${Math.round(allowed / 1000)} s`)
        : thrown;
    } finally {
      clearTimeout(timer);
      this.#closing.signal.removeEventListener('abort', stop);
    }
    if (this.#closing.signal.aborted) {
      return version;
    }
    if (elapsed() - started < seconds * 1000 - EARLY_MS) {
      throw new ApiUnreachableError(`${client.server}: the watch ended before its time`);
    }
    return version;
  }

  /** A list without a resourceVersion is read from etcd; with one object it costs next to nothing. */
  async #confirm(version: string): Promise<void> {
    const { client, path, query } = this.#options;
    const { signal } = this.#closing;
    const asked = elapsed();
    if (signal.aborted) {
      return;
    }
    const answer = await client.request({ method: 'GET', path, query: { ...query, limit: '1' }, signal });
    this.#checkServer();
    if (isOlder(listPage(answer, client.server).resourceVersion, version)) {
      throw this.#wentBack();
    }
    this.#isBack = false;
    this.#currentAt = asked;
    this.#recovered();
  }

  /** The kubeconfig may now name another cluster, whose versions and events do not continue the list. */
  #checkServer(): void {
    const { server } = this.#options.client;
    if (server !== this.#listedFrom) {
      throw new ApiUnreachableError(
        `${server}: ${this.#listedFrom} was followed before; its objects are listed anew`,
      );
    }
  }

  #deliver({ type, object }: WatchEvent, before: string): string {
    this.#checkServer();
    const { listener, client } = this.#options;
    const version = object.metadata.resourceVersion;
    if (version === undefined || version === '' || version === '0') {
      throw new ApiUnreachableError(`${client.server}: an event without a resourceVersion`);
    }
    // An older event would bring back what has changed since.
    if (isOlder(version, before)) {
      throw this.#wentBack();
    }
    if (type !== 'BOOKMARK') {
      this.#tell(() => (type === 'DELETED' ? listener.removed(object) : listener.changed(object)));
      if (!this.#isBack) {
        this.#currentAt = elapsed();
      }
    }
    return version;
  }

  /**
   * Until a watch is confirmed, nothing is certain: after a new list, such an API server sends changes that
   * etcd no longer has.
   */
  #wentBack(): ApiUnreachableError {
    this.#isBack = true;
    const { server } = this.#options.client;
    return new ApiUnreachableError(
      `${server}: its versions have gone back; if etcd was restored from a backup, restart all API servers`,
    );
  }

  #tell(say: () => void): void {
    try {
      say();
    } catch (thrown) {
      this.#options.logger?.error(
        { path: this.#options.path, error: errorText(thrown) },
        'a change in the cluster could not be taken over',
      );
      throw new ListenerError('a change in the cluster could not be taken over');
    }
  }

  /** Logged once, until it changes. */
  #complain(thrown: unknown): void {
    const { path, hints = {}, logger, client } = this.#options;
    // Usual, and over soon.
    if (isExpired(thrown)) {
      return;
    }
    const problem = problemWords(thrown, path, client.server, hints);
    if (problem !== this.#problem) {
      this.#problem = problem;
      logger?.warn({ path, cause: errorText(thrown) }, problem);
    }
  }

  #recovered(): void {
    if (this.#problem !== undefined) {
      this.#problem = undefined;
      const { path, logger, client } = this.#options;
      logger?.info({ path }, `${client.server} can be followed again`);
    }
  }
}
