/** The texts of a file of rules, or of all YAML files of a folder in the order of their names. */
import { closeSync, constants, fstatSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { systemErrorText } from '../config/read-file.ts';

/** In bytes. A rule has hundreds. */
const MAX_FILE = 4 * 1024 * 1024;
const MAX_FILES = 1000;

/** A text, or why there is none. */
export type RuleFile =
  | { readonly file: string; readonly text: string }
  | { readonly file: string; readonly mistake: string };

/** Throws for nothing: a path that cannot be read is a file with a mistake. */
export function readRuleFiles(path: string): RuleFile[] {
  try {
    if (!statSync(path).isDirectory()) {
      return [fileOf(path)];
    }
    const names = readdirSync(path).filter((name) => /^[^.].*\.ya?ml$/i.test(name));
    return names.length > MAX_FILES
      ? [{ file: path, mistake: `expected at most ${MAX_FILES} files, got ${names.length}` }]
      : names.sort().map((name) => fileOf(join(path, name)));
  } catch (thrown) {
    return [
      { file: path, mistake: `expected a file or a folder that can be read (${systemErrorText(thrown)})` },
    ];
  }
}

function fileOf(file: string): RuleFile {
  try {
    return { file, text: new TextDecoder('utf-8', { fatal: true }).decode(bytesOf(file)) };
  } catch (thrown) {
    return {
      file,
      mistake:
        thrown instanceof NotUsable
          ? thrown.message
          : thrown instanceof TypeError
            ? 'expected text in UTF-8'
            : `expected a file that can be read (${systemErrorText(thrown)})`,
    };
  }
}

function bytesOf(file: string): Buffer {
  // To open a pipe would wait for its writer.
  const descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const before = fstatSync(descriptor);
    if (!before.isFile()) {
      throw new NotUsable(`expected a file, got ${before.isDirectory() ? 'a folder' : 'something else'}`);
    }
    if (before.size > MAX_FILE) {
      throw new NotUsable(`expected at most ${MAX_FILE} bytes, got ${before.size}`);
    }
    const bytes = Buffer.allocUnsafe(before.size);
    let length = 0;
    for (let read = -1; length < bytes.length && read !== 0; length += read) {
      read = readSync(descriptor, bytes, length, bytes.length - length, null);
    }
    const after = fstatSync(descriptor);
    if (length < bytes.length || after.size !== before.size || after.mtimeMs !== before.mtimeMs) {
      throw new NotUsable('it changed while it was read');
    }
    return bytes;
  } finally {
    closeSync(descriptor);
  }
}

class NotUsable extends Error {}
