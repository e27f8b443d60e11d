/** The file of folded leases: lines of JSON, compressed if its name ends in `.gz`. */
import { createReadStream, existsSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { pipeline } from 'node:stream';
import { constants, createGunzip, gzipSync } from 'node:zlib';
import { systemErrorText } from '../../config/read-file.ts';
import {
  type FoldedLease,
  type FoldHeader,
  foldedLine,
  headerLine,
  readFolded,
  readHeader,
} from '../../ledger/folding/folded-lease.ts';
import { UnwrittenError, UsageError } from '../common/output.ts';

/** Writes a new file, created with the first leases. */
export class FoldedFile {
  readonly #path: string;
  readonly #header: FoldHeader;
  #file: FileHandle | undefined;

  /** Throws `UsageError` if the file exists: it may be the only copy of leases. */
  constructor(path: string, header: FoldHeader) {
    if (existsSync(path)) {
      throw new UsageError(`${path}: the file exists, and is not overwritten; name another one`);
    }
    this.#path = path;
    this.#header = header;
  }

  /** Resolves when the leases are on the disk. @throws UnwrittenError */
  async keep(leases: readonly FoldedLease[]): Promise<void> {
    try {
      const lines = leases.map(foldedLine);
      if (this.#file === undefined) {
        this.#file = await open(this.#path, 'wx', 0o600);
        lines.unshift(headerLine(this.#header));
        await persistFolder(dirname(this.#path));
      }
      const text = lines.join('');
      // Separately compressed chunks form one valid file, so that everything before a crash can be read.
      await this.#file.appendFile(this.#path.endsWith('.gz') ? gzipSync(text) : text);
      await this.#file.sync();
    } catch (thrown) {
      throw new UnwrittenError(
        `${this.#path}: ${systemErrorText(thrown)}; leases that are not in the file are still in the ledger`,
        { cause: thrown },
      );
    }
  }

  async close(): Promise<void> {
    await this.#file?.close();
  }
}

/** Once a file is reported as written, it must exist after a crash. */
async function persistFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** A lease has at most a few hundred entries. */
const LONGEST = 64 * 1024 * 1024;

/**
 * Yields the header, then the leases. The end of a file may be missing after a crash during the write: that
 * lease was never folded. `cutOff` is called if the last line is incomplete. @throws UsageError
 */
export async function* readFoldedFile(
  path: string,
  cutOff: () => void = () => undefined,
): AsyncGenerator<FoldHeader | FoldedLease> {
  let number = 0;
  for await (const line of linesOf(path, cutOff)) {
    number += 1;
    const read = number === 1 ? readHeader(line) : readFolded(line);
    if (read === undefined) {
      const expected =
        number === 1 ? 'the head of a file that ledger compact has written' : 'a lease that was folded';
      throw new UsageError(`${path}:${number}: expected ${expected}`);
    }
    yield read;
  }
}

async function* linesOf(path: string, cutOff: () => void): AsyncGenerator<string> {
  const bytes = createReadStream(path);
  const isCompressed = path.endsWith('.gz');
  const stream = isCompressed
    ? pipeline(bytes, createGunzip({ finishFlush: constants.Z_SYNC_FLUSH }), () => undefined)
    : bytes;
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let rest = '';
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      if (rest.length > LONGEST) {
        throw new UsageError(`${path}: a line is longer than ${LONGEST} characters`);
      }
      yield* lines;
    }
    if (rest !== '') {
      cutOff();
    }
  } catch (thrown) {
    if (thrown instanceof UsageError) {
      throw thrown;
    }
    const isNoText = thrown instanceof TypeError;
    throw new UsageError(`${path}: ${isNoText ? 'expected text in UTF-8' : systemErrorText(thrown)}`);
  }
}
