/** The decision logs that a command line names: files, patterns such as `decisions.jsonl*`, and standard input. */
import { createReadStream, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { systemErrorText } from '../../config/read-file.ts';
import { UsageError } from '../output.ts';

const STDIN = '-';
const CHUNK_BYTES = 256 * 1024;
const GZIP = Buffer.of(0x1f, 0x8b);

export interface LogFile {
  /** As it is shown: the path, or `standard input`. */
  readonly name: string;
  /** On the disk; `undefined` = not known. */
  readonly size: number | undefined;
  /** Unpacked, if it was packed. `read` is told how many bytes were read from the disk. @throws UsageError */
  chunks(read: (bytes: number) => void): AsyncGenerator<Buffer>;
}

/** In the order of the command line; of a pattern by name. @throws UsageError */
export function logFiles(named: readonly string[]): LogFile[] {
  if (named.filter((one) => one === STDIN).length > 1) {
    throw new UsageError('standard input (-) can be read only once');
  }
  return named.flatMap(expanded).map(logFile);
}

/** A shell may have left `*` and `?` as they are. Only in the last part of a path. */
function expanded(path: string): string[] {
  const pattern = basename(path);
  if (path === STDIN || !/[*?]/.test(pattern) || isFile(path)) {
    return [path];
  }
  const parts = pattern.split(/([*?]+)/).map((part, index) => {
    const wild = part.includes('*') ? '.*' : '.'.repeat(part.length);
    return index % 2 === 1 ? wild : part.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
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

function logFile(path: string): LogFile {
  const name = path === STDIN ? 'standard input' : path;
  const size = path === STDIN ? undefined : sizeOf(path);
  return {
    name,
    size,
    async *chunks(read) {
      try {
        const bytes: AsyncIterable<Buffer> =
          path === STDIN ? process.stdin : createReadStream(path, { highWaterMark: CHUNK_BYTES });
        yield* unpacked(counted(bytes, read));
      } catch (thrown) {
        throw new UsageError(`${name}: could not be read: ${systemErrorText(thrown)}`);
      }
    },
  };
}

function sizeOf(path: string): number {
  try {
    return statSync(path).size;
  } catch (thrown) {
    throw new UsageError(`${path}: could not be read: ${systemErrorText(thrown)}`);
  }
}

async function* counted(bytes: AsyncIterable<Buffer>, read: (bytes: number) => void): AsyncGenerator<Buffer> {
  for await (const chunk of bytes) {
    read(chunk.length);
    yield chunk;
  }
}

/** By the first bytes, not by the name: logrotate packs late, and standard input has no name. */
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
