/** Code of an operator's own, imported by the path of a file or the name of a package. */
import { statSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { whyWritable } from '../config/file-modes.ts';
import { withinDeadline } from '../deadline.ts';
import { errorText } from '../errors.ts';
import { FROM_WORKING_DIRECTORY } from './packages-hook.ts';

/** What a module exports, by name. */
export type Exports = Readonly<Record<string, unknown>>;

/** For loading one file with all that it imports. */
const LOAD_SECONDS = 10;

/** The exports of a file. Throws an `Error` whose message completes "… cannot be used: …". */
export async function importFile(file: string): Promise<Exports> {
  const reason = whyWritable(file);
  if (reason !== undefined) {
    throw new Error(reason);
  }
  return importModule(moduleUrl(file), file);
}

/** The exports of an installed package, installed beside this one or in the working directory. Throws as `importFile`. */
export async function importPackage(name: string): Promise<Exports> {
  return importModule(name, name).catch((thrown: unknown) => {
    return importModule(`${FROM_WORKING_DIRECTORY}${name}`, name).catch(() => {
      throw thrown;
    });
  });
}

/** When each file had been changed last as it was imported first. */
const firstSeen = new Map<string, number>();

/**
 * Node keeps what it has imported for good, by its URL: a file that was changed since is imported by another one, so that
 * a reload runs what stands in it. What the file imports itself stays as it was.
 */
function moduleUrl(file: string): string {
  const url = pathToFileURL(file);
  const changed = statSync(file).mtimeMs;
  const first = firstSeen.get(file) ?? changed;
  firstSeen.set(file, first);
  if (changed !== first) {
    url.searchParams.set('changed', String(changed));
  }
  return url.href;
}

async function importModule(url: string, shown: string): Promise<Exports> {
  try {
    return (await loaded(import(/* @vite-ignore */ url))) as Exports;
  } catch (thrown) {
    if (
      thrown instanceof Error &&
      'code' in thrown &&
      thrown.code === 'ERR_UNKNOWN_FILE_EXTENSION' &&
      /\.m?ts$/.test(shown)
    ) {
      throw new Error(
        `Node ${process.versions.node} does not read TypeScript: compile the file to JavaScript (npx tsc), or use Node 22.18 or newer`,
      );
    }
    throw new Error(`it could not be loaded: ${errorText(thrown)}`);
  }
}

/** A file that awaits at its top level may never be loaded, and Node would end the process without a word. */
function loaded(loading: Promise<unknown>): Promise<unknown> {
  return withinDeadline(LOAD_SECONDS, ({ signal }) =>
    Promise.race([
      loading,
      new Promise((_, fail) => signal.addEventListener('abort', () => fail(signal.reason))),
    ]),
  );
}
