/** Reads the bytes of a decision log: a whole file, or a growing one. */
import { createReadStream } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { createGunzip } from 'node:zlib';

const CHUNK_BYTES = 256 * 1024;
/** Interval of looking for appended bytes. */
const POLL_MS = 250;

export type FollowedChunk =
  | Buffer
  /** Everything so far has been read. */
  | 'caught up'
  /** The next bytes are from a new file, or from the start of this one. */
  | 'begins anew';

/** Reads a whole file; decompresses it if its name ends in `.gz`. */
export function readChunks(path: string): AsyncIterable<Buffer> {
  const file = createReadStream(path, { highWaterMark: CHUNK_BYTES });
  // Errors of both streams reach the reader of the chunks.
  return path.endsWith('.gz') ? pipeline(file, createGunzip(), () => {}) : file;
}

/**
 * Reads a file from its start, then appended bytes, until the signal fires. A truncated file is read from its
 * start again. After a file was moved away, the next file with its name is read once it is not empty, so that
 * lines still written to the old file are not lost. A truncation is missed if the file grows beyond its old
 * length within a quarter of a second.
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
      // Leave the old file only after reading it to its end.
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
  // Opening a pipe would wait for a writer.
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
