/** The files of decision logs, packed or not. */
import { createReadStream, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { systemErrorText } from '../../config/read-file.ts';
import { refuseStandardInputTwice, shownName, UsageError } from '../common/output.ts';

const CHUNK_BYTES = 256 * 1024;
const GZIP = Buffer.of(0x1f, 0x8b);

export interface LogFile {
  /** For output: the path, or `standard input`. */
  readonly name: string;
  /** In bytes on disk; `undefined` = unknown. */
  readonly size: number | undefined;
  /** Decompressed if necessary. `read` receives the number of bytes read from disk. @throws UsageError */
  chunks(read?: (bytes: number) => void): AsyncGenerator<Buffer>;
}

/** In the order of the command line; the files of a pattern by name. @throws UsageError */
export function logFiles(named: readonly string[]): LogFile[] {
  refuseStandardInputTwice(named);
  return named.flatMap(expanded).map(logFile);
}

/** For shells that leave `*` and `?` unexpanded. Only in the last part of a path. */
function expanded(path: string): string[] {
  const pattern = basename(path);
  if (path === '-' || !/[*?]/.test(pattern) || isFile(path)) {
    return [path];
  }
  const parts = pattern.split(/([*?]+)/).map((part, index) => {
    const wildcard = part.includes('*') ? '.*' : '.'.repeat(part.length);
    return index % 2 === 1 ? wildcard : part.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
  });
  const matching = new RegExp(`^${parts.join('')}$`, 'su');
  const folder = dirname(path);
  let names: string[];
  try {
    names = readdirSync(folder).filter((name) => matching.test(name) && isFile(join(folder, name)));
  } catch (thrown) {
    throw new UsageError(`${path}: ${systemErrorText(thrown)}`);
  }
  if (names.length === 0) {
    throw new UsageError(`${path}: no file has such a name`);
  }
  return names.sort().map((name) => join(folder, name));
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

/** Standard input for `-`. @throws UsageError */
export function logFile(path: string): LogFile {
  const size = path === '-' ? undefined : sizeOf(path);
  return {
    name: shownName(path),
    size,
    async *chunks(read = () => {}) {
      try {
        const bytes: AsyncIterable<Buffer> =
          path === '-' ? process.stdin : createReadStream(path, { highWaterMark: CHUNK_BYTES });
        yield* unpacked(counted(bytes, read));
      } catch (thrown) {
        throw unreadable(path, thrown);
      }
    },
  };
}

function sizeOf(path: string): number {
  try {
    return statSync(path).size;
  } catch (thrown) {
    throw unreadable(path, thrown);
  }
}

export function unreadable(path: string, thrown: unknown): UsageError {
  return new UsageError(`${shownName(path)}: could not be read: ${systemErrorText(thrown)}`);
}

async function* counted(bytes: AsyncIterable<Buffer>, read: (bytes: number) => void): AsyncGenerator<Buffer> {
  for await (const chunk of bytes) {
    read(chunk.length);
    yield chunk;
  }
}

/** By the first bytes, not by name: logrotate compresses late, and standard input has no name. */
async function* unpacked(bytes: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  const first = await bytes.next();
  if (first.done === true) {
    return;
  }
  const all = again(first.value, bytes);
  yield* first.value.subarray(0, GZIP.length).equals(GZIP)
    ? pipeline(Readable.from(all, { objectMode: false }), createGunzip(), () => {})
    : all;
}

async function* again(first: Buffer, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  yield first;
  yield* rest;
}
