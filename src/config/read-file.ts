import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  readSync,
  realpathSync,
  type Stats,
  statSync,
} from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { codeOf, errorText } from '../base/errors.ts';
import { member } from '../base/yaml/tree.ts';

/** No configuration is longer, but `/dev/zero` is. */
const MAX_BYTES = 1024 * 1024;

/** Enough for most files; the buffer grows if needed. */
const FIRST_BYTES = 64 * 1024;

/** How long to wait in all for what is written to a pipe, in seconds. */
const PIPE_TIMEOUT = 10;
const PAUSE_MS = 10;

/**
 * The text of a UTF-8 file of at most `maxBytes` (default: 1 MiB). Reads pipes too (`--config-file <(…)`). Throws an `Error` whose
 * message completes "could not be read: …".
 */
export function readTextFile(path: string, maxBytes = MAX_BYTES, pipeTimeout = PIPE_TIMEOUT): string {
  return textOf(readBounded(path, maxBytes, pipeTimeout));
}

/** As `readTextFile`, of a regular file that does not change meanwhile: it never waits. */
export function readRegularFile(path: string, maxBytes: number): string {
  return textOf(readBounded(path, maxBytes, 0, true));
}

function textOf(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Error('it is not UTF-8 text');
  }
}

function readBounded(path: string, maxBytes: number, pipeTimeout: number, isRegular = false): Buffer {
  let descriptor: number | undefined;
  try {
    // Without O_NONBLOCK, opening a pipe that nobody writes to never returns.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const before = fstatSync(descriptor);
    if (isRegular && !before.isFile() && !before.isDirectory()) {
      throw new Error('it is no regular file');
    }
    const isPipe = before.isFIFO();
    let pauses = (pipeTimeout * 1000) / PAUSE_MS;
    let buffer = Buffer.allocUnsafe(Math.min(FIRST_BYTES, maxBytes) + 1);
    let length = 0;
    for (;;) {
      if (length === buffer.length) {
        buffer = Buffer.concat([buffer], Math.min(2 * length, maxBytes + 1));
      }
      const read = readAvailable(descriptor, buffer, length);
      if (read === undefined || (isPipe && read + length === 0)) {
        if (pauses <= 0) {
          throw new Error(`nobody has written it to its end within ${pipeTimeout} seconds`);
        }
        pauses -= 1;
        Atomics.wait(NEVER_NOTIFIED, 0, 0, PAUSE_MS);
        continue;
      }
      length += read;
      if (length > maxBytes) {
        throw new Error(`it is longer than ${maxBytes} bytes`);
      }
      if (read === 0) {
        const { size, mtimeMs } = isRegular ? fstatSync(descriptor) : before;
        if (isRegular && (size !== length || size !== before.size || mtimeMs !== before.mtimeMs)) {
          throw new Error('it changed while it was read');
        }
        return buffer.subarray(0, length);
      }
    }
  } catch (thrown) {
    throw new Error(systemErrorText(thrown));
  } finally {
    if (descriptor !== undefined) {
      closeSync(descriptor);
    }
  }
}

const NEVER_NOTIFIED = new Int32Array(new SharedArrayBuffer(4));

/** The number of bytes that were read; 0 = the end; `undefined` = a pipe or a terminal has no more yet. */
function readAvailable(descriptor: number, buffer: Buffer, length: number): number | undefined {
  try {
    return readSync(descriptor, buffer, length, buffer.length - length, null);
  } catch (thrown) {
    if (codeOf(thrown) === 'EAGAIN') {
      return undefined;
    }
    throw thrown;
  }
}

/** Changes when the file does, or a symbolic link to it; `undefined` = it cannot be read. */
export async function fileState(path: string): Promise<string | undefined> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join();
  } catch {
    return undefined;
  }
}

const WORDS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of its path is not a folder',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota of the disk is used up',
  EFBIG: 'the file would be larger than is allowed (ulimit -f)',
  EIO: 'the device reports an error',
  EROFS: 'the file system is read-only',
  ENXIO: 'nobody reads the pipe',
  EPIPE: 'nobody reads the pipe',
  // Node's own message repeats the path.
  ERR_INVALID_ARG_VALUE: 'it is not a valid path',
};

/** Why a file could not be used, in words, without `ENOENT: …, open '…'`. */
export function systemErrorText(thrown: unknown): string {
  return member(WORDS, codeOf(thrown)) ?? errorText(thrown);
}

const OTHERS_READ = 0o004;
const OTHERS_WRITE = 0o002;
const STICKY = 0o1000;

/**
 * Why a file or folder cannot be trusted: it, or a folder above it, is world-writable, so that anyone could
 * change or replace it. `undefined` = trusted, or no such file.
 */
export function whyWritable(path: string): string | undefined {
  const stats = look(path);
  // Pipes, /dev/null and the like have no content of their own.
  if (stats === undefined || !(stats.isFile() || stats.isDirectory())) {
    return undefined;
  }
  if (isWritable(path, stats)) {
    const what = stats.isDirectory() ? 'everyone may create files in it' : 'everyone may write to it';
    return `${what}; remove that permission: chmod o-w`;
  }
  const folder = [...foldersOn(path)].find((one) => {
    const above = look(one);
    // In a sticky folder, users can replace only their own files.
    return above !== undefined && (above.mode & STICKY) === 0 && isWritable(one, above);
  });
  return folder && `everyone may write to the folder ${folder} and replace what is in it; chmod o-w`;
}

/** As `whyWritable`, for a path and, if it is a folder, each file in it whose name `isRead` accepts. */
export function whyAnyWritable(path: string, isRead: (name: string) => boolean): string | undefined {
  const own = whyWritable(path);
  if (own !== undefined || look(path)?.isDirectory() !== true) {
    return own;
  }
  for (const name of readdirSync(path).filter(isRead)) {
    const reason = whyWritable(join(path, name));
    if (reason !== undefined) {
      return `${name} in it: ${reason}`;
    }
  }
  return undefined;
}

/** Whether a file is world-readable. */
export function isReadByEveryone(path: string): boolean {
  const stats = look(path);
  return stats?.isFile() === true && (stats.mode & OTHERS_READ) !== 0 && hasModes;
}

/** Modes have no meaning on Windows. */
const hasModes = process.platform !== 'win32';

/** `undefined` on failure: reading the file fails too, and reports the reason. */
function look(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

function isWritable(path: string, { mode }: Stats): boolean {
  return hasModes && (mode & OTHERS_WRITE) !== 0 && !isOnReadOnlyFileSystem(path);
}

/** Kubernetes mounts a ConfigMap read-only, with the mode 0777. */
function isOnReadOnlyFileSystem(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return false;
  } catch (thrown) {
    return codeOf(thrown) === 'EROFS';
  }
}

/** All folders above a path, as written and with links resolved. */
function foldersOn(path: string): Set<string> {
  const folders = new Set<string>();
  for (const start of [resolve(path), realpathSync(path)]) {
    for (let folder = dirname(start); !folders.has(folder); folder = dirname(folder)) {
      folders.add(folder);
    }
  }
  return folders;
}
