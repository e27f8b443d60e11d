/** What can happen to the API server of a control plane that up.sh has started. */
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
  const file = (name: string) => join(folder, name);
  const pid = () => Number(readFileSync(file('kube-apiserver.pid'), 'utf8'));
  const signal = (name: NodeJS.Signals) => {
    try {
      process.kill(pid(), name);
    } catch {
      // It is gone.
    }
  };
  return {
    freeze: () => signal('SIGSTOP'),
    thaw: () => signal('SIGCONT'),
    stopApiServer: async () => {
      signal('SIGKILL');
      await until('the API server is gone', () => !isRunning(pid()));
    },
    startApiServer: async (flags = '') => {
      const log = openSync(file('kube-apiserver.log'), 'a');
      const command = readFileSync(file('apiserver-command'), 'utf8').trim();
      const child = spawn('bash', ['-c', `exec ${command} ${flags}`], {
        cwd: folder,
        detached: true,
        stdio: ['ignore', log, log],
      });
      child.unref();
      writeFileSync(file('kube-apiserver.pid'), `${child.pid}\n`);
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

function isRunning(pid: number): boolean {
  try {
    // What was killed and is not yet waited for has no command line.
    return readFileSync(`/proc/${pid}/cmdline`).length > 0;
  } catch {
    return false;
  }
}

async function until(what: string, holds: () => boolean): Promise<void> {
  for (let tries = 0; tries < 240; tries += 1) {
    if (holds()) {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  throw new Error(`not within a minute: ${what}`);
}
