/** What can happen to the database of a control plane that up.sh has started. */
import { spawn } from 'node:child_process';
import { openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

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
  const file = (name: string) => join(folder, name);
  const pid = () => Number(readFileSync(file('etcd.pid'), 'utf8'));
  const [command = '', ...args] = readFileSync(`/proc/${pid()}/cmdline`, 'utf8').split('\0').slice(0, -1);
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
    kill: () => signal('SIGKILL'),
    startAgain: () => {
      const log = openSync(file('etcd.log'), 'a');
      const child = spawn(command, args, { cwd: folder, detached: true, stdio: ['ignore', log, log] });
      child.unref();
      writeFileSync(file('etcd.pid'), `${child.pid}\n`);
    },
  };
}
