/** Imports an operator's own code, by the path of a file or the name of a package. */
import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { withinDeadline } from '../base/deadline.ts';
import { errorText } from '../base/errors.ts';
import { whyWritable } from '../config/file-modes.ts';
import { noteImportError } from './import-errors.ts';
import { importedFiles } from './imported-files.ts';
import { moduleFiles, versionOf } from './module-files.ts';
import { FROM_WORKING_DIRECTORY, withVersion } from './packages-hook.ts';
import { syntaxErrorPlace } from './syntax-errors.ts';

/** The exports of a module, by name. */
export type Exports = Readonly<Record<string, unknown>>;

/** For one file and everything that it imports. */
const LOAD_SECONDS = 10;

/**
 * The exports of a file, as it is on disk now. Throws an `Error` whose message completes "… cannot be used: …".
 * `version`: the version of its folder, from `versionOf`, if what the file imports from there must be new too.
 */
export async function importFile(
  file: string,
  version: string | null = versionOf(file, [file]),
): Promise<Exports> {
  // A file that is missing is an error of its own here: import() would name this module too.
  statSync(file);
  const reason = whyWritable(file);
  if (reason !== undefined) {
    throw new Error(reason);
  }
  return importModule(withVersion(pathToFileURL(file).href, version), file);
}

/** The exports of an installed package: beside this one, or in the working directory. Throws as `importFile`. */
export async function importPackage(name: string): Promise<Exports> {
  return importModule(name, name).catch((thrown: unknown) => {
    return importModule(`${FROM_WORKING_DIRECTORY}${name}`, name).catch(() => {
      throw thrown;
    });
  });
}

async function importModule(url: string, name: string): Promise<Exports> {
  try {
    return (await inTime(import(/* @vite-ignore */ url))) as Exports;
  } catch (thrown) {
    noteImportError(thrown);
    if (
      thrown instanceof Error &&
      'code' in thrown &&
      thrown.code === 'ERR_UNKNOWN_FILE_EXTENSION' &&
      /\.m?ts$/.test(name)
    ) {
      throw new Error(
        `Node ${process.versions.node} does not read TypeScript: compile the file to JavaScript (npx tsc), or use Node 22.18 or newer`,
      );
    }
    const place =
      thrown instanceof SyntaxError && url.startsWith('file:')
        ? await syntaxErrorPlace(thrown, [
            ...new Set([name, ...importedFiles(name), ...moduleFiles(dirname(name))]),
          ])
        : undefined;
    throw new Error(
      `it could not be loaded: ${errorText(thrown)}${place === undefined ? '' : ` (${place})`}`,
    );
  }
}

/** A file that awaits at its top level may never finish. Without a timer, Node would then end the process silently. */
function inTime(loading: Promise<unknown>): Promise<unknown> {
  return withinDeadline(LOAD_SECONDS, ({ signal }) =>
    Promise.race([
      loading,
      new Promise((_, fail) => signal.addEventListener('abort', () => fail(signal.reason))),
    ]),
  );
}
