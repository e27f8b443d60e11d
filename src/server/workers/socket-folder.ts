/**
 * The folder for the sockets between workers. The primary listens there as well, so that anybody can tell whether the folder is in use: what a
 * service leaves behind of which all processes were killed is removed by the next one that starts.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { lstat, readdir, rm } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemErrorText } from '../../config/read-file.ts';
import { ConfigurationError } from '../../errors.ts';

const PREFIX = 'blazar-enforcement-workers-';
const PRIMARY = 'primary';
/** A folder without sockets is in use if it is younger, in milliseconds: its primary is about to listen. */
const YOUNG_MS = 3_600_000;

export class SocketFolder {
  readonly path: string;
  readonly #server: Server;

  private constructor(path: string, server: Server) {
    this.path = path;
    this.#server = server;
  }

  /** Only this user can read it. @throws ConfigurationError where it cannot be made */
  static async open(): Promise<SocketFolder> {
    let path: string | undefined;
    try {
      path = mkdtempSync(join(tmpdir(), PREFIX));
      const server = createServer((socket) => socket.destroy());
      await new Promise<void>((listening, failed) => {
        server.once('error', failed);
        server.listen(join(path ?? '', PRIMARY), listening);
      });
      server.unref();
      return new SocketFolder(path, server);
    } catch (thrown) {
      if (path !== undefined) {
        rmSync(path, { recursive: true, force: true });
      }
      const message = `expected a folder for temporary files that can be written, got ${tmpdir()} (${systemErrorText(thrown)}); TMPDIR names another one`;
      throw new ConfigurationError([{ severity: 'error', section: 'service', option: 'workers', message }]);
    }
  }

  close(): void {
    this.#server.close();
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** Removes the folders of services that are gone. Never rejects. */
export async function removeAbandonedFolders(): Promise<void> {
  const names = await readdir(tmpdir()).catch(() => []);
  for (const name of names) {
    if (name.startsWith(PREFIX)) {
      await removeIfAbandoned(join(tmpdir(), name));
    }
  }
}

/** Removes a folder if no process of its service is there any more. Never rejects. */
export async function removeIfAbandoned(folder: string): Promise<void> {
  try {
    if (await isAbandoned(folder)) {
      await rm(folder, { recursive: true, force: true });
    }
  } catch {
    // It is not ours, or another process has removed it.
  }
}

async function isAbandoned(folder: string): Promise<boolean> {
  const status = await lstat(folder);
  if (status.uid !== process.getuid?.() || !status.isDirectory()) {
    return false;
  }
  const entries = await readdir(folder, { withFileTypes: true });
  if (entries.length === 0) {
    return Date.now() - status.mtimeMs > YOUNG_MS;
  }
  for (const entry of entries) {
    if (!entry.isSocket() || (await isListenedTo(join(folder, entry.name)))) {
      return false;
    }
  }
  return true;
}

/** Also by a process that is stopped. */
function isListenedTo(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', ({ code }: NodeJS.ErrnoException) =>
      resolve(code !== 'ECONNREFUSED' && code !== 'ENOENT'),
    );
  });
}
