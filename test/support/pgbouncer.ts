/** PgBouncer in transaction mode for PostgreSQL, if installed (Debian: `apt-get install pgbouncer`). */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { onTestFinished, vi } from 'vitest';
import { temporaryFolder } from './filter-folder.ts';
import { skipAloud } from './peers.ts';
import { unusedPort } from './unused-port.ts';

const PROGRAM = process.env.PGBOUNCER ?? '/usr/sbin/pgbouncer';
/** PgBouncer does not run as root. */
const NOBODY = 65_534;

/** Whether it is installed. If not, logs this once on standard error. */
export function hasPgBouncer(): boolean {
  const isThere = existsSync(PROGRAM);
  if (!isThere) {
    skipAloud('PGBOUNCER', `${PROGRAM} does not exist`);
  }
  return isThere;
}

/** Starts one for a connection's server. Returns the connection through it. Stopped after the test. */
export async function startPgBouncer(connection: string, connections: number): Promise<string> {
  const { hostname, port: serverPort, username, password, pathname } = new URL(connection);
  const folder = temporaryFolder();
  const port = await unusedPort();
  const settings = [
    '[databases]',
    `* = host=${hostname} port=${serverPort} user=${username} password=${password}`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = any',
    'pool_mode = transaction',
    `default_pool_size = ${connections}`,
    'max_client_conn = 500',
    'server_login_retry = 1',
  ];
  const file = join(folder, 'pgbouncer.ini');
  writeFileSync(file, `${settings.join('\n')}\n`);
  const isRoot = process.getuid?.() === 0;
  if (isRoot) {
    chownSync(folder, NOBODY, NOBODY);
  }
  const child = spawn(PROGRAM, [file], {
    ...(isRoot && { uid: NOBODY, gid: NOBODY }),
    cwd: '/',
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (some: string) => {
    said += some;
  });
  const ended = once(child, 'close');
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const through = new URL(connection);
  through.port = String(port);
  through.pathname = pathname;
  await vi.waitFor(
    async () => {
      const client = new pg.Client({ connectionString: through.href });
      await client.connect().catch((thrown: unknown) => {
        throw new Error(`PgBouncer does not answer: ${String(thrown)}\n${said}`);
      });
      await client.end();
    },
    { timeout: 120_000, interval: 50 },
  );
  return through.href;
}
