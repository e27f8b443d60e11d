/** Who else may write, or read, what the configuration consists of. By the mode alone, as ssh looks at its keys. */
import { accessSync, constants, readdirSync, realpathSync, type Stats, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

const OTHERS_READ = 0o004;
const OTHERS_WRITE = 0o002;
const STICKY = 0o1000;

/**
 * Why nobody can tell who has written a file: everyone may write to it, or to a folder on its way, and so put another in its
 * place. The file itself may be a folder, whose files are read. `undefined` = no reason, or nothing is there.
 */
export function whyWritable(path: string): string | undefined {
  const stats = look(path);
  // Pipes, /dev/null and the like are nobody's files.
  if (stats === undefined || !(stats.isFile() || stats.isDirectory())) {
    return undefined;
  }
  if (isWritable(path, stats)) {
    const what = stats.isDirectory() ? 'everyone may put files into it' : 'everyone may write to it';
    return `${what}; take that right away: chmod o-w`;
  }
  const folder = [...foldersOn(path)].find((one) => {
    const above = look(one);
    // In a sticky one nobody may replace what is somebody else's.
    return above !== undefined && (above.mode & STICKY) === 0 && isWritable(one, above);
  });
  return folder && `everyone may write to the folder ${folder} and replace what is in it; chmod o-w`;
}

/** As `whyWritable`, of a path and, where it is a folder, of each file in it that has such a name. */
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

/** On Windows modes say nothing. */
const hasModes = process.platform !== 'win32';

/** `undefined` for what can't be looked at: whoever reads it says why. */
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

/** A ConfigMap of Kubernetes is mounted with the mode 0777, and nobody may write there. */
function isOnReadOnlyFileSystem(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return false;
  } catch (thrown) {
    return thrown instanceof Error && 'code' in thrown && thrown.code === 'EROFS';
  }
}

/** All folders above a path: those of its name, and those to which links lead. */
function foldersOn(path: string): Set<string> {
  const folders = new Set<string>();
  for (const start of [resolve(path), realpathSync(path)]) {
    for (let folder = dirname(start); !folders.has(folder); folder = dirname(folder)) {
      folders.add(folder);
    }
  }
  return folders;
}
