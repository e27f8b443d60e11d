import { closeSync, openSync, readSync } from 'node:fs';

/** No configuration is this long; `/dev/zero` is. */
const MAX_BYTES = 1024 * 1024;

/**
 * The text of a configuration file, at most 1 MiB of UTF-8. Reads pipes too (`--config-file <(…)`).
 * Throws an `Error` whose message completes "could not be read: …".
 */
export function readTextFile(path: string): string {
  const bytes = readBounded(path);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Error('it is not UTF-8 text');
  }
}

function readBounded(path: string): Buffer {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, 'r');
    const buffer = Buffer.alloc(MAX_BYTES + 1);
    let length = 0;
    for (;;) {
      const read = readSync(descriptor, buffer, length, buffer.length - length, null);
      length += read;
      if (length > MAX_BYTES) {
        throw new Error(`it is longer than ${MAX_BYTES} bytes`);
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

/** What went wrong with a file, in words instead of `ENOENT: …, open '…'`. */
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
      // Node's own sentence repeats the path.
      return 'no path has such a name';
    default:
      return thrown instanceof Error ? thrown.message : String(thrown);
  }
}
