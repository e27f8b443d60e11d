/** Whether other users may write or read the files of the configuration. Judged by the mode alone, as ssh does with its keys. */
import { accessSync, constants, readdirSync, realpathSync, type Stats, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

const OTHERS_READ = 0o004;
const OTHERS_WRITE = 0o002;
const STICKY = 0o1000;

/**
 * Why a file or folder cannot be trusted: everyone may write to it, or to a folder above it and so replace it. `undefined` when
 * there is no reason, or no such file.
 */
export function whyWritable(path: string): string | undefined {
  const stats = look(path);
  // Pipes, /dev/null and the like have no content of their own.
  if (stats === undefined || !(stats.isFile() || stats.isDirectory())) {
    return undefined;
  }
  if (isWritable(path, stats)) {
    const what = stats.isDirectory() ? 'everyone may create files in it' : 'everyone may write to it';
    return `${what}; remove that permission: chmod o-w`;
  }
  const folder = [...foldersOn(path)].find((one) => {
    const above = look(one);
    // In a sticky folder users can replace only their own files.
    return above !== undefined && (above.mode & STICKY) === 0 && isWritable(one, above);
  });
  return folder && `everyone may write to the folder ${folder} and replace what is in it; chmod o-w`;
}

/** As `whyWritable`, for a path and, if it is a folder, for each file in it for whose name `isRead` is true. */
export function whyAnyWritable(path: string, isRead: (name: string) => boolean): string | undefined {
  const own = whyWritable(path);
  if (own !== undefined || look(path)?.isDirectory() !== true) {
    return own;
  }
  for (const name of readdirSync(path).filter(isRead)) {
    const reason = whyWritable(join(path, name));
    if (reason !== undefined) {
      return `${name} in it: ${reason}`;
    }
  }
  return undefined;
}

/** Whether everyone may read a file. */
export function isReadByEveryone(path: string): boolean {
  const stats = look(path);
  return stats?.isFile() === true && (stats.mode & OTHERS_READ) !== 0 && hasModes;
}

/** On Windows modes have no meaning. */
const hasModes = process.platform !== 'win32';

/** `undefined` when it fails: reading the file fails too, and reports the reason. */
function look(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

function isWritable(path: string, { mode }: Stats): boolean {
  return hasModes && (mode & OTHERS_WRITE) !== 0 && !isOnReadOnlyFileSystem(path);
}

/** Kubernetes mounts a ConfigMap read-only, with the mode 0777. */
function isOnReadOnlyFileSystem(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return false;
  } catch (thrown) {
    return thrown instanceof Error && 'code' in thrown && thrown.code === 'EROFS';
  }
}

/** All folders above a path, as written and with links resolved. */
function foldersOn(path: string): Set<string> {
  const folders = new Set<string>();
  for (const start of [resolve(path), realpathSync(path)]) {
    for (let folder = dirname(start); !folders.has(folder); folder = dirname(folder)) {
      folders.add(folder);
    }
  }
  return folders;
}
