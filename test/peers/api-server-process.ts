/** What can happen to the API server and the database of a control plane that up.sh has started. */
import { spawn, spawnSync } from 'node:child_process';
import { openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface ApiServerProcess {
  /** As a crash: SIGKILL. Resolves when it is gone. */
  stopApiServer(): Promise<void>;
  /** Starts it again, with further flags, and waits until it answers. */
  startApiServer(flags?: string): Promise<void>;
  /** Stops it where it is: connections stay open, and nothing is answered. */
  freeze(): void;
  thaw(): void;
  /** Makes etcd forget all versions but the latest. */
  compact(): Promise<void>;
}

export function apiServerProcess(folder: string): ApiServerProcess {
  const { file, pid, signal, start } = startedProcess(folder, 'kube-apiserver');
  return {
    freeze: () => signal('SIGSTOP'),
    thaw: () => signal('SIGCONT'),
    stopApiServer: async () => {
      signal('SIGKILL');
      await until('the API server is gone', () => !isRunning(pid()));
    },
    startApiServer: async (flags = '') => {
      const command = readFileSync(file('apiserver-command'), 'utf8').trim();
      start('bash', ['-c', `exec ${command} ${flags}`]);
      const ask = ['--kubeconfig', file('admin.conf'), 'get', '--raw', '/readyz'];
      await until('the API server answers', () => spawnSync('kubectl', ask).status === 0);
    },
    compact: async () => {
      const [etcd = ''] =
        /http:\/\/127\.0\.0\.1:\d+/.exec(readFileSync(file('apiserver-command'), 'utf8')) ?? [];
      const ask = async (path: string, body: object) => {
        const answer = await fetch(`${etcd}${path}`, { method: 'POST', body: JSON.stringify(body) });
        return (await answer.json()) as { readonly header?: { readonly revision?: string } };
      };
      const { header } = await ask('/v3/maintenance/status', {});
      await ask('/v3/kv/compaction', { revision: header?.revision, physical: true });
    },
  };
}

export interface EtcdProcess {
  /** Stops it where it is: connections stay open, and nothing is answered. */
  freeze(): void;
  thaw(): void;
  /** As a crash: SIGKILL. Its data stay. */
  kill(): void;
  /** Starts what was killed, with the same data. */
  startAgain(): void;
}

/** `folder`: of the control plane. */
export function etcdProcess(folder: string): EtcdProcess {
  const { pid, signal, start } = startedProcess(folder, 'etcd');
  const [command = '', ...args] = readFileSync(`/proc/${pid()}/cmdline`, 'utf8').split('\0').slice(0, -1);
  return {
    freeze: () => signal('SIGSTOP'),
    thaw: () => signal('SIGCONT'),
    kill: () => signal('SIGKILL'),
    startAgain: () => start(command, args),
  };
}

/** A process of the folder of a control plane, by the files that it has there. */
function startedProcess(folder: string, name: string) {
  const file = (one: string) => join(folder, one);
  const pid = () => Number(readFileSync(file(`${name}.pid`), 'utf8'));
  return {
    file,
    pid,
    signal: (signal: NodeJS.Signals) => {
      try {
        process.kill(pid(), signal);
      } catch {
        // It is gone.
      }
    },
    start: (command: string, args: readonly string[]) => {
      const log = openSync(file(`${name}.log`), 'a');
      const child = spawn(command, args, { cwd: folder, detached: true, stdio: ['ignore', log, log] });
      child.unref();
      writeFileSync(file(`${name}.pid`), `${child.pid}\n`);
    },
  };
}

function isRunning(pid: number): boolean {
  try {
    // What was killed and is not yet waited for has no command line.
    return readFileSync(`/proc/${pid}/cmdline`).length > 0;
  } catch {
    return false;
  }
}

async function until(what: string, holds: () => boolean): Promise<void> {
  for (let tries = 0; tries < 2400; tries += 1) {
    if (holds()) {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  throw new Error(`not within ten minutes: ${what}`);
}
