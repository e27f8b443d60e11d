/**
 * The open pages of the console, each with a stream of server-sent events that notifies it of changes. Events
 * carry no content: the page is loaded again, with the usual checks of rights.
 */
import { PassThrough, type Readable } from 'node:stream';
import { FairShare } from '../../../base/fair-limiter.ts';
import { type Caller, visibleProjects } from '../../users/caller.ts';

/** Maximum connections. A further one replaces one of the user with most, or is refused. */
const MOST = 200;
/** Without HTTP/2, a browser opens six connections to one host: two are left to load pages. */
const MOST_OF_BROWSER = 4;
/** Per user, and per configured token, which many may share. */
const MOST_OF_USER = 12;
const MOST_OF_TOKEN = 60;
/** In milliseconds: changes within it are one event. There may be thousands of decisions per second. */
const TOGETHER = 500;
/** Maximum number of projects in one event. With more, all pages are loaded again. */
const MOST_PROJECTS = 10_000;
/** Maximum age of a stream, in milliseconds. The browser opens another one, and is authenticated again. */
const LONGEST = 600_000;
/** Longest interval of comments that keep idle connections open through proxies, in milliseconds. */
const HEARTBEAT = 15_000;
const CHANGE = 'event: change\ndata: \n\n';

interface Asked {
  readonly caller: Caller;
  /** The browser or program whose connections are counted together. */
  readonly key: string;
  /** Whether the key is a session: all its connections are validated at once. Default: false. */
  readonly isSession?: boolean;
  /** The owner, whose connections share a limit: as in `Caller`, or an address without authentication. */
  readonly identity: string;
  /** Whether the caller still has the same rights. It may query a database or Keystone. */
  isStillThere(): Promise<boolean>;
  /** How often `isStillThere` is called, in milliseconds. */
  readonly askEvery: number;
}

interface Listener extends Asked {
  readonly stream: PassThrough;
  /** `undefined` = all. */
  readonly projects: ReadonlySet<string> | undefined;
  /** From a monotonic clock. */
  readonly since: number;
  wroteAt: number;
  askedAt: number;
}

export class Listeners {
  readonly #open = new Set<Listener>();
  readonly #shares = new FairShare<Listener>(MOST);
  /** Projects; `undefined` = the service itself. */
  readonly #changed = new Set<string | undefined>();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  get isEmpty(): boolean {
    return this.#open.size === 0;
  }

  /** `undefined` = there are too many. */
  open(asked: Asked): Readable | undefined {
    const { identity, caller } = asked;
    const own = this.#shares.of(identity);
    const most = caller.provenBy === 'token' ? MOST_OF_TOKEN : MOST_OF_USER;
    const ofBrowser = own.filter(({ key }) => key === asked.key);
    if (this.#isClosed || own.length >= most || ofBrowser.length >= MOST_OF_BROWSER) {
      return undefined;
    }
    const giving = this.#shares.givesWay(identity);
    if (giving !== undefined) {
      const newest = giving === identity ? undefined : this.#shares.of(giving).at(-1);
      if (newest === undefined) {
        return undefined;
      }
      this.#end(newest);
    }
    const visible = visibleProjects(asked.caller);
    const now = performance.now();
    const listener: Listener = {
      ...asked,
      stream: new PassThrough(),
      projects: visible && new Set(visible),
      since: now,
      wroteAt: now,
      askedAt: now,
    };
    this.#open.add(listener);
    this.#shares.add(identity, listener);
    listener.stream.once('close', () => this.#forget(listener));
    // `retry`: the delay before the browser reconnects, in milliseconds.
    listener.stream.write('retry: 5000\nevent: hello\ndata: \n\n');
    return listener.stream;
  }

  /** Notifies, with a delay, all callers that may see the project; `undefined` = the service itself. */
  changed(projectId: string | undefined): void {
    if (this.isEmpty) {
      return;
    }
    if (this.#changed.size <= MOST_PROJECTS) {
      this.#changed.add(projectId);
    }
    this.#timer ??= setTimeout(() => this.#tell(), TOGETHER).unref();
  }

  /** Namespaces and workspaces may have the name of another project: members are not notified of these. */
  decided({ operation, project_id: projectId }: { operation: string; project_id: string | null }): void {
    this.changed(operation.includes('.') ? undefined : (projectId ?? undefined));
  }

  /**
   * Sends heartbeats, validates callers and ends old streams. Call it regularly. `deadline`: of the service, in
   * seconds: twice as long without traffic, its connections are closed.
   */
  tick(now = performance.now(), deadline = Number.POSITIVE_INFINITY): void {
    const heartbeat = Math.min(HEARTBEAT, deadline * 1000);
    const asked = new Set<string>();
    for (const listener of this.#open) {
      if (now - listener.since >= LONGEST) {
        this.#end(listener);
      } else {
        if (now - listener.wroteAt >= heartbeat) {
          this.#write(listener, ': still here\n\n');
        }
        if (now - listener.askedAt >= listener.askEvery) {
          listener.askedAt = now;
          const { isSession, key } = listener;
          if (!isSession || !asked.has(key)) {
            asked.add(key);
            void this.#ask(listener);
          }
        }
      }
    }
  }

  /** Notifies all callers, including members, of a change that concerns all. */
  tellAll(): void {
    for (const listener of this.#open) {
      this.#write(listener, CHANGE);
    }
  }

  /** For a new configuration, which may change rights: all pages load again and are authenticated again. */
  beginAgain(): void {
    this.tellAll();
    for (const listener of this.#open) {
      this.#end(listener);
    }
  }

  /** Ends all streams, and opens no more. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const listener of this.#open) {
      this.#end(listener);
    }
  }

  #tell(): void {
    const changed = [...this.#changed];
    this.#changed.clear();
    this.#timer = undefined;
    if (changed.length > MOST_PROJECTS) {
      this.tellAll();
      return;
    }
    for (const listener of this.#open) {
      const { projects } = listener;
      if (projects === undefined || changed.some((id) => id !== undefined && projects.has(id))) {
        this.#write(listener, CHANGE);
      }
    }
  }

  async #ask(listener: Listener): Promise<void> {
    // If it cannot be validated, the stream ends: the browser reconnects.
    const isThere = await listener.isStillThere().catch(() => false);
    if (!isThere) {
      const { isSession, key } = listener;
      const all = isSession
        ? [...this.#open].filter((other) => other.isSession && other.key === key)
        : [listener];
      for (const one of all) {
        this.#end(one);
      }
    }
  }

  #write(listener: Listener, text: string): void {
    listener.wroteAt = performance.now();
    if (listener.stream.writableNeedDrain) {
      // The client does not read. It reloads when it reconnects.
      this.#end(listener);
    } else {
      listener.stream.write(text);
    }
  }

  #end(listener: Listener): void {
    this.#forget(listener);
    listener.stream.end();
  }

  #forget(listener: Listener): void {
    this.#open.delete(listener);
    this.#shares.delete(listener.identity, listener);
  }
}
