/** What the worker that follows a cluster tells another one: objects, and how well they are followed, as lines of JSON. */
import { uptime } from 'node:os';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ApiObject } from '../../kubernetes/cluster/api/contract.ts';
import { elapsed } from '../../kubernetes/cluster/api/elapsed.ts';
import { linesOf } from '../../kubernetes/cluster/api/watch-stream.ts';
import type { Following, ObjectListener } from '../../kubernetes/cluster/live/contract.ts';

type Line =
  /** One of a list. */
  | { readonly listed: ApiObject }
  /** The list is complete. */
  | { readonly replaced: true }
  | { readonly changed: ApiObject }
  | { readonly removed: ApiObject }
  | { readonly following: Following };

/** Objects of a list that are written together. */
const SLICE = 100;
/** Lines that wait for a worker that does not read. One more, and it has to begin anew with a list. */
const MAX_WAITING = 10_000;
/** An object of etcd is shorter. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;
/** The time since the machine was started is read in steps, in milliseconds. What another process says counts as that much older. */
const STEP_MS = 20;

/** Tells one worker. */
export class ObjectSender implements ObjectListener {
  readonly #stream: Writable;
  #waiting: (Line | readonly ApiObject[])[] = [];
  #hasList = false;
  #wake = (): void => {};

  constructor(stream: Writable) {
    this.#stream = stream;
    stream.once('close', () => this.#wake());
    // Whoever hears notices the end.
    void pipeline(Readable.from(this.#texts()), stream).catch(() => {});
  }

  replaced(objects: readonly ApiObject[]): void {
    // What waits is of before the list.
    this.#waiting = [];
    this.#hasList = true;
    this.#add(objects);
  }

  changed(object: ApiObject): void {
    this.#addToList({ changed: object });
  }

  removed(object: ApiObject): void {
    this.#addToList({ removed: object });
  }

  /** Until a list was told, a worker knows what it knew before, which is as old as it was. */
  following({ problem, ...following }: Following): void {
    const { currentAt } = following;
    this.#add({
      following: {
        hasList: this.#hasList && following.hasList,
        currentAt:
          this.#hasList && currentAt !== undefined ? sinceBoot() - (elapsed() - currentAt) : undefined,
        problem,
      },
    });
  }

  #addToList(line: Line): void {
    if (this.#hasList) {
      this.#add(line);
    }
  }

  #add(next: Line | readonly ApiObject[]): void {
    this.#waiting.push(next);
    if (this.#waiting.length > MAX_WAITING) {
      this.#stream.destroy();
    }
    this.#wake();
  }

  async *#texts(): AsyncGenerator<string> {
    while (!this.#stream.destroyed) {
      const next = this.#waiting.shift();
      if (next === undefined) {
        await new Promise<void>((wake) => {
          this.#wake = wake;
        });
      } else if ('length' in next) {
        for (let at = 0; at < next.length; at += SLICE) {
          yield next
            .slice(at, at + SLICE)
            .map((listed) => text({ listed }))
            .join('');
        }
        yield text({ replaced: true });
      } else {
        yield text(next);
      }
    }
  }
}

/**
 * Hears what another worker tells. `isOver`: whether nothing more is to be heard. Resolves at the end. @throws if the listener does, or
 * lines cannot be read
 */
export async function hearObjects(
  chunks: AsyncIterable<Uint8Array>,
  listener: ObjectListener,
  following: (following: Following) => void,
  isOver: () => boolean,
): Promise<void> {
  let listed: ApiObject[] = [];
  for await (const line of linesOf(chunks, MAX_LINE_BYTES)) {
    if (isOver()) {
      return;
    }
    if (line.length === 0) {
      continue;
    }
    const said = JSON.parse(line.toString()) as Line;
    if ('listed' in said) {
      listed.push(said.listed);
    } else if ('replaced' in said) {
      listener.replaced(listed);
      listed = [];
    } else if ('changed' in said) {
      listener.changed(said.changed);
    } else if ('removed' in said) {
      listener.removed(said.removed);
    } else {
      const { currentAt } = said.following;
      following({
        ...said.following,
        currentAt: currentAt === undefined ? undefined : elapsed() - (sinceBoot() - currentAt) - STEP_MS,
      });
    }
  }
}

function text(line: Line): string {
  return `${JSON.stringify(line)}\n`;
}

/** In milliseconds; the same for all processes of the machine. */
function sinceBoot(): number {
  return uptime() * 1000;
}
