/** The bytes of a decision log: a whole file, or one that grows. */
import { createReadStream } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { createGunzip } from 'node:zlib';

const CHUNK_BYTES = 256 * 1024;
/** How often a file that grows is looked at. */
const POLL_MS = 250;

/** What comes from a file that grows, besides its bytes. */
export type FollowedChunk =
  | Buffer
  /** All that there is now has been read. */
  | 'caught up'
  /** What follows is another file, or this one from its start. */
  | 'begins anew';

/** A file from its start to its end; one whose name ends in `.gz` is unpacked. */
export function readChunks(path: string): AsyncIterable<Buffer> {
  const file = createReadStream(path, { highWaterMark: CHUNK_BYTES });
  // An error of either arrives where the chunks are read.
  return path.endsWith('.gz') ? pipeline(file, createGunzip(), () => {}) : file;
}

/**
 * A file from its start, and then what is appended, until the signal fires. When the file is cut, it is read from its
 * start. When it is moved away, the next of that name is read once something stands in it: whoever writes to the old one until it
 * opens the new one loses no line. A file that is cut and has grown longer than it was within a quarter of a second is
 * not seen to be cut.
 */
export async function* followChunks(
  path: string,
  signal: AbortSignal,
  pollMs = POLL_MS,
): AsyncGenerator<FollowedChunk> {
  let file = await openRegular(path);
  let position = 0;
  let replaced = false;
  try {
    while (!signal.aborted) {
      const { bytesRead, buffer } = await file.read({ buffer: Buffer.allocUnsafe(CHUNK_BYTES) });
      position += bytesRead;
      if (bytesRead > 0) {
        yield buffer.subarray(0, bytesRead);
        continue;
      }
      // All of the old one has been read, and only then is it left.
      const next = replaced ? await openRegular(path).catch(() => undefined) : undefined;
      replaced = false;
      if (next !== undefined) {
        await file.close();
        file = next;
        position = 0;
        yield 'begins anew';
        continue;
      }
      yield 'caught up';
      await pause(pollMs, undefined, { signal }).catch(() => {});
      replaced = await isReplaced(path, file, position);
    }
  } finally {
    await file.close();
  }
}

async function openRegular(path: string): Promise<FileHandle> {
  // A pipe would wait here for somebody who writes.
  if (!(await stat(path)).isFile()) {
    throw new Error('only a file can be followed, or standard input');
  }
  return open(path);
}

async function isReplaced(path: string, file: FileHandle, position: number): Promise<boolean> {
  const [there, here] = await Promise.all([
    stat(path, { bigint: true }).catch(() => undefined),
    file.stat({ bigint: true }),
  ]);
  if (there === undefined) {
    return false;
  }
  return there.dev === here.dev && there.ino === here.ino ? here.size < position : there.size > 0;
}
