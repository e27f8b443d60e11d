/**
 * One worker lists and watches what a cluster has, and tells the others, so that the API server has one watch of each kind, however many
 * workers there are. It is the one that serves people. Each of the others hears it over a connection of its own. A connection that is lost is
 * as a watch that is lost: what is known stays in force until it is too old, and the next one begins with a list.
 */
import { request } from 'node:http';
import type { Duplex } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import type {
  Followed,
  Following,
  ObjectListener,
  RenewableFollowed,
  ShareFollowing,
} from '../../kubernetes/cluster/live/contract.ts';
import { hearObjects, ObjectSender } from './told-objects.ts';

/** How often a worker that follows says how well, in milliseconds. */
const TELL_MS = 1000;
/** A worker that says nothing for so long does not run, in milliseconds. */
const SILENT_MS = 10_000;
/** Between two attempts to hear one, in milliseconds. */
const RETRY_MS = 100;
/** The protocol of a connection over which one tells another. A client cannot ask for it: what it says of connections is not passed on. */
const PROTOCOL = 'blazar-enforcement-objects';
const NOBODY = 'no worker of this service follows the cluster now';

/** Who follows for all. */
export interface Chosen {
  /** Whether this worker does. */
  readonly isDesk: boolean;
  /** Where the one that does can be reached; `undefined` = nobody does now. */
  readonly deskPath: string | undefined;
}

export class FollowedByOne {
  readonly #chosen: Chosen;
  readonly #shared = new Map<string, Shared>();

  constructor(chosen: Chosen) {
    this.#chosen = chosen;
  }

  readonly share: ShareFollowing = (id, listener, watch) => {
    const shared = new Shared(id, this.#chosen, listener, watch, () => {
      // A configuration that is loaded again may follow the same anew while this one ends.
      if (this.#shared.get(id) === shared) {
        this.#shared.delete(id);
      }
    });
    this.#shared.set(id, shared);
    return shared;
  };

  /** This worker follows for all from now on. */
  lead(): void {
    for (const shared of this.#shared.values()) {
      shared.lead();
    }
  }

  /** Tells another worker what it has asked for. Closes the connection if this one does not follow that. */
  tell(url: string, stream: Duplex): void {
    stream.on('error', () => {});
    const shared = this.#shared.get(decodeURIComponent(url.slice(1)));
    if (shared?.isLeading !== true) {
      stream.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    stream.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${PROTOCOL}\r\n\r\n`);
    shared.tell(stream);
  }
}

/** One kind of object. */
class Shared implements Followed {
  readonly #id: string;
  readonly #chosen: Chosen;
  readonly #listener: ObjectListener;
  readonly #watch: (listener: ObjectListener) => RenewableFollowed;
  readonly #ended: () => void;
  readonly #senders = new Map<ObjectSender, Duplex>();
  /** Ends hearing another worker. */
  readonly #deaf = new AbortController();
  #heard: Following = { hasList: false, currentAt: undefined, problem: undefined };
  #hearing: Promise<void> | undefined;
  #own: RenewableFollowed | undefined;
  #telling: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(
    id: string,
    chosen: Chosen,
    listener: ObjectListener,
    watch: (listener: ObjectListener) => RenewableFollowed,
    ended: () => void,
  ) {
    this.#id = id;
    this.#chosen = chosen;
    this.#listener = listener;
    this.#watch = watch;
    this.#ended = ended;
  }

  get isLeading(): boolean {
    return this.#own !== undefined && !this.#isClosed;
  }

  /** Until this worker has a list of its own, it knows what it has heard. */
  get following(): Following {
    const own = this.#own?.following;
    if (own === undefined) {
      return this.#heard;
    }
    const { hasList, currentAt } = own.hasList ? own : this.#heard;
    return { hasList, currentAt, problem: own.problem };
  }

  start(): void {
    if (this.#chosen.isDesk) {
      this.lead();
    } else {
      this.#hearing ??= this.#hear();
    }
  }

  lead(): void {
    if (this.#own !== undefined || this.#isClosed) {
      return;
    }
    this.#deaf.abort();
    this.#own = this.#watch({
      replaced: (objects) => this.#tellAll((listener) => listener.replaced(objects)),
      changed: (object) => this.#tellAll((listener) => listener.changed(object)),
      removed: (object) => this.#tellAll((listener) => listener.removed(object)),
    });
    this.#own.start();
    this.#telling = setInterval(() => this.#tellFollowing(), TELL_MS).unref();
  }

  tell(stream: Duplex): void {
    const sender = new ObjectSender(stream);
    this.#senders.set(sender, stream);
    stream.once('close', () => this.#senders.delete(sender));
    this.#own?.renew();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#ended();
    clearInterval(this.#telling);
    this.#deaf.abort();
    for (const stream of this.#senders.values()) {
      stream.destroy();
    }
    await Promise.all([this.#hearing, this.#own?.close()]);
  }

  /** The own listener first: if it throws, nobody has heard, and everything is listed again. */
  #tellAll(say: (listener: ObjectListener) => void): void {
    say(this.#listener);
    for (const sender of this.#senders.keys()) {
      say(sender);
    }
    // Whoever follows knows after this turn how current it is.
    queueMicrotask(() => this.#tellFollowing());
  }

  #tellFollowing(): void {
    for (const sender of this.#senders.keys()) {
      sender.following(this.following);
    }
  }

  async #hear(): Promise<void> {
    const { signal } = this.#deaf;
    while (!signal.aborted) {
      try {
        await this.#hearOne(signal);
      } catch {
        // It is gone, or is not chosen any more: the next one may be.
      }
      this.#heard = { ...this.#heard, problem: NOBODY };
      await pause(RETRY_MS, undefined, { signal, ref: false }).catch(() => {});
    }
  }

  async #hearOne(signal: AbortSignal): Promise<void> {
    const { deskPath } = this.#chosen;
    if (deskPath === undefined) {
      return;
    }
    const stream = await connect(deskPath, this.#id, signal);
    await hearObjects(
      stream,
      this.#listener,
      ({ hasList, currentAt, problem }) => {
        this.#heard = {
          hasList: hasList || this.#heard.hasList,
          currentAt: currentAt ?? this.#heard.currentAt,
          problem,
        };
      },
      () => signal.aborted,
    ).finally(() => stream.destroy());
  }
}

function connect(socketPath: string, id: string, signal: AbortSignal): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const asked = request({
      ...{ socketPath, path: `/${encodeURIComponent(id)}`, agent: false },
      headers: { Connection: 'Upgrade', Upgrade: PROTOCOL },
    });
    const stop = () => asked.destroy(new Error('it is not needed any more'));
    signal.addEventListener('abort', stop, { once: true });
    asked.setTimeout(SILENT_MS, () => asked.destroy(new Error('it does not answer')));
    asked.once('close', () => signal.removeEventListener('abort', stop));
    asked.once('error', reject);
    asked.once('response', (answer) => {
      answer.resume();
      reject(new Error(`it answers ${answer.statusCode}`));
    });
    asked.once('upgrade', (_, stream, head) => {
      stream.unshift(head);
      stream.setTimeout(SILENT_MS, () => stream.destroy(new Error('it says nothing')));
      const end = () => stream.destroy();
      signal.addEventListener('abort', end, { once: true });
      stream.once('close', () => signal.removeEventListener('abort', end));
      stream.on('error', () => {});
      resolve(stream);
    });
    asked.end();
  });
}
