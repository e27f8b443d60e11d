/** Opens files to append lines to: regular files, and pipes that may have no reader. */
import { close, constants, fstat, open, openSync, statSync, write } from 'node:fs';
import { open as openForReading } from 'node:fs/promises';
import { promisify } from 'node:util';
import { systemErrorText } from '../config/read-file.ts';

const { O_WRONLY, O_APPEND, O_CREAT, O_NONBLOCK } = constants;
/** Never wait for the reader of a pipe: a waiting thread blocks other file access, and the end of the process. */
const FLAGS = O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK;
const LINE_FEED = 0x0a;

const openFile = promisify(open);
const closeFile = promisify(close);
const writeBytes = promisify(write);
const statFile = promisify(fstat);

/**
 * Creates the file if it does not exist. `undefined` = a pipe without a reader. Keep an open pipe open: closing it looks like its end to
 * the reader.
 *
 * @throws Error whose message completes "cannot be written: …"
 */
export function openAtOnce(path: string): number | undefined {
  try {
    return openSync(path, FLAGS);
  } catch (thrown) {
    const isUnread = thrown instanceof Error && 'code' in thrown && thrown.code === 'ENXIO';
    if (isUnread && statSync(path).isFIFO()) {
      return undefined;
    }
    throw new Error(systemErrorText(thrown));
  }
}

/** Opens the file so that the next write begins a new line, even if the last line was cut off. */
export async function openForAppending(path: string): Promise<number> {
  const file = await openFile(path, FLAGS);
  try {
    if (await endsWithinLine(file, path)) {
      await writeBytes(file, Buffer.of(LINE_FEED));
    }
    return file;
  } catch (thrown) {
    await closeAppended(file);
    throw thrown;
  }
}

export async function closeAppended(file: number): Promise<void> {
  await closeFile(file).catch(() => {});
}

async function endsWithinLine(opened: number, path: string): Promise<boolean> {
  // Of the opened file: the path may name another one by now.
  const there = await statFile(opened);
  if (!there.isFile() || there.size === 0) {
    return false;
  }
  // Without the right to read, this check is skipped.
  const file = await openForReading(path).catch(() => undefined);
  const read = await file?.read({ buffer: Buffer.alloc(1), position: there.size - 1 });
  await file?.close();
  return read?.bytesRead === 1 && read.buffer[0] !== LINE_FEED;
}
