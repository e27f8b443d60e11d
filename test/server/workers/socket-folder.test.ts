/** Folders for the sockets between workers: those that killed services leave behind go, and no others. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import {
  removeAbandonedFolders,
  removeIfAbandoned,
  SocketFolder,
} from '../../../src/server/workers/socket-folder.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';

afterEach(() => {
  vi.unstubAllEnvs();
});

/** Stands for the folder of the system. */
function newPlace(): string {
  const place = temporaryFolder();
  vi.stubEnv('TMPDIR', place);
  return place;
}

function newFolder(place: string): string {
  return mkdtempSync(join(place, 'blazar-enforcement-workers-'));
}

/** A socket whose process was killed. */
async function deadSocket(path: string): Promise<void> {
  const program = "require('node:net').createServer().listen(process.argv[1], () => console.log())";
  const child = spawn(process.execPath, ['-e', program, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  child.kill('SIGKILL');
  await once(child, 'exit');
}

async function listen(path: string): Promise<void> {
  const server = createServer().listen(path);
  await once(server, 'listening');
  onTestFinished(() => void server.close());
}

it('the folder of a service that is gone is removed by the next one that starts, and those in use stay', async () => {
  const place = newPlace();
  const [dead, served, orphan, starting, old, foreign] = [
    newFolder(place),
    newFolder(place),
    newFolder(place),
    newFolder(place),
    newFolder(place),
    newFolder(place),
  ];
  const other = join(place, 'another-1');
  mkdirSync(other);
  await deadSocket(join(dead, 'primary'));
  await deadSocket(join(other, 'primary'));
  // All workers were killed, and are about to be replaced.
  await listen(join(served, 'primary'));
  await deadSocket(join(served, '7'));
  // The primary was killed, and a worker still finishes what is under way.
  await deadSocket(join(orphan, 'primary'));
  await listen(join(orphan, '8'));
  utimesSync(old, new Date(0), new Date(0));
  writeFileSync(join(foreign, 'notes'), '');
  const own = await SocketFolder.open();
  await removeAbandonedFolders();
  expect([dead, old].filter(existsSync)).toEqual([]);
  const kept = [own.path, served, orphan, starting, foreign, other];
  expect(kept.filter((one) => !existsSync(one))).toEqual([]);
  own.close();
  expect(existsSync(own.path)).toBe(false);
});

it('the last worker of a primary that was killed removes the folder', async () => {
  const folder = newFolder(newPlace());
  await deadSocket(join(folder, 'primary'));
  await removeIfAbandoned(folder);
  expect(existsSync(folder)).toBe(false);
  await removeIfAbandoned(folder);
});

it('a folder for temporary files that is not there is a mistake that is told', async () => {
  vi.stubEnv('TMPDIR', '/nowhere/at/all');
  await expect(SocketFolder.open()).rejects.toThrow(/expected a folder for temporary files/);
  await removeAbandonedFolders();
});
