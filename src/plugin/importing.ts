/** Imports an operator's own code, by file path or package name, and offers it our packages. */

import { execFile } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import * as nodeModule from 'node:module';
import { dirname, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { inTime, withinDeadline } from '../base/deadline.ts';
import { codeOf, errorText } from '../base/errors.ts';
import { whyWritable } from '../config/read-file.ts';
import { noteImportError, placeOf } from './import-errors.ts';
import { moduleFiles, versionOf } from './module-files.ts';
import { FROM_WORKING_DIRECTORY, fallbackResolve, withVersion } from './packages-hook.ts';

/** The exports of a module, by name. */
type Exports = Readonly<Record<string, unknown>>;

/** For one file and all its imports. */
const LOAD_SECONDS = 10;

/**
 * The exports of a file, as it is on disk now. Throws an `Error` whose message completes "… cannot be used:
 * …". `version`: the version of its folder, from `versionOf`, if its imports from there must be new too.
 */
export async function importFile(
  file: string,
  version: string | null = versionOf(file, [file]),
): Promise<Exports> {
  // A missing file is a separate error here: import() would name this module too.
  statSync(file);
  const reason = whyWritable(file);
  if (reason !== undefined) {
    throw new Error(reason);
  }
  return importModule(withVersion(pathToFileURL(file).href, version), file);
}

/** The exports of an installed package, beside this one or in the working directory. Throws as `importFile`. */
export async function importPackage(name: string): Promise<Exports> {
  return importModule(name, name).catch((thrown: unknown) => {
    return importModule(`${FROM_WORKING_DIRECTORY}${name}`, name).catch((second: unknown) => {
      throw errorText(thrown).includes(`Cannot find package '${name}'`) ? second : thrown;
    });
  });
}

async function importModule(url: string, name: string): Promise<Exports> {
  try {
    // A top-level await may never finish. Without a timer, Node would then end the process silently.
    const loading: Promise<unknown> = import(/* @vite-ignore */ url);
    return (await withinDeadline(LOAD_SECONDS, (deadline) => inTime(loading, deadline))) as Exports;
  } catch (thrown) {
    noteImportError(thrown);
    if (codeOf(thrown) === 'ERR_UNKNOWN_FILE_EXTENSION' && /\.m?ts$/.test(name)) {
      throw new Error(
        `Node ${process.versions.node} does not read TypeScript: replace the file by the JavaScript that it compiles to, or use Node 22.18 or newer`,
      );
    }
    const place =
      thrown instanceof SyntaxError && url.startsWith('file:')
        ? await syntaxErrorPlace(thrown, [
            ...new Set([name, ...importedFiles(name), ...moduleFiles(dirname(name))]),
          ])
        : undefined;
    const where = place === undefined ? placeOf(thrown, name) : ` (${place})`;
    throw new Error(`it could not be loaded: ${errorText(thrown)}${where}`);
  }
}

const IMPORT = /(?:\bfrom|\bimport|\brequire)\s*\(?\s*(["'])(\.{1,2}\/[^"'\n]{1,500})\1/g;
const MAX_FILES = 20;
/** In characters. */
const MAX_TEXT = 1_000_000;

/** The file, its imports, and their imports. Files that cannot be read are omitted. */
export function importedFiles(file: string): string[] {
  const found = new Set([resolve(file)]);
  for (const one of found) {
    const text = textOf(one);
    if (text === undefined) {
      found.delete(one);
      continue;
    }
    for (const [, , path = ''] of text.slice(0, MAX_TEXT).matchAll(IMPORT)) {
      if (found.size < MAX_FILES) {
        found.add(resolve(dirname(one), path));
      }
    }
  }
  return [...found];
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

/** In milliseconds, for one file. */
const TIMEOUT = 5000;
const MAX_CHECKED = 20;

/** `FILE:LINE` of a syntax error in one of these files; `undefined` = unknown. */
export async function syntaxErrorPlace(
  error: SyntaxError,
  files: readonly string[],
): Promise<string | undefined> {
  const place = placeInStack(error);
  if (place !== undefined) {
    return place;
  }
  for (const file of files.filter((name) => /\.[cm]?js$/.test(name)).slice(0, MAX_CHECKED)) {
    const line = await lineOf(error, file);
    if (line !== undefined) {
      return `${file}:${line}`;
    }
  }
  return undefined;
}

/** Some syntax errors have the place before their stack: an import of a name that is not exported. */
function placeInStack({ stack = '' }: SyntaxError): string | undefined {
  const [, url, path, line] = /^(?:(file:\/\/\S+)|(\/.+)):(\d+)\n/.exec(stack) ?? [];
  const file = url === undefined ? path : fileURLToPath(url);
  return file === undefined ? undefined : `${file}:${line}`;
}

/** Checks the file in another process, without executing it. */
function lineOf({ message }: SyntaxError, file: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const check = execFile(
      process.execPath,
      ['--input-type=module', '--check', '-'],
      { timeout: TIMEOUT },
      (_, __, stderr) => {
        const isSame = stderr.includes(`\nSyntaxError: ${message}\n`);
        resolve(isSame ? /^\[stdin\]:(\d+)$/m.exec(stderr)?.[1] : undefined);
      },
    );
    check.stdin?.on('error', () => {});
    check.stdin?.end(textOf(file) ?? '');
  });
}

type RegisterHooks = (hooks: { resolve: typeof fallbackResolve }) => void;

let registered = false;

/**
 * Lets code anywhere on disk `import … from 'blazar-enforcement'` and `'zod'` from now on, as Python's
 * site-packages would: a copy installed beside it wins, then this package's. May be called more than once.
 */
export function makePackagesResolvable(): void {
  if (registered) {
    return;
  }
  registered = true;
  // Node 22.15 and later have synchronous hooks, and deprecate hooks on a thread, the only ones in Node 20.
  if ('registerHooks' in nodeModule) {
    (nodeModule.registerHooks as RegisterHooks)({ resolve: fallbackResolve });
  } else if (import.meta.url.endsWith('.js')) {
    // In the source tree the test runner resolves them; the hook's thread could not read TypeScript.
    nodeModule.register(new URL('./packages-hook.js', import.meta.url));
  }
}
