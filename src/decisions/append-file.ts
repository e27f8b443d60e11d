/** Files that lines are appended to: regular ones, and pipes that perhaps nobody reads. */
import { close, constants, fstat, open, openSync, statSync, write } from 'node:fs';
import { open as openForReading } from 'node:fs/promises';
import { promisify } from 'node:util';
import { systemErrorText } from '../config/read-file.ts';

const { O_WRONLY, O_APPEND, O_CREAT, O_NONBLOCK } = constants;
/** Without waiting for whoever reads a pipe: a thread that waits keeps others from their files, and the process from its end. */
const FLAGS = O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK;
const LINE_FEED = 0x0a;

const openFile = promisify(open);
const closeFile = promisify(close);
const writeBytes = promisify(write);
const statFile = promisify(fstat);

/**
 * Makes the file if it is not there. `undefined`: a pipe that nobody reads yet. Whoever reads one already takes it for
 * ended if it is closed before it is opened again.
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

/** Opens the file so that what is written next is a line of its own, whatever it was that cut off the one before. */
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
  // By what was opened: in the meantime it may have been moved away.
  const there = await statFile(opened);
  if (!there.isFile() || there.size === 0) {
    return false;
  }
  // Whoever may only write has to do without.
  const file = await openForReading(path).catch(() => undefined);
  const read = await file?.read({ buffer: Buffer.alloc(1), position: there.size - 1 });
  await file?.close();
  return read?.bytesRead === 1 && read.buffer[0] !== LINE_FEED;
}
