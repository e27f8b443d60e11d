/** Runs cases again and again, as their files change. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { WatchedFiles } from '../../server/configuration/watched-files.ts';

/** In milliseconds. Changes that come together cause one run. */
const POLL_MS = 300;
/** A tree with more folders has something else in it. */
const MAX_FOLDERS = 1_000;

/**
 * Calls `run` now, and after each change below the folders or of the files that it resolves to, until SIGINT or SIGTERM. One run at a time: changes
 * during a run cause one more. Resolves when the last run has ended.
 */
export async function watching(
  folders: readonly string[],
  run: () => Promise<readonly string[]>,
): Promise<void> {
  let wake = () => {};
  const state = { isStopped: false, hasChanged: false };
  const watched = new WatchedFiles(() => {
    state.hasChanged = true;
    wake();
  }, POLL_MS);
  const stop = () => {
    state.isStopped = true;
    wake();
  };
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  // Nothing else keeps the process alive between two runs.
  const alive = setInterval(() => {}, 60_000);
  try {
    await watched.watch(foldersBelow(folders));
    watched.start();
    while (!state.isStopped) {
      state.hasChanged = false;
      const named = await run();
      await watched.watch([...new Set([...foldersBelow(folders), ...named])]);
      if (!state.hasChanged && !state.isStopped) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  } finally {
    clearInterval(alive);
    watched.close();
    process.off('SIGINT', stop);
    process.off('SIGTERM', stop);
  }
}

/** The folders and files, and all folders in them. */
function foldersBelow(paths: readonly string[]): string[] {
  const found = [...paths];
  for (let index = 0; index < found.length && found.length < MAX_FOLDERS; index += 1) {
    const path = found[index] ?? '';
    try {
      const inside = readdirSync(path, { withFileTypes: true });
      found.push(
        ...inside
          .filter((one) => one.isDirectory() && !one.name.startsWith('.') && one.name !== 'node_modules')
          .map(({ name }) => join(path, name)),
      );
    } catch {
      // A file, or a folder that is gone: it is watched all the same.
    }
  }
  return found.slice(0, MAX_FOLDERS);
}
