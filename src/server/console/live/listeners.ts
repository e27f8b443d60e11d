/**
 * Everybody who looks at the console now, and is told when something has changed: a stream of server-sent events each. They are told
 * that, not what: the page is loaded again, and checks rights as ever.
 */
import { PassThrough, type Readable } from 'node:stream';
import type { DecisionRecord } from '../../../decisions/record.ts';
import { type Caller, visibleProjects } from '../../users/caller.ts';
import { FairShare } from '../../users/fair-share.ts';

/** Each holds a connection. One more ends one of whoever has most, and is refused if nobody has more. */
const MOST = 200;
/** As many connections as a browser has for one host. */
const MOST_OF_BROWSER = 6;
/** Of one user, and of one token of the configuration, which many may share. */
const MOST_OF_USER = 12;
const MOST_OF_TOKEN = 60;
/** Told together, in milliseconds: there may be thousands of decisions in a second. */
const TOGETHER = 500;
/** The projects of changes that are told together; further ones are told with the next. */
const MOST_PROJECTS = 10_000;
/** Then the browser opens another one, and is asked again who it is. In milliseconds. */
const LONGEST = 600_000;
/** A proxy or the service itself may close a connection on which nothing moves, in milliseconds. */
const HEARTBEAT = 15_000;
const CHANGE = 'event: change\ndata: \n\n';

interface Asked {
  readonly caller: Caller;
  /** The browser or program whose connections are counted together. */
  readonly key: string;
  /** Whether the key is that of a session, which has one caller: it is asked about once for all of its connections. Default: false. */
  readonly isSession?: boolean;
  /** Whose all of them are counted together: as in `Caller`, and an address where nobody must show anything. */
  readonly identity: string;
  /** Whether the caller may still see what they saw. It may ask a database or Keystone. */
  isStillThere(): Promise<boolean>;
  /** How often `isStillThere` is asked, in milliseconds. */
  readonly askEvery: number;
}

interface Listener extends Asked {
  readonly stream: PassThrough;
  /** `undefined` = all. */
  readonly projects: ReadonlySet<string> | undefined;
  /** By a clock that nobody sets. */
  readonly since: number;
  wroteAt: number;
  askedAt: number;
}

/** Whose something is: of one project, or of the service itself. */
type Change = { readonly projectId: string | null } | 'service';

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
      ...{ since: now, wroteAt: now, askedAt: now },
    };
    this.#open.add(listener);
    this.#shares.add(identity, listener);
    listener.stream.once('close', () => this.#forget(listener));
    // The browser tries again after this time, in milliseconds, when the connection ends.
    listener.stream.write('retry: 5000\nevent: hello\ndata: \n\n');
    return listener.stream;
  }

  /** Tells, soon, whoever may see it. */
  changed(change: Change): void {
    if (this.isEmpty || this.#changed.size >= MOST_PROJECTS) {
      return;
    }
    this.#changed.add(change === 'service' ? undefined : (change.projectId ?? undefined));
    this.#timer ??= setTimeout(() => this.#tell(), TOGETHER).unref();
  }

  /** Namespaces and workspaces may be called like a project of somebody else: no member is told of those. */
  decided({
    operation,
    project_id,
  }: Pick<DecisionRecord, 'project_id'> & { readonly operation: string }): void {
    this.changed(operation.includes('.') ? 'service' : { projectId: project_id });
  }

  /** Looks after the streams. Call it again and again. */
  tick(now = performance.now()): void {
    const asked = new Set<string>();
    for (const listener of this.#open) {
      if (now - listener.since >= LONGEST) {
        this.#end(listener);
      } else {
        if (now - listener.wroteAt >= HEARTBEAT) {
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

  /** What concerns all of them: members too. */
  tellAll(): void {
    for (const listener of this.#open) {
      this.#write(listener, CHANGE);
    }
  }

  /** For a new configuration, which may say otherwise who may see what: all load again, and are asked again who they are. */
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
    for (const listener of this.#open) {
      const { projects } = listener;
      if (projects === undefined || changed.some((id) => id !== undefined && projects.has(id))) {
        this.#write(listener, CHANGE);
      }
    }
  }

  async #ask(listener: Listener): Promise<void> {
    // Whatever keeps us from knowing ends it: the browser asks again.
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
      // It does not read. What it was not told it sees when it opens the stream again.
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
