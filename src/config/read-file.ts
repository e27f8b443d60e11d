import { closeSync, openSync, readSync } from 'node:fs';
import { stat } from 'node:fs/promises';

/** No configuration is longer; `/dev/zero` is. */
const MAX_BYTES = 1024 * 1024;

/** Enough for most files; the buffer grows for longer ones. */
const FIRST_BYTES = 64 * 1024;

/**
 * The text of a UTF-8 file of at most `maxBytes` (default: 1 MiB). Reads pipes too (`--config-file <(…)`). Throws an `Error` whose
 * message completes "could not be read: …".
 */
export function readTextFile(path: string, maxBytes = MAX_BYTES): string {
  const bytes = readBounded(path, maxBytes);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Error('it is not UTF-8 text');
  }
}

function readBounded(path: string, maxBytes: number): Buffer {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, 'r');
    let buffer = Buffer.allocUnsafe(Math.min(FIRST_BYTES, maxBytes) + 1);
    let length = 0;
    for (;;) {
      if (length === buffer.length) {
        buffer = Buffer.concat([buffer], Math.min(2 * length, maxBytes + 1));
      }
      const read = readSync(descriptor, buffer, length, buffer.length - length, null);
      length += read;
      if (length > maxBytes) {
        throw new Error(`it is longer than ${maxBytes} bytes`);
      }
      if (read === 0) {
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

/** Changes with the file, also where a symbolic link is swapped; `undefined` = it cannot be looked at. */
export async function fileState(path: string): Promise<string | undefined> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join();
  } catch {
    return undefined;
  }
}

/** Why a file could not be used, in words instead of `ENOENT: …, open '…'`. */
export function systemErrorText(thrown: unknown): string {
  const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined;
  switch (code) {
    case 'ENOENT':
      return 'there is no such file';
    case 'EACCES':
    case 'EPERM':
      return 'permission denied';
    case 'EISDIR':
      return 'it is a folder';
    case 'ENOTDIR':
      return 'a part of its path is not a folder';
    case 'ERR_INVALID_ARG_VALUE':
      // Node's own message repeats the path.
      return 'it is not a valid path';
    default:
      return thrown instanceof Error ? thrown.message : String(thrown);
  }
}
